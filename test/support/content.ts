/**
 * Generates valid bundles full of edge cases, and writes them as folders that `import` reads.
 *
 * Every value comes from a short pool, so that values tie, filters match and a failure shrinks to something readable.
 * Left out, because the contract does not settle them or two correct programs may differ: U+0000 and lone surrogates,
 * capital sigma (its lower case depends on the next letter), numbers that JavaScript and PostgreSQL print differently,
 * and in sortable text whatever ICU versions sort differently (emoji, punctuation).
 */
import { mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import fc from "fast-check";
import type { FieldType } from "../../shared/api/catalog.ts";
import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";

/** Pseudo-random text, for a value that compression cannot fit into a b-tree index row, at most about 2,700 bytes. */
function noise(length: number): string {
  let state = 42;
  const letters = Array.from({ length }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return "abcdefghijklmnopqrstuvwxyz0123456789"[Math.floor(state / 65_536) % 36];
  });
  return letters.join("");
}

const LONG_TEXTS = [`${"x".repeat(600)}a`, `${"x".repeat(600)}b`, "も".repeat(600)];

/** Accents, case, digits, spaces and CJK: texts that all ICU versions sort alike. */
export const SORTABLE_TEXTS = [
  "",
  "Apple",
  "apple",
  "APPLE",
  "apple pie",
  "pineapple",
  "zebras and apples",
  "Äpfel",
  "Zebra",
  "zebra",
  "été",
  "e\u0301te\u0301",
  "Ete",
  "straße",
  "STRASSE",
  "naïve café",
  "Ångström",
  "Москва",
  "москва",
  "日本",
  "日本語",
  "12",
  "3.5",
  "-7",
  "1e3",
  "007",
  "9",
  "10",
  "true",
  ...LONG_TEXTS,
];

export const TEXTS = [
  ...SORTABLE_TEXTS,
  " padded ",
  "a,b",
  ",",
  "100%",
  "50%_off",
  "under_score",
  "a/b",
  "../../etc/passwd",
  "..",
  ".",
  "back\\slash",
  "C:\\temp\\%s",
  `she said "hi"`,
  "it's",
  "'; DROP TABLE entries; --",
  "1 OR 1=1",
  "<b>bold & brave</b>",
  "a < b && c > d",
  "&amp;",
  "a+b=c&d",
  "tab\there",
  "line\nbreak",
  "😀",
  "smile 😀 apple",
  "👩‍👩‍👧 family",
  "❤\ufe0f",
  "İstanbul",
  "ǅ",
  "Ünïcödé",
  "αβγ Ωμέγα",
  "null",
  "[object Object]",
  "$1",
  "{}",
  "１２",
  noise(3000),
];

const SELECTS = ["Match Report", "match report", "News", "a,b", "ÄÖÜ", "12", "3.5", "100%", "o'neil", "日本"];
const SORTABLE_SELECTS = ["Match Report", "match report", "News", "ÄÖÜ", "12", "3.5", "日本"];

const MEDIA = [
  "poster.jpg",
  "Poster.JPG",
  "T20 final.png",
  "a/b.png",
  "100%.gif",
  "ü+ö.webp",
  "..",
  "12",
  "q?x#y.pdf",
  "😀.png",
];
const SORTABLE_MEDIA = ["poster", "Poster", "T20 final", "über", "12", "007"];

const HTML = [
  "<p>Apple pie</p>",
  "<p>app</p><p>le</p>",
  "ap<b>ple</b> Москва",
  "one<br>two<br/>three",
  `<img alt="a > b zebra" src='x>y'>shown`,
  "<!-- hidden zebra --> visible",
  "<style>p { color: zebra }</style> <script>if (a < b) zebra()</script> plain",
  "<ul><li>caf&eacute;</li><li>stra&#xDF;e</li></ul>",
  "fish &amp; chips &amp;eacute; &lt;b&gt; na&#239;ve &#x65E5;&#x672C; &mdash; end&hellip;",
  "1 < 2 and 3 > 2",
  '<a href="https://example.com/zebra" class="apple">link</a>ed',
  "<H1>Big</H1>small",
  "<table><tr><td>cell</td><td>cells</td></tr></table>",
  "",
  "no markup at all 😀",
  "İstanbul <i>straße</i>",
];

const NUMBERS = [
  0, 1, -1, 2, 3.5, 12, -7, 7, 100, 1000, 2020, 2020.5, 0.1, -0.25, 0.00001, 123456.789, 999999999999999,
];

const DAYS = ["1900-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "2026-01-20", "2026-01-21", "2026-12-31"];

/** Includes equal timestamps in different spellings, and more digits than are stored. */
export const INSTANTS = [
  "2026-01-20T15:30:00Z",
  "2026-01-20T17:30:00+02:00",
  "2026-01-20T15:30:00.000+00:00",
  "2026-01-20T15:30:00.001Z",
  "2026-01-20T15:30:00.0019Z",
  "2026-01-20T15:30:00.999999Z",
  "2026-01-20T15:30Z",
  "2026-01-20T23:30:00-02:00",
  "2026-01-21T00:00:00Z",
  "2024-02-29T23:59:59.5Z",
  "1969-12-31T23:59:59.9999Z",
  "1970-01-01T00:00:00Z",
  "2099-06-01T12:00:00+05:30",
];

const DOCUMENTS: readonly unknown[] = [
  {},
  [],
  0,
  false,
  "text",
  { a: 1, bb: [true, null, { c: "é" }], constructor: "x" },
  [1.5, "two", null],
  { "key with spaces": { deep: { deeper: "<b>" } }, "": "empty key" },
];

/**
 * One pool for all types and both apps, so that an id alone identifies no entry. Only the format of a UUID matters: the
 * last two have version digits that no RFC assigns to generated UUIDs.
 */
export const IDS = [
  ...Array.from({ length: 28 }, (_, index) => {
    const hex = (value: number, length: number) => value.toString(16).padStart(length, "0");
    const start = hex((index * 2_654_435_761) % 4_294_967_296, 8);
    return `${start}-abcd-4ef0-9a${hex(index, 2)}-${hex(index * 7_777_777_777, 12)}`;
  }),
  "12345678-1234-0234-0234-123456789abc",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
];
export const MISSING_ID = "deadbeef-dead-4eef-8ead-deadbeefdead";

const SLUGS = ["posts", "search", "constructor", "a-b_c", "0", `long-${"x".repeat(59)}`];
const KEYS = [
  ["demo", "Demo"],
  ["a", "a-b_c"],
] as const;

type FieldKind = { name: string; type: FieldType; multiple?: boolean };

/** Every field type, single and multiple. Some legal names look like something else: a parameter, a media companion. */
const FIELDS: FieldKind[] = [
  { name: "title", type: "text" },
  { name: "slug", type: "text" },
  { name: "sort", type: "text" },
  { name: "title_url", type: "text" },
  { name: "f".repeat(63), type: "text" },
  { name: "aliases", type: "text", multiple: true },
  { name: "body", type: "rich_text" },
  { name: "filter", type: "rich_text" },
  { name: "category", type: "select" },
  { name: "tags", type: "select", multiple: true },
  { name: "cover", type: "media" },
  { name: "gallery", type: "media", multiple: true },
  { name: "author_id", type: "relation" },
  { name: "related", type: "relation", multiple: true },
  { name: "price", type: "number" },
  { name: "constructor", type: "number" },
  { name: "active", type: "boolean" },
  { name: "day", type: "date" },
  { name: "starts_at", type: "datetime" },
  { name: "extra", type: "json" },
];

const TIMESTAMPS = ["published_at", "created_at", "updated_at"];
const SEARCHABLE: readonly FieldType[] = ["text", "rich_text", "select"];
const OPAQUE: readonly FieldType[] = ["rich_text", "json"];

/** Two apps with the same slugs and ids, and different content types and entries under them. */
export function arbitraryBundles(): fc.Arbitrary<Bundle[]> {
  const slugs = fc.shuffledSubarray(SLUGS, { minLength: 2, maxLength: 3 });
  return fc
    .tuple(slugs, fc.constantFrom(...KEYS))
    .chain(([some, keys]) => fc.tuple(...keys.map((key) => arbitraryBundle(key, some))));
}

function arbitraryBundle(key: string, slugs: readonly string[]): fc.Arbitrary<Bundle> {
  const base = fc.constantFrom("https://media.example.com", "https://media.example.com/base/");
  const app = plain({
    key: fc.constant(key),
    name: fc.constantFrom("Demo", "Ünïcödé 😀"),
    media_base_url: maybe(base),
  });
  const hidden = fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, fc.nat({ max: slugs.length - 1 }));
  return hidden
    .chain((index) => fc.tuple(...slugs.map((slug, at) => arbitraryType(slug, slugs, at !== index))))
    .chain((types) => fc.tuple(app, fc.constant(types), fc.tuple(...types.map(arbitraryEntries))))
    .map(([someApp, types, entries]) => ({
      app: someApp as Bundle["app"],
      types,
      entries: Object.fromEntries(types.map((type, at) => [type.slug, entries[at] ?? []])),
    }));
}

/** `published` may be left out where it is true. */
function arbitraryType(slug: string, slugs: readonly string[], published: boolean): fc.Arbitrary<BundleType> {
  return fc
    .shuffledSubarray(FIELDS, { minLength: 3 })
    .chain((kinds) => fc.tuple(...kinds.map((kind) => arbitraryField(kind, slugs))))
    .chain((fields) => {
      const open = fields.filter((field) => !OPAQUE.includes(field.type));
      const single = open.filter((field) => field.type !== "relation" && field.multiple !== true);
      return fc.tuple(
        fc.constant(fields),
        mostOf([...namesOf(open), ...TIMESTAMPS]),
        mostOf([...namesOf(single), ...TIMESTAMPS]),
      );
    })
    .chain(([fields, filterable, sortable]) => {
      const sorts = [...sortable, ...TIMESTAMPS].flatMap((name) => [name, `-${name}`]);
      const plainFields = fields.filter((field) => field.type !== "rich_text");
      return plain({
        slug: fc.constant(slug),
        name: fc.constantFrom("Posts", "Ünïcödé 😀", `"quoted"`),
        description: fc.constantFrom("", "What <b>we</b> write."),
        icon: fc.constantFrom("document", ""),
        position: maybe(fc.integer({ min: 1, max: 3 })),
        published: published ? maybe(fc.constant(true)) : fc.constant(false),
        default_sort: maybe(fc.constantFrom(...sorts)),
        per_page: maybe(fc.integer({ min: 1, max: 5 })),
        summary_fields: maybe(fc.shuffledSubarray(namesOf(plainFields))),
        fields: fc.constant(fields),
        filterable_fields: fc.constant(filterable),
        sortable_fields: fc.constant(sortable),
      });
    })
    .map((type) => type as BundleType);
}

function arbitraryField(kind: FieldKind, slugs: readonly string[]): fc.Arbitrary<BundleField> {
  const { name, type } = kind;
  return plain({
    name: fc.constant(name),
    type: fc.constant(type),
    label: fc.constantFrom(name, "Étiquette", `"label" 😀`),
    required: oneIn(5),
    searchable: SEARCHABLE.includes(type) ? oneIn(4).map((not) => !not) : fc.constant(false),
    multiple: kind.multiple ? fc.constant(true) : maybe(fc.constant(false)),
    target: type === "relation" ? fc.constantFrom(...slugs) : fc.constant(undefined),
  }).map((field) => field as BundleField);
}

function arbitraryEntries(type: BundleType): fc.Arbitrary<BundleEntry[]> {
  const many = fc.shuffledSubarray(IDS, { minLength: 10, maxLength: 25 });
  return fc
    .oneof({ weight: 3, arbitrary: many }, fc.shuffledSubarray(IDS, { maxLength: 10 }))
    .chain((ids) => fc.tuple(...ids.map((id) => arbitraryEntry(type, id))));
}

function arbitraryEntry(type: BundleType, id: string): fc.Arbitrary<BundleEntry> {
  const instant = fc.constantFrom(...INSTANTS);
  const published = fc.tuple(fc.constant("published"), instant);
  const draft = fc.tuple(fc.constant("draft"), fc.oneof(fc.constant(null), instant));
  return fc
    .tuple(
      anyCase(fc.constant(id)),
      fc.oneof({ weight: 4, arbitrary: published }, { weight: 1, arbitrary: draft }),
      instant,
      instant,
      plain(Object.fromEntries(type.fields.map((field) => [field.name, arbitraryValue(type, field)]))),
    )
    .map(([ownId, [status, published_at], created_at, updated_at, data]) => {
      return { id: ownId, status: status as BundleEntry["status"], published_at, created_at, updated_at, data };
    });
}

/** A field's value; `undefined` leaves it out. */
function arbitraryValue(type: BundleType, field: BundleField): fc.Arbitrary<unknown> {
  const one = arbitraryOne(field.type, type.sortable_fields.includes(field.name));
  const value = field.multiple ? fc.array(one, { minLength: field.required ? 1 : 0, maxLength: 4 }) : one;
  if (field.required) return value;
  return fc.oneof({ weight: 6, arbitrary: value }, fc.constant(null), fc.constant(undefined));
}

function arbitraryOne(type: FieldType, sortable: boolean): fc.Arbitrary<unknown> {
  switch (type) {
    case "text":
      return fc.constantFrom(...(sortable ? SORTABLE_TEXTS : TEXTS));
    case "select":
      return fc.constantFrom(...(sortable ? SORTABLE_SELECTS : SELECTS));
    case "media":
      return fc.constantFrom(...(sortable ? SORTABLE_MEDIA : MEDIA));
    case "rich_text":
      return fc.constantFrom(...HTML);
    case "relation":
      return anyCase(fc.constantFrom(...IDS, MISSING_ID));
    case "number":
      return fc.constantFrom(...NUMBERS);
    case "boolean":
      return fc.boolean();
    case "date":
      return fc.constantFrom(...DAYS);
    case "datetime":
      return fc.constantFrom(...INSTANTS);
    case "json":
      return fc.constantFrom(...DOCUMENTS);
  }
}

function namesOf(fields: readonly BundleField[]): string[] {
  return fields.map((field) => field.name);
}

/** Usually half of the names or more, sometimes fewer or none. */
function mostOf(names: string[]): fc.Arbitrary<string[]> {
  const most = fc.shuffledSubarray(names, { minLength: Math.ceil(names.length / 2) });
  return fc.oneof({ weight: 5, arbitrary: most }, fc.shuffledSubarray(names));
}

function oneIn(count: number): fc.Arbitrary<boolean> {
  return fc.nat({ max: count - 1 }).map((value) => value === 1);
}

function anyCase(id: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(id, oneIn(6)).map(([text, upper]) => (upper ? text.toUpperCase() : text));
}

function maybe<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof(fc.constant(undefined), value);
}

/** An object without the keys whose value is undefined: such keys are left out of the files. */
function plain(parts: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc.tuple(...Object.values(parts)).map((values) => {
    const pairs = Object.keys(parts).map((key, at) => [key, values[at]] as const);
    return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
  });
}

/** Writes a bundle as a folder that `import` reads. A type without entries gets no entries file. */
export async function writeBundle(folder: string, bundle: Bundle): Promise<void> {
  await mkdir(join(folder, "content_types"), { recursive: true });
  await mkdir(join(folder, "entries"), { recursive: true });
  await writeFile(join(folder, "app.json"), JSON.stringify(bundle.app, null, 2));
  for (const type of bundle.types) {
    await writeFile(join(folder, "content_types", `${type.slug}.json`), JSON.stringify(type, null, 2));
  }
  for (const [slug, entries] of Object.entries(bundle.entries).filter(([, some]) => some.length > 0)) {
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`);
    await writeFile(join(folder, "entries", `${slug}.ndjson`), lines.join(""));
  }
}

/** Folders of bundles of real content, where TEST_BUNDLES names any. */
export const REAL_BUNDLES = (process.env.TEST_BUNDLES ?? "").split(delimiter).filter((folder) => folder !== "");
