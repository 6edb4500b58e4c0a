/** Writes a request as code that sends it, in the languages of those who call the API. */
import { type App, type Column, type ContentType, findColumn, findType } from "../../../shared/api/catalog.ts";
import { listedValues } from "../../../shared/api/filter.ts";
import { type ApiRequest, type Filter, readRequest } from "../../../shared/api/request.ts";
import { readBoolean, readNames } from "../../../shared/api/value.ts";
import { nameTypes } from "../../types/names.ts";

/** `url` is where the API is: all before `/api/v1`. `target` is path and query, percent-encoded. */
export type Call = { readonly app: App; readonly url: string; readonly target: string };

export const LANGUAGES: Readonly<Record<string, (call: Call) => string>> = {
  curl: writeCurl,
  TypeScript: writeTypeScript,
  Swift: writeSwift,
  Kotlin: writeKotlin,
};

/** Brackets are globs to curl, unless it is told that they are none. */
function writeCurl({ app, url, target }: Call): string {
  return `curl -g -H ${quoteShell(`X-App-Key: ${app.key}`)} ${quoteShell(url + target)}`;
}

function writeSwift(call: Call): string {
  return `import Foundation

var request = URLRequest(url: URL(string: ${quoteSwift(address(call))})!)
request.setValue(${quoteSwift(call.app.key)}, forHTTPHeaderField: "X-App-Key")
let (data, _) = try await URLSession.shared.data(for: request)
print(String(decoding: data, as: UTF8.self))`;
}

function writeKotlin(call: Call): string {
  return `import java.net.HttpURLConnection
import java.net.URI

fun main() {
    val url = URI(${quoteKotlin(address(call))}).toURL()
    val connection = url.openConnection() as HttpURLConnection
    connection.setRequestProperty("X-App-Key", ${quoteKotlin(call.app.key)})
    val stream = if (connection.responseCode < 400) connection.inputStream else connection.errorStream
    println(stream.bufferedReader().readText())
}`;
}

/** The parsers of both languages are strict: brackets must be encoded. */
function address({ url, target }: Call): string {
  return url + target.replace(/[[\]]/g, encodeURIComponent);
}

// Texts as literals of a language, which no text can leave.

export function quoteShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export function quoteSwift(text: string): string {
  const escapeOne = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  return `"${text.replace(/[\\"]/g, "\\$&").replace(UNPRINTABLE, escapeOne)}"`;
}

export function quoteKotlin(text: string): string {
  const escapeOne = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `"${text.replace(/[\\"$]/g, "\\$&").replace(UNPRINTABLE, escapeOne)}"`;
}

const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

// TypeScript, with the client of this package and the types that `precast types` writes.

function writeTypeScript({ app, url, target }: Call): string {
  const request = readRequest({ method: "GET", target, appKey: app.key });
  if (request.kind !== "request") return `// ${JSON.stringify(target)} is no endpoint of the API.`;
  const { name } = nameTypes(app);
  return `// precast types --app ${app.key} --write ${app.key}.ts
import { createClient } from "precast/client";
import type { ${name} } from "./${app.key}.ts";

const api = createClient<${name}>({ url: ${JSON.stringify(url)}, appKey: ${JSON.stringify(app.key)} });
${writeStatement(request, app)}`;
}

function writeStatement(request: ApiRequest, app: App): string {
  const { route, parameters } = request;
  if (route.kind === "catalog") return "const types = await api.catalog();";
  const slug = JSON.stringify(route.slug);
  if (route.kind === "schema") return `const schema = await api.schema(${slug});`;
  const isPlain = /^[a-z][a-z0-9_]*$/.test(route.slug) && !OWN_NAMES.includes(route.slug);
  const type = isPlain ? `api.${route.slug}` : `api.type(${slug})`;
  const options = writeOptions(request, findType(app, route.slug));
  switch (route.kind) {
    case "entry":
      return `const entry = await ${type}.get(${[JSON.stringify(route.id), ...options].join(", ")});`;
    case "search":
      return `const { data, meta } = await ${type}.search(${[JSON.stringify(parameters.q ?? ""), ...options].join(", ")});`;
    case "list":
      return `const { data, meta } = await ${type}.list(${options.join()});`;
  }
}

/** What the client has beside the content types. */
const OWN_NAMES: readonly string[] = ["price", "catalog", "schema", "type"];

/** The object of options, or nothing when there are none. */
function writeOptions({ parameters }: ApiRequest, type: ContentType | undefined): string[] {
  const { filters, sort, page, per_page, fields, populate } = parameters;
  const options = [
    ...(filters.length === 0 ? [] : [`filter: ${writeFilters(filters, type)}`]),
    ...(sort === undefined ? [] : [`sort: ${JSON.stringify(sort)}`]),
    ...(page === undefined ? [] : [`page: ${writeNumber(page)}`]),
    ...(per_page === undefined ? [] : [`perPage: ${writeNumber(per_page)}`]),
    ...(fields === undefined ? [] : [`fields: ${writeNames(fields)}`]),
    ...(populate === undefined ? [] : [`populate: ${writeNames(populate)}`]),
  ];
  if (options.length === 0) return [];
  const line = `{ ${options.join(", ")} }`;
  return [line.length <= 50 ? line : `{\n${options.map((option) => `  ${option},\n`).join("")}}`];
}

/** Several conditions on one field are the operators of one object. */
function writeFilters(filters: readonly Filter[], type: ContentType | undefined): string {
  const fields = [...new Set(filters.map(({ field }) => field ?? ""))];
  const parts = fields.map((name) => {
    const conditions = filters.filter(({ field }) => (field ?? "") === name);
    const column = type && findColumn(type, name);
    const [first, ...more] = conditions as [Filter, ...Filter[]];
    const value =
      first.operator === "eq" && more.length === 0
        ? writeValue(column, first.value)
        : `{ ${conditions.map((one) => `${writeKey(one.operator)}: ${writeOperand(column, one)}`).join(", ")} }`;
    return `${writeKey(name)}: ${value}`;
  });
  return `{ ${parts.join(", ")} }`;
}

function writeOperand(column: Column | undefined, { operator, value }: Filter): string {
  if (operator === "contains" || operator === "starts_with") return JSON.stringify(value);
  if (operator !== "in" && operator !== "nin") return writeValue(column, value);
  return `[${listedValues(operator, value)
    .map((one) => writeValue(column, one))
    .join(", ")}]`;
}

function writeValue(column: Column | undefined, text: string): string {
  if (column?.type === "number") return writeNumber(text);
  const truth = column?.type === "boolean" ? readBoolean(text) : null;
  return truth === null ? JSON.stringify(text) : String(truth);
}

/** What is none, or loses digits, is left to the API as text. */
function writeNumber(text: string): string {
  return String(Number(text)) === text ? text : JSON.stringify(text);
}

function writeNames(text: string): string {
  return JSON.stringify(readNames(text).filter((name) => name !== "")).replaceAll('","', '", "');
}

function writeKey(name: string): string {
  return /^[a-zA-Z_]\w*$/.test(name) ? name : JSON.stringify(name);
}
