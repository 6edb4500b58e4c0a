/** The JSON Schemas by which editors complete the files of a bundle: made from the rules of the import, and shipped. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import * as z from "zod";
import { readApp, readType } from "../../cli/import/definition.ts";
import { APP, TYPE } from "../../cli/import/shape.ts";
import { findNames } from "../../shared/files.ts";

const FOLDER = "cli/import/schemas";
const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const validator = (name: string) => new Ajv2020({ strict: false }).compile(read(join(FOLDER, name)));

test.each([
  ["app.json", "app.json of a Precast bundle", APP],
  ["content-type.json", "A content type of a Precast bundle", TYPE],
])("%s is what the import reads (`vitest -u` writes it anew)", async (name, title, shape) => {
  const { $schema, ...schema } = z.toJSONSchema(shape, { io: "input", unrepresentable: "any" });
  const text = `${JSON.stringify({ $schema, title, ...schema }, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot(join("../..", FOLDER, name));
});

test("the demo's files are valid, also with $schema", async () => {
  const isApp = validator("app.json");
  const isType = validator("content-type.json");
  const app = { $schema: "x.json", ...read("cli/demo/app.json") };
  expect([isApp(app), readApp(JSON.stringify(app))]).toEqual([
    true,
    { value: expect.objectContaining({ key: app.key }) },
  ]);
  const names = await findNames("cli/demo/content_types", "*.json");
  expect(names.length).toBeGreaterThan(2);
  for (const name of names) {
    const type = { $schema: "x.json", ...read(join("cli/demo/content_types", name)) };
    expect([isType(type), readType(JSON.stringify(type), name.replace(".json", ""))]).toEqual([
      true,
      { value: expect.objectContaining({ slug: type.slug }) },
    ]);
  }
});

test.each([
  ["app.json", { key: "a b", name: "A" }],
  ["app.json", { key: "a", name: "A", colour: "red" }],
  ["content-type.json", { slug: "Posts" }],
])("%s refuses what the import refuses: %j", (name, wrong) => {
  expect(validator(name)(wrong)).toBe(false);
  const text = JSON.stringify(wrong);
  expect(name === "app.json" ? readApp(text) : readType(text, "posts")).toHaveProperty("faults");
});
