/** jsonb text is cut into the same values that a JSON parser finds. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compact, elementsOf, membersOf } from "../../shared/raw.ts";

/** As PostgreSQL writes jsonb: a blank behind each colon and comma, outside of strings. */
function spell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${spell(member)}`);
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value);
}

const fieldName = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);

describe("an answer of the tree", () => {
  test("is cut into the members that a JSON parser finds", () => {
    fc.assert(
      fc.property(fc.dictionary(fieldName, fc.jsonValue()), (object) => {
        const members = membersOf(JSON.stringify(object), "answer");
        expect([...members.keys()]).toEqual(Object.keys(object));
        for (const [name, raw] of members) expect(raw).toBe(JSON.stringify(object[name]));
      }),
      { numRuns: 1_000 },
    );
  });

  test("is cut into the items that a JSON parser finds", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (items) => {
        const texts = items.map((item) => JSON.stringify(item));
        expect(elementsOf(texts.join(","))).toEqual(texts);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each(['{"id":"', '{"id":"a","b":[', '{"id":"a\\', "[", '"'])(
    "that somebody has cut off does not hang the build: %s",
    (text) => {
      expect(elementsOf(text)).toEqual([text]);
    },
  );
});

describe("the members of a jsonb object", () => {
  test("are what a JSON parser finds", () => {
    fc.assert(
      fc.property(fc.dictionary(fieldName, fc.jsonValue()), (object) => {
        const members = membersOf(spell(object));
        expect([...members.keys()]).toEqual(Object.keys(object));
        for (const [name, raw] of members) expect(raw).toBe(spell(object[name]));
      }),
      { numRuns: 1_000 },
    );
  });

  test("keep every digit of a number", () => {
    expect(membersOf('{"big": 9007199254740993, "next": 0.1000000000000000000001}').get("big")).toBe(
      "9007199254740993",
    );
  });

  test("are found behind quotes, backslashes and brackets in strings", () => {
    const object = { a: '\\"', b: '}{"],[', c: "\\\\", d: { e: '"}' }, f: 1 };
    expect([...membersOf(spell(object)).keys()]).toEqual(["a", "b", "c", "d", "f"]);
  });
});

describe("a compact value", () => {
  test("is JSON without blanks between tokens, with those in strings", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(compact(spell(value))).toBe(JSON.stringify(value));
      }),
    );
  });

  test("may hold a text as long as a database stores", () => {
    const value = ["x".repeat(20_000_000), '\\"'.repeat(2_000_000), { a: 1 }];
    expect(compact(spell(value)) === JSON.stringify(value)).toBe(true);
  });
});
