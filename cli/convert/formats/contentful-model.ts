/** The content model of Contentful: what its content types and editors declare of fields. */
import type { SourceCollection, SourceField } from "../record.ts";

export type Sys = Readonly<Record<string, unknown>> & { readonly id: string };
export type Link = { readonly sys: { readonly id: string; readonly linkType?: string } };
export type Declared = {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly linkType?: string;
  readonly required?: boolean;
  readonly localized?: boolean;
  readonly omitted?: boolean;
  readonly validations?: readonly {
    readonly in?: readonly unknown[];
    readonly linkContentType?: string | readonly string[];
  }[];
  readonly items?: Omit<Declared, "items">;
};
export type ContentType = {
  readonly sys: Sys;
  readonly name: string;
  readonly description?: string | null;
  readonly fields: readonly Declared[];
};
export type Control = {
  readonly fieldId: string;
  readonly widgetId?: string | null;
  readonly settings?: { format?: string };
};

/** How editors write a field, by type and field. */
export type Controls = ReadonlyMap<string, Control>;

export function makeCollection(type: ContentType, controls: Controls): SourceCollection {
  const fields = type.fields.filter((field) => !field.omitted);
  return {
    kind: "collection",
    collection: type.sys.id,
    name: type.name,
    ...(type.description ? { description: type.description } : {}),
    fields: fields.map((field) => declareField(type.sys.id, field, controls)),
  };
}

function declareField(type: string, field: Declared, controls: Controls): SourceField {
  const one = field.type === "Array" && field.items !== undefined ? { ...field, ...field.items } : field;
  const fieldType = decideType(type, one, controls);
  return {
    name: field.id,
    label: field.name,
    required: field.required === true,
    ...(fieldType === undefined ? {} : { type: fieldType }),
    ...(field.type === "Array" ? { multiple: true } : {}),
    ...(fieldType === "relation" ? { target: findTargets(one)[0] as string } : {}),
  };
}

function findTargets({ validations = [] }: Omit<Declared, "items">): readonly string[] {
  return validations.flatMap(({ linkContentType }) => linkContentType ?? []);
}

/** Undefined where the values have to tell it. */
function decideType(type: string, field: Omit<Declared, "items">, controls: Controls): SourceField["type"] {
  switch (field.type) {
    case "Symbol":
      return field.validations?.some((validation) => validation.in !== undefined) ? "select" : "text";
    case "Text":
      return isMarkdown(type, field.id, controls) ? "rich_text" : "text";
    case "RichText":
      return "rich_text";
    case "Integer":
    case "Number":
      return "number";
    case "Boolean":
      return "boolean";
    case "Date": {
      const format = controls.get(`${type} ${field.id}`)?.settings?.format;
      return format === undefined ? undefined : format === "dateonly" ? "date" : "datetime";
    }
    case "Link":
      if (field.linkType === "Asset") return "media";
      // Links to entries of several types are no relation, which has one target.
      return findTargets(field).length === 1 ? "relation" : undefined;
    default:
      return "json";
  }
}

/** Long texts are edited as Markdown unless another editor was chosen for them. */
export function isMarkdown(type: string, field: string, controls: Controls): boolean {
  const control = controls.get(`${type} ${field}`);
  return control !== undefined && (control.widgetId ?? "markdown") === "markdown";
}
