/**
 * Generates requests of every shape, valid and not, from the content that they ask for, so that most of them find
 * something.
 *
 * A target is what stands in the request line. It must reach the server as it is: `URL` and `fetch` would normalise
 * dot segments away. Left out are spellings that the contract does not settle: an hour 24, a second 60, escapes in
 * `/api/v1` itself, a `[` within a field's name, a page number too large for a double.
 */

import fc from "fast-check";
import { IDS, INSTANTS, MISSING_ID, SORTABLE_TEXTS, TEXTS } from "./content.ts";
import type { Bundle, BundleEntry, BundleType, ModelColumn } from "./model-bundle.ts";
import { fieldValues, findColumn } from "./model-bundle.ts";
import { OPERATORS } from "./model-request.ts";
import { searchableText, wordsOf } from "./model-search.ts";
import { textForm, timestampText } from "./model-value.ts";

export type GeneratedRequest = { method: string; target: string; appKey?: string; headers?: Record<string, string> };

/** A decoded parameter. */
type Pair = readonly [name: string, value: string];

/** Where values come from. `type` is a stand-in where the request names no type of the app. */
type Source = { type: BundleType; entries: readonly BundleEntry[] };

/** How a client encodes what it sends. */
type Spelling = { brackets: boolean; plus: boolean; lower: boolean; loose: boolean; eager: boolean };

/** Shorter than what Node and the servers in front of it accept. */
const LONGEST_QUERY = 8000;

export function arbitraryRequest(bundles: readonly Bundle[]): fc.Arbitrary<GeneratedRequest> {
  return fc
    .constantFrom(...bundles)
    .chain((bundle) => fc.tuple(fc.constant(bundle), someType(bundle)))
    .chain(([bundle, type]) => {
      const entries = Object.entries(bundle.entries).find(([slug]) => slug === type.slug)?.[1] ?? [];
      return fc.tuple(method(), target({ type, entries }), appKey(bundles, bundle.app.key), headers());
    })
    .map(([someMethod, someTarget, key, some]) => ({
      method: someMethod,
      target: someTarget,
      ...(key !== undefined && { appKey: key }),
      ...(some !== undefined && { headers: some }),
    }));
}

function someType({ types }: Bundle): fc.Arbitrary<BundleType> {
  const published = types.filter((type) => type.published !== false);
  return often(15, fc.constantFrom(...published), fc.constantFrom(...types));
}

function method(): fc.Arbitrary<string> {
  return often(20, fc.constant("GET"), fc.constantFrom("HEAD", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"));
}

function appKey(bundles: readonly Bundle[], own: string): fc.Arbitrary<string | undefined> {
  const keys = bundles.map((bundle) => bundle.app.key);
  const wrong = fc.constantFrom(
    undefined,
    "",
    "nobody",
    own.toUpperCase(),
    `${own}, ${own}`,
    keys.join(","),
    "%00",
    "../x",
  );
  return often(20, fc.constant<string | undefined>(own), fc.oneof(wrong, fc.constantFrom(...keys)));
}

function headers(): fc.Arbitrary<Record<string, string> | undefined> {
  const some = [{ accept: "application/json" }, { accept: "text/html" }, { origin: "https://site.example.com" }];
  return often(5, fc.constant(undefined), fc.constantFrom(...some));
}

function target(source: Source): fc.Arbitrary<string> {
  const usual = fc.oneof(
    { weight: 8, arbitrary: endpoint(listPath(source), listParameters(source)) },
    { weight: 4, arbitrary: endpoint(freePath(source), freeParameters(source)) },
    { weight: 4, arbitrary: endpoint(searchPath(source), searchParameters(source)) },
    { weight: 4, arbitrary: endpoint(entryPath(source), entryParameters(source)) },
    { weight: 1, arbitrary: endpoint(schemaPath(source), listParameters(source)) },
  );
  return often(20, usual, oddPath(source));
}

/** Path and query: the parameters are shuffled, some are repeated, and all are encoded in the same way. */
function endpoint(path: fc.Arbitrary<string>, parameters: fc.Arbitrary<Pair[]>): fc.Arbitrary<string> {
  const asSent = parameters.chain(withRepeats).chain(shuffled);
  return fc.tuple(path, asSent, spelling(), noise()).map(([somePath, pairs, someSpelling, extra]) => {
    const query = [...pairs.map((pair) => spell(pair, someSpelling)), ...extra];
    while (query.join("&").length > LONGEST_QUERY) query.shift();
    return query.length > 0 ? `${somePath}?${query.join("&")}` : somePath;
  });
}

// Paths

function freePath({ type }: Source): fc.Arbitrary<string> {
  return fc.constant(`/api/v1/${type.slug}`);
}

function listPath(source: Source): fc.Arbitrary<string> {
  return withSlash(slug(source).map((name) => `/api/v1/${name}`));
}

function searchPath(source: Source): fc.Arbitrary<string> {
  const last = often(15, fc.constant("search"), fc.constantFrom("%73earch", "Search"));
  return withSlash(fc.tuple(slug(source), last).map(([name, search]) => `/api/v1/${name}/${search}`));
}

function schemaPath(source: Source): fc.Arbitrary<string> {
  const schemas = often(8, fc.constant("_schemas"), fc.constantFrom("%5Fschemas", "%5fschemas"));
  const rest = fc.oneof(
    fc.constant(""),
    slug(source).map((name) => `/${name}`),
  );
  return withSlash(fc.tuple(schemas, rest).map(([first, second]) => `/api/v1/${first}${second}`));
}

function entryPath(source: Source): fc.Arbitrary<string> {
  return withSlash(fc.tuple(slug(source), entryId(source)).map(([name, id]) => `/api/v1/${name}/${id}`));
}

/** The type's own slug, escaped now and then, or one that no type has. */
function slug({ type }: Source): fc.Arbitrary<string> {
  const escaped = `%${type.slug.charCodeAt(0).toString(16)}${type.slug.slice(1)}`;
  const strange = fc.constantFrom(
    "nope",
    type.slug.toUpperCase(),
    `${type.slug}%20`,
    `${type.slug}%00`,
    "a%2Fb",
    "__proto__",
  );
  return often(20, often(15, fc.constant(type.slug), fc.constant(escaped)), strange);
}

function entryId({ entries }: Source): fc.Arbitrary<string> {
  const own = entries.length > 0 ? entries.map((entry) => entry.id.toLowerCase()) : IDS;
  const known = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...own) }, fc.constantFrom(...IDS, MISSING_ID));
  const misspelled = known.chain((id) =>
    fc.constantFrom(
      id.replaceAll("-", ""),
      `{${id}}`,
      `${id}%20`,
      id.slice(1),
      `${id}0`,
      "null",
      "%C3%A9",
      "search%2F",
    ),
  );
  return fc.oneof(
    { weight: 12, arbitrary: known },
    { weight: 3, arbitrary: known.map((id) => id.toUpperCase()) },
    { weight: 1, arbitrary: known.map((id) => id.replace("-", "%2d")) },
    { weight: 1, arbitrary: misspelled },
  );
}

function withSlash(path: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(path, often(10, fc.constant(""), fc.constant("/"))).map((parts) => parts.join(""));
}

function oddPath({ type }: Source): fc.Arbitrary<string> {
  const name = type.slug;
  return fc.constantFrom(
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v1//",
    `/${name}`,
    `/api/v2/${name}`,
    `/API/v1/${name}`,
    `//api/v1/${name}`,
    `/api//v1/${name}`,
    `/api/v1//${name}`,
    `/api/v1/${name}//`,
    `/api/v1/${name}//search?q=apple`,
    `/api/v1/./${name}`,
    `/api/v1/${name}/.`,
    `/api/v1/${name}/..`,
    `/api/v1/nope/../${name}`,
    `/api/v1/../v1/${name}`,
    `/api/v1/%2e%2e/${name}`,
    `/api/v1/%2E`,
    `/api/v1\\${name}`,
    `/api/v1/${name}\\search`,
    `/api/v1/${name}/%ZZ`,
    `/api/v1/%FF`,
    "/api/v1/%E3%81",
    "/api/v1/%",
    `/api/v1/${name}/search/more?q=apple`,
    `/api/v1/${name}/${MISSING_ID}/more`,
    `/api/v1/_schemas/${name}/more`,
    "/api/v1/_SCHEMAS",
    "/api/v1/_schemas//",
    `/api/v1/${name}%2Fsearch?q=apple`,
    `/api/v1/${name};v=1`,
    `/api/v1/${name}??page=2`,
    `/api/v1/${name}?`,
    `/api/v1/${name}?&&`,
  );
}

// Parameters

/** Parameters that leave a list uncounted, alone or with unknown ones; some of them are invalid. */
function freeParameters(source: Source): fc.Arbitrary<Pair[]> {
  const one = fc.oneof(
    { weight: 5, arbitrary: ownValue(source).map(([name, value]): Pair[] => [[`filter[${name}]`, value]]) },
    { weight: 4, arbitrary: sort(source).map((value): Pair[] => [["sort", value]]) },
    { weight: 4, arbitrary: page().map((value): Pair[] => [["page", value]]) },
    fc.constant<Pair[]>([]),
  );
  return fc.tuple(one, sometimes(6, strangers())).map(([pairs, more]) => [...pairs, ...more]);
}

function listParameters(source: Source): fc.Arbitrary<Pair[]> {
  return joined([filters(source), ...commonParameters(source), sometimes(6, strangers())]);
}

function searchParameters(source: Source): fc.Arbitrary<Pair[]> {
  const query = often(25, named("q", term(source)), fc.constant<Pair[]>([]));
  return joined([query, sometimes(4, filters(source)), ...commonParameters(source), sometimes(6, strangers())]);
}

function entryParameters(source: Source): fc.Arbitrary<Pair[]> {
  const populate = named("populate", names(source, ["author_id", "related"]));
  return joined([fc.oneof(populate, populate, fc.constant<Pair[]>([])), sometimes(6, strangers())]);
}

function commonParameters(source: Source): fc.Arbitrary<Pair[]>[] {
  return [
    sometimes(3, named("sort", sort(source))),
    sometimes(4, named("page", page())),
    sometimes(4, named("per_page", perPage())),
    sometimes(
      5,
      named(
        "fields",
        names(
          source,
          source.type.fields.map((field) => field.name),
        ),
      ),
    ),
  ];
}

function named(name: string, value: fc.Arbitrary<string>): fc.Arbitrary<Pair[]> {
  return value.map((text) => [[name, text]]);
}

function joined(parts: fc.Arbitrary<Pair[]>[]): fc.Arbitrary<Pair[]> {
  return fc.tuple(...parts).map((some) => some.flat());
}

function sort({ type }: Source): fc.Arbitrary<string> {
  const good = [...type.sortable_fields, "published_at", "created_at", "updated_at"].flatMap((name) => [
    name,
    `-${name}`,
  ]);
  const bad = ["-", "--title", "title,slug", "nope", "id", "body", " title", "title ", "TITLE", "+title", "cover_url"];
  const long = ["x".repeat(100), "x".repeat(101), "😀".repeat(101)];
  const other = [...type.fields.map((field) => field.name), "constructor", "__proto__", ...bad, ...long];
  return often(6, fc.constantFrom(...good), fc.constantFrom(...other));
}

function page(): fc.Arbitrary<string> {
  const bad = ["0", "00", "abc", "-1", "1.5", " 1", "1e1", "１", "+1", "0x1"];
  const good = ["1", "2", "3", "4", "01", "999", "9007199254740993", `1${"0".repeat(30)}`];
  return often(4, fc.constantFrom("1", "2", "2", "3", ...good), fc.constantFrom(...bad));
}

function perPage(): fc.Arbitrary<string> {
  const bad = ["0", "101", "x", "1.0", "-5", " 5", "1e1", `9${"0".repeat(30)}`, "٣"];
  return often(4, fc.constantFrom("1", "2", "3", "5", "20", "99", "100", "007"), fc.constantFrom(...bad));
}

/** For `fields` and `populate`: some names of the right kind, with spaces around them, and others. */
function names({ type }: Source, right: readonly string[]): fc.Arbitrary<string> {
  const media = type.fields.filter((field) => field.type === "media").map((field) => `${field.name}_url`);
  const others = [
    "id",
    "published_at",
    "created_at",
    "nope",
    "TITLE",
    "",
    "__proto__",
    "toString",
    "*",
    "author_id.title",
  ];
  const some = fc.shuffledSubarray([...right], { maxLength: Math.min(4, right.length) });
  const more = fc.array(fc.constantFrom(...others, ...media, ...right), { maxLength: 2 });
  const list = fc
    .tuple(some, more, fc.constantFrom(",", ",", ", ", " , "))
    .map(([first, second, comma]) => [...first, ...second].join(comma));
  const start = `${right[0] ?? "title"},`;
  const limits = [500, 501].flatMap((length) => [
    start.padEnd(length, "x"),
    start.padEnd(length, " "),
    "😀".repeat(length),
  ]);
  return often(8, list, fc.constantFrom(",", " ", ",,", ...limits));
}

/** Parameters that an endpoint ignores: unknown ones, those of other endpoints, empty ones. */
function strangers(): fc.Arbitrary<Pair[]> {
  return fc
    .constantFrom<Pair>(
      ["utm_source", "x"],
      ["fields[]", "title"],
      ["sort[]", "title"],
      ["page[]", "2"],
      ["populate", "author_id"],
      ["q", "apple"],
      ["fields", "title"],
      ["Page", "2"],
      ["filterx", "1"],
      ["filters[title]", "1"],
      ["Filter[title]", "1"],
      ["__proto__", "1"],
      ["limit", "1"],
      ["", "x"],
      ["page", ""],
      ["sort", ""],
      ["filter[title]", ""],
      ["filter[nope]", ""],
      ["populate", ""],
    )
    .map((pair) => [pair]);
}

// Filters

function filters(source: Source): fc.Arbitrary<Pair[]> {
  const few = (some: Source) => fc.array(often(10, ownFilter(some), oddFilter(some)), { maxLength: 3 });
  return fc.oneof(
    { weight: 10, arbitrary: ofOneEntry(source).chain(few) },
    { weight: 1, arbitrary: manyFilters(source) },
  );
}

/** Half of the time all values come from one entry, so that several conditions can hold at once. */
function ofOneEntry(source: Source): fc.Arbitrary<Source> {
  if (source.entries.length === 0) return fc.constant(source);
  const one = fc.constantFrom(...source.entries).map((entry) => ({ ...source, entries: [entry] }));
  return fc.oneof(fc.constant(source), one);
}

/** About ten fields: the limit. `like` does not count towards it. */
function manyFilters(source: Source): fc.Arbitrary<Pair[]> {
  const unknown = Array.from({ length: 12 }, (_, index) => `x${index}`);
  const known = source.type.filterable_fields;
  const few = fc.shuffledSubarray([...known, ...(known.length < 12 ? unknown : [])], { minLength: 9, maxLength: 12 });
  const suffix = fc.constantFrom("", "", "", "[neq]", "[in]", "[like]", "[nope]");
  return few
    .chain((some) => fc.tuple(...some.map((name) => suffix.map((end): Pair => [`filter[${name}]${end}`, "1"]))))
    .chain((pairs) => fc.constantFrom(pairs, [...pairs, ["filter[x0][lt]", "1"] as const]));
}

function ownFilter(source: Source): fc.Arbitrary<Pair> {
  const operator = fc.constantFrom("", "", "", ...OPERATORS, ...OPERATORS, "like");
  return fc.tuple(filterable(source), operator).chain(([column, name]) => {
    const value = valueFor(source, column, name);
    return value.map((text): Pair => [`filter[${column.name}]${name && `[${name}]`}`, text]);
  });
}

/** Mostly a filterable field, and a value to compare it with. */
function ownValue(source: Source): fc.Arbitrary<Pair> {
  return filterable(source).chain((column) => anyValue(source, column).map((text): Pair => [column.name, text]));
}

function filterable({ type }: Source): fc.Arbitrary<ModelColumn> {
  const columns = type.filterable_fields.map((name) => findColumn(type, name)).filter((one) => one !== undefined);
  const all = [...type.fields.map((field) => field.name), "created_at"].map((name) => findColumn(type, name));
  const others = all.filter((one) => one !== undefined);
  return often(20, fc.constantFrom(...(columns.length > 0 ? columns : others)), fc.constantFrom(...others));
}

function oddFilter(source: Source): fc.Arbitrary<Pair> {
  const known = source.type.filterable_fields;
  const name = fc.constantFrom(...(known.length > 0 ? known : ["title"]), "colour", "id", "__proto__", "Title");
  const form = fc.constantFrom(
    (field: string) => `filter[${field}]`,
    (field: string) => `filter[${field}][]`,
    (field: string) => `filter[${field}][EQ]`,
    (field: string) => `filter[${field}][LIKE]`,
    (field: string) => `filter[${field}][between]`,
    (field: string) => `filter[${field}][constructor]`,
    (field: string) => `filter[${field}][eq][x]`,
    (field: string) => `filter[${field}][like][x]`,
    (field: string) => `filter[${field}][like`,
    (field: string) => `filter[${field}][eq`,
    (field: string) => `filter[${field}][eq]x`,
    (field: string) => `filter[${field}][ eq]`,
    (field: string) => `filter[${field}]x`,
    (field: string) => `filter[${field}]]`,
    (field: string) => `filter[${field}`,
    (field: string) => `filter[ ${field}]`,
    (field: string) => `filter.${field}`,
    () => "filter",
    () => "filter[",
    () => "filter[]",
    () => "filter[][eq]",
    () => "filter[][like]",
    () => "filter[colour][like]",
    () => "filterx[title]",
  );
  return fc.tuple(name, form, anyText()).map(([field, write, value]): Pair => [write(field), value]);
}

function valueFor(source: Source, column: ModelColumn, operator: string): fc.Arbitrary<string> {
  switch (operator) {
    case "in":
    case "nin":
      return fc
        .array(often(5, anyValue(source, column), fc.constant("")), { maxLength: 4 })
        .map((some) => some.join(","));
    case "contains":
    case "starts_with":
      return anyValue(source, column).chain((text) => partOf(text, operator === "starts_with"));
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return ["text", "select", "media"].includes(column.type)
        ? often(3, numberText(), anyText())
        : anyValue(source, column);
    default:
      return anyValue(source, column);
  }
}

/** Mostly a stored value, as it is or in another spelling that means the same or nearly the same. */
function anyValue({ entries }: Source, column: ModelColumn): fc.Arbitrary<string> {
  const stored = entries.flatMap((entry) => fieldValues(entry, column)).map(textForm);
  const own = stored.length > 0 ? fc.constantFrom(...stored) : anyOf(column);
  return fc.oneof(
    { weight: 5, arbitrary: own },
    { weight: 3, arbitrary: own.chain((text) => spelledAnew(column, text)) },
    { weight: 2, arbitrary: anyOf(column) },
    { weight: 1, arbitrary: anyText() },
  );
}

function anyOf(column: ModelColumn): fc.Arbitrary<string> {
  switch (column.type) {
    case "number":
      return numberText();
    case "boolean":
      return fc.constantFrom("true", "false", "1", "0", "TRUE", "yes", "2", " true");
    case "date":
    case "datetime":
    case "timestamp":
      return instantText();
    case "relation":
      return fc.constantFrom(...IDS, MISSING_ID, "search");
    default:
      return anyText();
  }
}

function spelledAnew(column: ModelColumn, text: string): fc.Arbitrary<string> {
  switch (column.type) {
    case "number":
      return fc.constantFrom(
        `${text}${text.includes(".") || text.includes("e") ? "" : ".0"}`,
        `${text}e0`,
        `${text}E+00`,
        `${text}e 0`,
        ` ${text}`,
        `+${text}`,
      );
    case "date":
      return fc.constantFrom(
        `${text}T00:00`,
        `${text}T23:59:59.999Z`,
        `${text}T23:30:00-02:00`,
        `${text}T00:30 02:00`,
        `${text} `,
      );
    case "datetime":
    case "timestamp":
      return fc.constantFrom(...spellingsOfInstant(Date.parse(text)));
    case "relation":
      return fc.constantFrom(text.toUpperCase(), text.replaceAll("-", ""), ` ${text}`);
    default:
      return fc.constantFrom(text.toUpperCase(), text.toLowerCase(), text.trim(), `${text} `, text.normalize("NFD"));
  }
}

function spellingsOfInstant(instant: number): string[] {
  if (Number.isNaN(instant)) return ["never"];
  const plain = timestampText(instant).slice(0, -"+00:00".length);
  const local = (minutes: number) => timestampText(instant + minutes * 60_000).slice(0, -"+00:00".length);
  return [
    plain,
    `${plain}Z`,
    `${plain}999Z`,
    `${plain} 00:00`,
    `${local(120)}+02:00`,
    `${local(330)} 05:30`,
    `${local(-90)}-01:30`,
    plain.slice(0, 16),
    plain.slice(0, 10),
    plain.replace("T", " "),
    plain.replace("T", "  "),
    `${plain.replace("T", "t")}z`,
    `${plain}+0000`,
    `${local(330)} 0530`,
    `${local(-300)}-05`,
    `${local(120)} 02`,
  ];
}

function numberText(): fc.Arbitrary<string> {
  const good = [
    "0",
    "1",
    "2",
    "3.5",
    "12",
    "-7",
    "7",
    "007",
    "2020.0",
    "1e3",
    "1e+3",
    "1000",
    "5e-1",
    "-0",
    "1e999",
    "-1e999",
    "1e-999",
  ];
  return fc.constantFrom(
    ...good,
    "abc",
    "+5",
    "0x10",
    "1,5",
    "1.",
    ".5",
    "１２",
    "Infinity",
    "NaN",
    "1 000",
    "--1",
    "1e",
    "1\n",
  );
}

function instantText(): fc.Arbitrary<string> {
  const days = [
    "2026-01-20",
    "2026-01-21",
    "2024-02-29",
    "2026-02-29",
    "2026-02-30",
    "2026-13-01",
    "2026-1-2",
    "20260120",
  ];
  const bad = [
    "2026-02-30T10:00Z",
    "2026-01-20T25:00Z",
    "2026-01-20T15:61Z",
    "2026-01-20T15Z",
    "2026-01-20T15:30:00+0200",
  ];
  const more = ["now", "2026", "1768923000", "2026-01-20T15:30:00.Z", "2026-01-20T15:30:00  02:00", "2026-01-20T"];
  return often(3, fc.constantFrom(...INSTANTS, ...days), fc.constantFrom(...bad, ...more));
}

function anyText(): fc.Arbitrary<string> {
  return fc.constantFrom(...TEXTS, ...SORTABLE_TEXTS, "%", "_", "a\u0000b", "\u0000", "\ufffd", "\ufeffapple", "*");
}

/** A beginning of a text, or any part of it, in any case. */
function partOf(text: string, fromStart: boolean): fc.Arbitrary<string> {
  const points = [...text];
  return fc
    .tuple(fc.nat({ max: points.length }), fc.integer({ min: 1, max: 8 }), fc.nat({ max: 2 }))
    .map(([at, length, how]) => {
      const start = fromStart ? 0 : at;
      const part = points.slice(start, start + length).join("");
      return [part, part.toLowerCase(), part.toUpperCase()][how] ?? part;
    });
}

// Search terms

function term({ type, entries }: Source): fc.Arbitrary<string> {
  const words = entries
    .flatMap((entry) => wordsOf(searchableText(type, entry)))
    .filter((word) => [...word].length <= 200);
  const word = words.length > 0 ? fc.constantFrom(...words) : fc.constantFrom("apple", "zebra", "日本");
  const part = word.chain((text) => partOf(text, false));
  const glue = fc.constantFrom(" ", "  ", "-", ", ", "%", "_", "'", "😀", "\u00a0", "\u0000");
  const two = fc.tuple(fc.oneof(word, part), glue, fc.oneof(word, part)).map((parts) => parts.join(""));
  const hidden = fc.constantFrom(
    "zebra",
    "strong",
    "eacute",
    "amp",
    "nbsp",
    "alt",
    "color",
    "hidden",
    "href",
    "app le",
  );
  const common = fc.constantFrom(
    "apple",
    "zebra",
    "ap",
    "e1",
    "москва",
    "日本",
    "café",
    "apple zebra",
    "le ap",
    "istanbul",
  );
  const none = fc.constantFrom("!!", "%%", "__", "--", "😀😀", "''", "  ", "&&&", "\u0000\u0000");
  const limits = fc.constantFrom(
    "a",
    " b ",
    "é",
    "日",
    "😀",
    "x".repeat(200),
    "x".repeat(201),
    ` ${"x".repeat(200)} `,
    "😀".repeat(200),
  );
  return fc.oneof(
    { weight: 6, arbitrary: word },
    { weight: 4, arbitrary: part },
    { weight: 4, arbitrary: two },
    { weight: 2, arbitrary: word.map((text) => ` ${text.toUpperCase()} `) },
    { weight: 3, arbitrary: common },
    { weight: 2, arbitrary: hidden },
    { weight: 1, arbitrary: none },
    { weight: 1, arbitrary: limits },
  );
}

// Spelling

/** Sometimes repeats a parameter: empty, with the same or another value, or a filter in its other spelling (`[eq]`). */
function withRepeats(pairs: Pair[]): fc.Arbitrary<Pair[]> {
  if (pairs.length === 0) return fc.constant(pairs);
  const again = fc.constantFrom(...pairs).chain(([name, value]) => {
    const other = /^filter\[[^[\]]+\]$/.test(name) ? `${name}[eq]` : name.replace("][eq]", "]");
    return fc.constantFrom<Pair>(
      [name, ""],
      [name, value],
      [name, "1"],
      [name, `${value}x`],
      [other, value],
      [other, "1"],
    );
  });
  return fc
    .tuple(
      fc.constant(pairs),
      sometimes(
        6,
        again.map((pair) => [pair]),
      ),
    )
    .map((both) => both.flat());
}

function shuffled(pairs: Pair[]): fc.Arbitrary<Pair[]> {
  return fc.shuffledSubarray(pairs, { minLength: pairs.length });
}

function spelling(): fc.Arbitrary<Spelling> {
  const yes = fc.boolean();
  const rarely = often(8, fc.constant(false), fc.constant(true));
  return fc
    .tuple(yes, yes, yes, yes, rarely)
    .map(([brackets, plus, lower, loose, eager]) => ({ brackets, plus, lower, loose, eager }));
}

function spell([name, value]: Pair, how: Spelling): string {
  return `${encode(name, how)}=${encode(value, how)}`;
}

function encode(text: string, { brackets, plus, lower, loose, eager }: Spelling): string {
  const literal = `${brackets ? "[]" : ""}${loose ? ",:/@!$'()*;?" : ""}`;
  return [...text]
    .map((char) => {
      if (!eager && (/[A-Za-z0-9_.~-]/.test(char) || literal.includes(char))) return char;
      return char === " " && plus ? "+" : escapeBytes(char, lower);
    })
    .join("");
}

function escapeBytes(char: string, lower: boolean): string {
  const hex = [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  return lower ? hex : hex.toUpperCase();
}

/** Pieces of a query that no client should send: incomplete escapes, bytes that are not UTF-8, names without values. */
function noise(): fc.Arbitrary<string[]> {
  const pieces = [
    "",
    "page",
    "=",
    "=x",
    "%",
    "%ZZ=1",
    "page=%",
    "page=%FF",
    "q=ab%E3%81",
    "filter[%ff]=x",
    "a=b=c",
    "per%5Fpage=2",
  ];
  return sometimes(
    15,
    fc.constantFrom(...pieces).map((piece) => [piece]),
  );
}

function often<T>(weight: number, usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: other });
}

/** `some` one time in `count`, else nothing. */
function sometimes<T>(count: number, some: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> {
  return often<T[]>(count - 1, fc.constant([]), some);
}
