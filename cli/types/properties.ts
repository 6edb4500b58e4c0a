/** Describes the properties of each view once for all languages: what a value is, when it is null, and when a list. */
import type { Field, FieldType, Timestamp } from "../../shared/api/catalog.ts";
import { findTarget, type NamedApp, type NamedType, type SelectValues, shownIn, type View } from "./names.ts";

export type Property = {
  readonly name: string;
  readonly value: Value;
  readonly isList: boolean;
  /** Whether the value may be null, or the list as a whole. */
  readonly isNullable: boolean;
  /** Whether items of the list may be. */
  readonly hasNulls: boolean;
  /** Null for what every entry has, and for the address of a file. */
  readonly field: Field | null;
};

/** A value, or an item of a list. */
export type Value =
  | { readonly kind: Exclude<FieldType, "select"> | "id" | "timestamp" | "url" }
  /** `values` is undefined when they are not known: then it is any text. */
  | { readonly kind: "select"; readonly values: readonly string[] | undefined }
  /** A populated relation. `target` is undefined when its type is not published: of such a type, no entry is shown. */
  | { readonly kind: "entry"; readonly target: NamedType | undefined };

export function describeProperties(
  named: NamedApp,
  { type }: NamedType,
  view: View,
  values: SelectValues,
): readonly Property[] {
  const { fields, timestamps } = shownIn(type, view);
  const used = values.get(type.slug);
  return [
    describeOwn("id", "id"),
    ...fields.flatMap((field) => describeField(named, field, view, used?.get(field.name))),
    ...timestamps.map((timestamp: Timestamp) => describeOwn(timestamp, "timestamp")),
  ];
}

function describeOwn(name: string, kind: "id" | "timestamp"): Property {
  return { name, value: { kind }, isList: false, isNullable: false, hasNulls: false, field: null };
}

/** A populated relation is null also where it is required: the entry that it names may be unpublished. */
function describeField(
  named: NamedApp,
  field: Field,
  view: View,
  values: readonly string[] | undefined,
): readonly Property[] {
  const { name, type, multiple: isList, required } = field;
  const value = describeValue(named, field, view, values);
  const isNullable = !required || (value.kind === "entry" && !isList);
  const property: Property = { name, value, isList, isNullable, hasNulls: false, field };
  if (type !== "media") return [property];
  // A file name may be an empty text, which has no address.
  const url = { name: `${name}_url`, value: { kind: "url" }, field: null } as const;
  return [property, { ...property, ...url, isNullable: !isList || isNullable, hasNulls: isList }];
}

function describeValue(named: NamedApp, field: Field, view: View, values: readonly string[] | undefined): Value {
  const { type } = field;
  if (type === "relation" && view === "Populated") return { kind: "entry", target: findTarget(named, field) };
  return type === "select" ? { kind: type, values } : { kind: type };
}
