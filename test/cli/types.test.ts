/** `precast types`: what it writes describes every answer, compiles, and is the same wherever the app is read. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Language, Parser } from "web-tree-sitter";
import { nameTypes, VIEWS } from "../../cli/types/names.ts";
import { writeTypeScript } from "../../cli/types/typescript.ts";
import { segment } from "../../shared/api/address.ts";
import { openPlace, type Place, type RunningServer, readTree, SHOP, shop } from "../support/cli.ts";
import { REAL_BUNDLES, writeBundle } from "../support/content.ts";
import { openStore, type Store } from "../support/site.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MEDIA = "https://media.test";
const LANGUAGES = ["ts", "json-schema", "swift", "kotlin", "dart"];

let store: Store;
let place: Place;
let server: RunningServer;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: MEDIA });
  await place.import(shop());
  expect((await place.call(`import ${join(ROOT, "cli/demo")}`)).code).toBe(0);
  expect((await place.call("build")).code).toBe(0);
  server = await place.serve();
});
afterAll(async () => {
  await place.close();
  await store.close();
});

async function types(line: string): Promise<string> {
  const { code, stdout, stderr } = await place.call(`types ${line}`);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

/** The definition that describes the answer in a file of a tree: `posts/entry/….json` is a PostsEntryAnswer. */
function definitionOf(file: string, names: ReadonlyMap<string, string>): string {
  const [slug = "", kind] = file.split("/");
  if (slug.startsWith("_schemas")) return kind === undefined ? "Catalog" : "Schema";
  return `${names.get(slug)}${kind === "entry" ? "Entry" : "Item"}Answer`;
}

/** What the JSON Schema has against an answer: nothing, if it describes it. */
async function openSchema(key: string) {
  const ajv = addFormats.default(new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }));
  const schema = JSON.parse(await types(`--app ${key} --lang json-schema`));
  ajv.addSchema(schema, "app");
  const problems = (name: string, answer: unknown) => {
    const validate = ajv.getSchema(`app#/$defs/${name}`);
    if (validate === undefined) return [`there is no ${name}`];
    return validate(answer) ? [] : (validate.errors ?? []);
  };
  return { schema, problems };
}

/** Validates every file of the tree, and of each type a sample of what only the server answers. */
async function proveSchema(key: string, names: ReadonlyMap<string, string>): Promise<void> {
  const { schema, problems } = await openSchema(key);
  const root = join(place.folder, "out", segment(key), "v1");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".json"));
  expect(files.length).toBeGreaterThan(40);
  const read = (file: string) => JSON.parse(readFileSync(join(root, file), "utf8"));
  for (const file of files) {
    const found = problems(definitionOf(file, names), read(file));
    if (found.length > 0) expect([file, found]).toEqual([file, []]);
  }
  const ask = async (target: string) => (await server.get(`/api/v1/${target}`, { appKey: key })).json;
  for (const [slug, name] of names) {
    const entries = files.filter((path) => path.startsWith(`${slug}/entry/`)).slice(0, 20);
    for (const word of ["an", "er", "on"]) {
      const found = await ask(`${slug}/search?q=${word}&per_page=100`);
      expect([slug, problems(`${name}SearchItemAnswer`, found)]).toEqual([slug, []]);
    }
    // A list that names all properties has what an entry has.
    const everything = Object.keys(schema.$defs[`${name}Entry`].properties);
    for (const item of (await ask(`${slug}?per_page=100&fields=${everything.join()}`)).data)
      expect([slug, problems(`${name}EntryAnswer`, { data: item })]).toEqual([slug, []]);
    const relations = relationsIn(schema, `${name}Populated`);
    for (const file of entries) {
      const entry = read(file);
      const populated = await ask(`${slug}/${entry.data.id}?populate=${relations.join()}`);
      expect([file, problems(`${name}PopulatedAnswer`, populated)]).toEqual([file, []]);
      expect(problems(`${name}ItemAnswer`, entry)).not.toEqual([]);
    }
  }
  expect(problems("ApiError", await ask(`${[...names.keys()][0]}?per_page=0`))).toEqual([]);
}

test.skipIf(REAL_BUNDLES.length === 0)(
  `the JSON Schema describes all answers of real content${REAL_BUNDLES.length === 0 ? " (no TEST_BUNDLES)" : ""}`,
  async () => {
    for (const folder of REAL_BUNDLES) {
      const { key } = JSON.parse(readFileSync(join(folder, "app.json"), "utf8"));
      expect((await place.call(["import", folder])).stderr).toBe("");
      expect((await place.call(`build --app ${key}`)).code).toBe(0);
      const catalog = (await server.get("/api/v1/_schemas", { appKey: key })).json as { data: { slug: string }[] };
      const app = { key, name: "", media_base_url: "", types: catalog.data.map(({ slug }) => typeOf(slug, [])) };
      await proveSchema(key, new Map(nameTypes(app).types.map(({ type, name }) => [type.slug, name])));
    }
  },
  900_000,
);

describe.each([
  { key: SHOP, names: { posts: "Posts", authors: "Authors", notes: "Notes" } },
  { key: "atlas", names: { cities: "Cities", countries: "Countries", journeys: "Journeys" } },
])("of $key", ({ key, names }) => {
  test("the JSON Schema describes every file of the tree, searches, lists and populated entries, and no other answer", () =>
    proveSchema(key, new Map(Object.entries(names))));

  test.each(LANGUAGES)("a database, a bundle and a tree give the same types: %s", async (language) => {
    const bundle = join(place.folder, `bundle-${key}`);
    if (key === SHOP) {
      mkdirSync(bundle, { recursive: true });
      await writeBundle(bundle, shop());
    } else cpSync(join(ROOT, "cli/demo"), bundle, { recursive: true });
    const fromDatabase = await types(`--app ${key} --lang ${language}`);
    expect(await types(`${bundle} --lang ${language}`)).toBe(fromDatabase);
    expect(await types(`out --app ${key} --lang ${language}`)).toBe(fromDatabase);
  });

  test("the TypeScript compiles strictly, and so do answers of its types", async () => {
    const folder = join(place.folder, `ts-${key}`);
    mkdirSync(folder);
    writeFileSync(join(folder, "app.ts"), await types(`--app ${key}`));
    const root = join(place.folder, "out", segment(key), "v1");
    const byName = new Map(Object.entries(names));
    const answers = [...readTree(root)]
      .filter(([file]) => !file.startsWith("_schemas"))
      .slice(0, 60)
      .map(([file, text], index) => {
        const name = definitionOf(file, byName).replace(/Answer$/, "");
        const { data } = JSON.parse(text) as { data: unknown };
        return `export const a${index}: App.${name}${Array.isArray(data) ? "[]" : ""} = ${JSON.stringify(data)};`;
      });
    writeFileSync(join(folder, "answers.ts"), [`import type * as App from "./app.ts";`, ...answers].join("\n"));
    compile(folder, "answers.ts");
  });
});

/** The names of the relations of a view: the properties that may be an entry. */
function relationsIn(schema: { $defs: Record<string, { properties: object }> }, name: string): string[] {
  return Object.entries(schema.$defs[name]?.properties ?? {}).flatMap(([field, value]) =>
    /#\/\$defs\/\w+Entry"/.test(JSON.stringify(value)) ? [field] : [],
  );
}

/** Fails with what the compiler says. */
function compile(folder: string, ...files: readonly string[]): void {
  const options = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "preserve",
    "--allowImportingTsExtensions",
  ];
  execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...options, ...files], {
    cwd: folder,
    encoding: "utf8",
    stdio: "pipe",
  });
}

test("a bundle needs no database", async () => {
  const bundle = join(ROOT, "cli/demo");
  const { code, stdout, stderr } = await place.call(`types ${bundle}`, { DATABASE_URL: "", CI: "1" });
  expect([code, stderr, stdout.includes("export interface Atlas {")]).toEqual([0, "", true]);
  expect((await place.call("types", { DATABASE_URL: "" })).stderr).toMatch(/^There is no database in \.precast: /);
});

test("the TypeScript says what each view has, and which names parameters may have", async () => {
  const folder = join(place.folder, "ts-views");
  mkdirSync(folder);
  writeFileSync(join(folder, "shop.ts"), await types(`--app ${SHOP}`));
  writeFileSync(
    join(folder, "check.ts"),
    `import type { AuthorsEntry, PostsEntry, PostsItem, PostsPopulated, PostsSearchItem, Shop } from "./shop.ts";
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const checks: [
  Equal<PostsEntry["title"], string>, Equal<PostsEntry["price"], number | null>, Equal<PostsEntry["active"], boolean | null>,
  Equal<PostsEntry["tags"], string[] | null>, Equal<PostsEntry["cover_url"], string | null>,
  Equal<PostsEntry["author_id"], string | null>, Equal<PostsPopulated["author_id"], AuthorsEntry | null>,
  Equal<Exclude<keyof PostsEntry, keyof PostsItem>, "body">, Equal<PostsEntry["body"], string | null>,
  Equal<keyof PostsSearchItem, "id" | "title" | "category" | "published_at">,
  Equal<keyof Shop, "posts" | "authors" | "notes">, Equal<Shop["posts"]["item"], PostsItem>,
  Equal<Shop["posts"]["filter"], "category" | "tags" | "price" | "active" | "day" | "author_id">,
  Equal<Shop["posts"]["sort"], "price" | "published_at" | "created_at" | "updated_at">,
  Equal<Shop["posts"]["populate"], "author_id">, Equal<Shop["authors"]["populate"], never>,
] = [true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true];
export default checks;
`,
  );
  compile(folder, "check.ts");
});

test("--values makes unions of the values that entries have", async () => {
  expect(await types(`--app ${SHOP} --values`)).toMatch(/^ {2}category: ("[^"]+" \| )+null;$/m);
  const schema = JSON.parse(await types(`--app ${SHOP} --values --lang json-schema`));
  expect(JSON.stringify(schema.$defs.PostsItem.properties.category)).toMatch(/"enum":\["[^"]+"/);
  const { code, stderr } = await place.call(`types out --app ${SHOP} --values`);
  expect([code, stderr]).toEqual([1, "--values needs the database: leave out the folder.\n"]);
});

test("--check exits with 2 when the file is not what would be written, and changes nothing", async () => {
  const file = join(place.folder, "new", "shop.ts");
  const line = `types --app ${SHOP} --write ${file}`;
  expect((await place.call(`${line} --check`)).code).toBe(2);
  expect(await place.call(line)).toMatchObject({ code: 0, stdout: `Wrote ${file}.\n` });
  expect(await place.call(`${line} --check`)).toMatchObject({ code: 0, stdout: `${file} is current.\n` });
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `${text}\n`);
  expect(await place.call(`${line} --check`)).toMatchObject({
    code: 2,
    stdout: expect.stringContaining("out of date"),
  });
  expect(readFileSync(file, "utf8")).toBe(`${text}\n`);
  const vain = await place.call(`types --app ${SHOP} --check`);
  expect([vain.code, vain.stderr]).toEqual([1, "--check has no effect without --write\n"]);
});

test.each([
  ["a folder that is neither", "types /", /^\/ is neither a bundle .* nor a tree /],
  ["an app that is not there", "types --app nope", /No app has the key nope\. .*[:,] Shop, atlas[.,]/],
  [
    "no app where there are several",
    "types",
    /^--app is missing, and there are several apps: (.*, )?Shop, atlas(, .*)?$/,
  ],
  [
    "another language",
    "types --app atlas --lang cobol",
    /^--lang must be one of ts, json-schema, swift, kotlin, dart$/,
  ],
])("%s is an error that says what would be right", async (_, line, message) => {
  const { code, stdout, stderr } = await place.call(line);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr.trimEnd()).toMatch(message);
});

describe("in other languages", () => {
  beforeAll(() => Parser.init());

  test.each(["swift", "kotlin", "dart"])("what it writes can be parsed: %s", async (language) => {
    const grammar = createRequire(import.meta.url).resolve(`tree-sitter-wasms/out/tree-sitter-${language}.wasm`);
    const parser = new Parser();
    parser.setLanguage(await Language.load(grammar));
    for (const key of [SHOP, "atlas"]) {
      const text = await types(`--app ${key} --lang ${language}`);
      expect([key, parser.parse(text)?.rootNode.hasError]).toEqual([key, false]);
      expect(text).toMatch(key === SHOP ? /\bPostsEntryAnswer\b/ : /\bCitiesPopulated\b/);
    }
    expect(parser.parse("class {{{")?.rootNode.hasError).toBe(true);
  });
});

test("names are unique and legal, whatever the slugs are", () => {
  const slug = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,12}$/);
  const near = fc.constantFrom(
    "a-b",
    "a_b",
    "ab",
    "a",
    "a_search",
    "a-entry",
    "a-item-answer",
    "3d",
    "meta",
    "search-meta",
    "constructor",
  );
  const slugs = fc.uniqueArray(fc.oneof(slug, near), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(slugs, fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,8}$/), (all, key) => {
      const app = { key, name: "", media_base_url: "", types: all.map((one) => typeOf(one, [])) };
      const { name, types: named } = nameTypes(app);
      const names = [
        name,
        ...named.flatMap((one) => VIEWS.flatMap((view) => [one.name + view, `${one.name}${view}Answer`])),
      ];
      expect(new Set(names).size).toBe(names.length);
      expect(names.filter((one) => !/^[A-Za-z][A-Za-z0-9]*$/.test(one))).toEqual([]);
    }),
  );
});

test("a label cannot end its comment", () => {
  const type = typeOf("a", [fieldOf("x", "text", { label: "*/ evil(); /*\nsecond line" })]);
  const text = writeTypeScript(nameTypes({ key: "k", name: "*/ k", media_base_url: "", types: [type] }), new Map());
  expect(text.replace(/\/\*\*.*?\*\/\n/g, "")).not.toContain("evil");
  expect(text).toContain("second line */");
});
