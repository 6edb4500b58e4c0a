/** Describes the API of an app as an OpenAPI 3.1 document: a plain value, for a file or for a page that shows it. */
import type { App, ContentType } from "../../shared/api/catalog.ts";
import { escapeMarkdown } from "../../shared/text.ts";
import { writeJsonSchema } from "../types/json-schema.ts";
import { type NamedApp, NO_VALUES, nameTypes, type View } from "../types/names.ts";
import type { Examples } from "./examples.ts";
import { describePaths, describeSharedParameters } from "./operations.ts";
import { describeSharedResponses, type Json } from "./responses.ts";

/** The same app and entries give the same document. `origin` is the address at which a server or an edge answers. */
export function describeApi(app: App, examples: Examples, origin = "http://127.0.0.1:3000"): Json {
  const named = nameTypes(app);
  const key = { type: "apiKey", in: "header", name: "X-App-Key", description: `The key of the app: \`${app.key}\`.` };
  return {
    openapi: "3.1.0",
    info: { title: app.name === "" ? app.key : app.name, version: "v1", description: ABOUT },
    servers: [{ url: "{origin}/api/v1", variables: { origin: { default: origin } } }],
    security: [{ appKey: [] }],
    tags: [{ name: "_schemas", description: "What content there is." }, ...app.types.map(describeTag)],
    paths: describePaths(named, examples),
    components: {
      securitySchemes: { appKey: key },
      schemas: describeSchemas(named),
      parameters: describeSharedParameters(named, examples),
      responses: describeSharedResponses(),
    },
  };
}

const ABOUT = `A read-only API for published content. Browsers may call it from any origin.

Some requests are counted, and \`X-Request-Counted\` says which. \`x-precast-counted\` says it of an operation without
optional parameters, and of a parameter when it is the only one besides those that are required. Several parameters
together are always counted.`;

function describeTag({ slug, name, description }: ContentType): Json {
  const about = [name, description].filter((text) => text !== "").map(escapeMarkdown);
  return { name: slug, ...(about.length === 0 ? {} : { description: about.join(": ") }) };
}

type Definition = { readonly properties: Readonly<Record<string, Json>>; readonly required: readonly string[] };

/**
 * The definitions of `precast types`. There, an answer is that to a request without `fields`, and all relations of a
 * populated entry are populated; here, each schema describes whatever the parameters of its endpoint ask for.
 */
function describeSchemas(named: NamedApp): Json {
  const text = writeJsonSchema(named, NO_VALUES);
  const { $defs } = JSON.parse(text, adaptMember) as { $defs: Record<string, Definition> };
  const widened = named.types.flatMap(({ name, type }) => {
    const [entry, populated] = [$defs[`${name}Entry`] as Definition, $defs[`${name}Populated`] as Definition];
    const relations = type.fields.filter((field) => field.type === "relation").map((field) => field.name);
    const either = relations.map((field) => [field, { anyOf: [entry.properties[field], populated.properties[field]] }]);
    const properties = { ...populated.properties, ...Object.fromEntries(either) };
    return [
      [`${name}Part`, { ...entry, title: `${name}Part`, required: ["id"] }],
      [`${name}Populated`, { ...populated, properties }],
      ...(["Item", "SearchItem"] as const).map((view) => allowPart($defs, name, view)),
    ] as const;
  });
  return { ...$defs, ...Object.fromEntries(widened) };
}

/** References lead to where OpenAPI has schemas. Labels are anybody's text, and descriptions are Markdown there. */
function adaptMember(key: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (key === "$ref") return value.replace("#/$defs/", "#/components/schemas/");
  return key === "description" ? escapeMarkdown(value) : value;
}

function allowPart($defs: Readonly<Record<string, Definition>>, name: string, view: View): readonly [string, Json] {
  const answer = $defs[`${name}${view}Answer`] as Definition;
  const items = { anyOf: [`${name}${view}`, `${name}Part`].map((one) => ({ $ref: `#/components/schemas/${one}` })) };
  return [`${name}${view}Answer`, { ...answer, properties: { ...answer.properties, data: { type: "array", items } } }];
}
