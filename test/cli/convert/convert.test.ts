/** `precast convert` and `import --from`: types inferred from CSV and JSON, and what the report says is lost. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { convertSource } from "../../../cli/convert/convert.ts";
import { readDate } from "../../../cli/convert/dates.ts";
import { addValue, newFacts } from "../../../cli/convert/facts.ts";
import { inferFields } from "../../../cli/convert/inference.ts";
import { makeFieldName, makeSlug, makeUuid } from "../../../cli/convert/names.ts";
import { readBundle, readEntries } from "../../../cli/import/bundle.ts";
import { noProblems } from "../../../cli/import/report.ts";
import { FIELD_NAME, TYPE_SLUG } from "../../../shared/api/catalog.ts";
import { openEmbeddedPlace, type Place } from "../../support/cli.ts";

const SHOPS = `id;Name;ZIP;Opened;Open;Rating;Kind;Tags;Owner
1;Corner;00501;13/02/2020;true;4.5;food;fresh|local;Ada
2;Mill;10115;05/03/2021;false;3;food;local;Grace
3;Tower;01067;06/04/2022;true;;books;local|used;Ada
4;Quay;20457;07/05/2023;true;2;books;used|fresh;Grace
5;"Old
Town";80331;08/06/2024;false;5;food;fresh;Ada
`;
const OWNERS = "name,phone\nAda,+49 30 1234\nGrace,+1 555 0100\n";

let place: Place;
beforeAll(async () => {
  place = await openEmbeddedPlace();
});
afterAll(() => place.close());

function write(files: Readonly<Record<string, string | Buffer>>, folder = place.folder): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

type Definition = { readonly fields: { name: string; type: string; multiple: boolean; target?: string }[] };

function readDefinition(bundle: string, slug: string) {
  const text = readFileSync(join(place.folder, bundle, "content_types", `${slug}.json`), "utf8");
  return JSON.parse(text) as Definition & { filterable_fields: string[]; sortable_fields: string[] };
}

const lines = (path: string) =>
  readFileSync(join(place.folder, path), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("a folder of CSV", () => {
  beforeAll(async () => {
    write({ "sheets/shops.csv": SHOPS, "sheets/owner.csv": OWNERS });
    expect(await place.call("convert csv sheets city")).toMatchObject({ code: 0, stderr: "" });
  });

  test("gets types from all of its values", () => {
    const { fields, filterable_fields, sortable_fields } = readDefinition("city", "shops");
    const types = fields.map(({ name, type, multiple, target }) => [
      name,
      target ?? type,
      ...(multiple ? ["many"] : []),
    ]);
    expect(types).toEqual([
      ["source_id", "number"],
      ["name", "text"],
      ["zip", "text"],
      ["opened", "date"],
      ["open", "boolean"],
      ["rating", "number"],
      ["kind", "select"],
      ["tags", "select", "many"],
      ["owner", "owner"],
    ]);
    expect(filterable_fields).toEqual(["open", "kind", "tags", "owner"]);
    expect(sortable_fields).toEqual(["source_id", "name", "zip", "opened", "rating", "kind"]);
  });

  test("keeps its values", () => {
    const [first, , third] = lines("city/entries/shops.ndjson");
    const [ada] = lines("city/entries/owner.ndjson");
    expect(first.data).toEqual({
      source_id: 1,
      name: "Corner",
      zip: "00501",
      opened: "2020-02-13",
      open: true,
      rating: 4.5,
      kind: "food",
      tags: ["fresh", "local"],
      owner: ada.id,
    });
    expect(third.data).not.toHaveProperty("rating");
    expect(lines("city/entries/shops.ndjson")[4].data.name).toBe("Old\nTown");
  });

  test("says what became of each column", async () => {
    const { stdout } = await place.call("convert csv sheets elsewhere");
    expect(stdout).toContain("shops: 5 entries");
    expect(stdout).toMatch(/Opened\s+opened\s+date\s+sort\s+dates, day first/);
    expect(stdout).toMatch(/ZIP\s+zip\s+text\s+sort\s+digits that are codes/);
    expect(stdout).toMatch(/Owner\s+owner\s+relation → owner\s+filter\s+values are ids, slugs or names of owner/);
    expect(stdout).toContain("Next: run `precast import elsewhere`.");
  });

  test("is served, and changes nothing when it is converted and imported again", async () => {
    const first = await place.json<{ entries: { created: number } }>("import --from csv sheets --app city");
    expect(first.entries.created).toBe(7);
    const again = await place.json<{ entries: object; types: object }>("import city");
    expect(again.entries).toEqual({ created: 0, updated: 0, unchanged: 7, deleted: 0 });
    expect(again.types).toEqual({ created: 0, updated: 0, unchanged: 2, deleted: 0 });
    await place.build();
    const server = await place.serve();
    const { json } = await server.get("/api/v1/shops?filter[tags]=used", { appKey: "city" });
    expect(json.data.map(({ name }: { name: string }) => name).sort()).toEqual(["Quay", "Tower"]);
    expect((await server.stop()).code).toBe(0);
  });

  test("obeys a definition that was corrected", async () => {
    const definition = readDefinition("city", "shops");
    const fields = definition.fields
      .filter(({ name }) => name !== "rating")
      .map((field) => (field.name === "kind" ? { ...field, type: "text" } : field));
    const corrected = JSON.stringify({ ...definition, fields, sortable_fields: ["name"] });
    write({ "city/content_types/shops.json": corrected });
    const { code, stdout } = await place.call("convert csv sheets city");
    expect(code).toBe(0);
    expect(stdout).toMatch(/Rating\s+—\s+left out: content_types\/shops.json has no field "rating"/);
    expect(JSON.stringify(readDefinition("city", "shops"))).toBe(corrected);
    expect(lines("city/entries/shops.ndjson")[0].data).not.toHaveProperty("rating");
  });
});

describe("what cannot be carried", () => {
  test("is listed with file and line, and --strict ends with 2", async () => {
    write({ "ragged/rows.csv": "a,b\n1,2\n3\n4,5\n6,7,8\n" });
    const { code, stderr } = await place.call("convert csv ragged ragged-bundle");
    expect([code, stderr]).toEqual([
      0,
      "Not carried: rows.csv:3: the row: has more or fewer cells than the header, which has 2 (on 2 lines: 3, 5)\n",
    ]);
    expect((await place.call("convert csv ragged ragged-bundle --strict")).code).toBe(2);
    const strict = await place.call("import --from csv ragged --strict");
    expect([strict.code, strict.stderr]).toEqual([2, expect.stringContaining("Nothing was imported")]);
  });

  test("is a value of which a corrected field can make nothing", async () => {
    write({ "words.csv": "word\none\n2\nthree\n" });
    await place.call("convert csv words.csv words-bundle");
    const definition = readDefinition("words-bundle", "words");
    const fields = definition.fields.map((field) => ({ ...field, type: "number", searchable: false }));
    write({ "words-bundle/content_types/words.json": JSON.stringify({ ...definition, fields }) });
    const { stderr } = await place.call("convert csv words.csv words-bundle");
    expect(stderr).toBe('Not carried: words.csv:2: word must be a number, not "one" (on 2 lines: 2, 4)\n');
  });

  test("is a second record with the key of another one", async () => {
    write({ "twice.json": '{"a":[{"id":"x","n":1},{"id":"y","n":2}],"b":[{"id":"x"}]}', "keys/x.json": '{"t":1}' });
    expect(await place.call("convert json twice.json twice-bundle --strict")).toMatchObject({ code: 0, stderr: "" });
    expect(lines("twice-bundle/entries/a.ndjson")).toHaveLength(2);
  });
});

test.each([
  ["csv", "quotes.csv", 'a,b\n1,"2\n', /^quotes\.csv:\d+: is not CSV: .*[Qq]uote/],
  ["csv", "same.csv", "a,b,a\n", 'same.csv:1: names the column "a" twice: give each column a name of its own\n'],
  ["csv", "empty.csv", "", "empty.csv: is empty: its first line must name the columns\n"],
  ["csv", "latin.csv", Buffer.from("a\n\xe9\n", "latin1"), /^latin\.csv:2: is not valid UTF-8: save it as UTF-8\n/],
  ["csv", "half.csv", Buffer.from("a\nb\xc3", "latin1"), /^half\.csv:2: is not valid UTF-8: save it as UTF-8\n/],
  ["json", "cut.json", '[{"a":1},', "cut.json:1: is not valid JSON: it ends too early, export it again\n"],
  ["json", "broken.ndjson", '{"a":1}\n{"a":\n', /^broken\.ndjson:2: is not valid JSON: /],
  ["json", "numbers.json", "[1]", "numbers.json:1: must hold objects, not 1\n"],
  ["excel", "numbers.json", "[1]", /^"excel" is no format that can be converted; the formats are markdown, csv, /],
])("%s of %s is refused with what would be right, and nothing is written", async (format, name, text, message) => {
  write({ [name]: text });
  const { code, stderr } = await place.call(`convert ${format} ${name} refused`);
  expect([code, stderr]).toEqual([1, typeof message === "string" ? message : expect.stringMatching(message)]);
  expect(() => readFileSync(join(place.folder, "refused/app.json"))).toThrow("ENOENT");
});

test("a source that is not there, and a folder without such files, are told from each other", async () => {
  write({ "bare/notes.txt": "" });
  const missing = await place.call("convert csv nowhere bundle");
  expect(missing.stderr).toBe(
    "nowhere: there is no such file or folder; specify a .csv or .tsv file, or a folder of them\n",
  );
  const bare = await place.call("convert csv bare bundle");
  expect(bare.stderr).toBe("bare: the folder holds no such file; specify a .csv or .tsv file, or a folder of them\n");
});

test.each([
  ["2017-05-15T00:00+02:00", "2017-05-14T22:00:00.000Z"],
  ["2024/1/5", "2024-01-05"],
  ["5. 1. 2024", null],
  ["05.01.2024", "2024-01-05"],
  ["Jan 5, 2024", "2024-01-05"],
  ["January 5th, 2024 3:07 pm", "2024-01-05T15:07:00.000Z"],
  ["5 Jan 2024", "2024-01-05"],
  ["Friday, 5 January 2024", "2024-01-05"],
  ["Fri, 05 Jan 2024 10:00:00 +0100", "2024-01-05T09:00:00.000Z"],
  ["2024-02-30", null],
  ["12:30", null],
  ["1.2.3", null],
  ["may", null],
])("the date %j is read as %j", (text, expected) => {
  expect(readDate(text)?.text ?? null).toBe(expected);
});

test.each([
  [["a", "b"], true],
  [["a", ""], false],
])("what the source requires is required when every record has it: %j", (values, required) => {
  const facts = newFacts("title");
  for (const value of values) addValue(facts, value);
  const declared = [{ name: "title", type: "text", required: true }] as const;
  const around = { collection: "posts", collections: ["posts"], records: 2, declared, findNamed: () => null };
  expect(inferFields(new Map([["title", facts]]), around)).toMatchObject([{ name: "title", required }]);
});

test("any name becomes a legal slug and field name, and the same parts always the same version 5 id", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (name) => {
      expect(makeSlug(name)).toMatch(TYPE_SLUG);
      expect(makeFieldName(name)).toMatch(FIELD_NAME);
      expect(makeUuid("csv", name)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(makeUuid("csv", name)).toBe(makeUuid("csv", name));
    }),
  );
  expect(makeUuid("a", "bc")).not.toBe(makeUuid("ab", "c"));
});

test("whatever objects JSON holds, the bundle is valid and has an entry for each", async () => {
  const folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2, stringUnit: "binary" }),
    fc.constantFrom("2024-01-05", "x", "7", "00501", "true", ["a", "b"], null),
  );
  const name = fc.oneof(fc.constantFrom("id", "Name", "tags", "created_at", "image", "image_url"), fc.string());
  const record = fc.dictionary(name, value, { maxKeys: 6, noNullPrototype: true });
  const property = fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 12 }), async (records) => {
    for (const name of ["made", "scratch"]) rmSync(join(folder, name), { recursive: true, force: true });
    mkdirSync(join(folder, "scratch"));
    write({ "all.json": JSON.stringify(records) }, folder);
    const options = {
      scratch: join(folder, "scratch"),
      appKey: null,
      locale: null,
      sanitize: true,
      mediaBaseUrl: null,
    };
    await convertSource("json", join(folder, "all.json"), join(folder, "made"), options);
    const problems = noProblems();
    const bundle = await readBundle(join(folder, "made"), false, problems, noProblems());
    let entries = 0;
    for await (const batch of readEntries(bundle, "all", new Map(), problems, null)) entries += batch.length;
    expect([...problems.listed.values()]).toEqual([]);
    expect(entries).toBe(records.length);
  });
  await fc.assert(property, { numRuns: 40 });
  rmSync(folder, { recursive: true });
});
