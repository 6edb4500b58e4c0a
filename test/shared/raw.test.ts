/** jsonb text is cut into the same values that a JSON parser finds. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compact, compareMembers, pickMembers, readElements, readMembers } from "../../shared/api/json.ts";

/** Spells a value as PostgreSQL spells jsonb: with a blank after each colon and comma outside of strings. */
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
        const members = readMembers(JSON.stringify(object));
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
        expect(readElements(texts.join(","), "answer")).toEqual(texts);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each(['{"id":"', '{"id":"a","b":[', '{"id":"a\\', "[", '"'])(
    "that is truncated is read as one item and does not hang the build: %s",
    (text) => {
      expect(readElements(text, "answer")).toEqual([text]);
    },
  );
});

describe("the members of a jsonb object", () => {
  /** Spells an object with its members in the order of jsonb: by length, then by bytes. */
  function spellInOrder(object: Readonly<Record<string, unknown>>): string {
    const names = Object.keys(object).map((name) => Buffer.from(name));
    names.sort((a, b) => a.length - b.length || Buffer.compare(a, b));
    return `{${names.map((name) => `${JSON.stringify(String(name))}: ${spell(object[String(name)])}`).join(", ")}}`;
  }
  const anyName = fc.oneof(fieldName, fc.string(), fc.stringMatching(/^["\\\n\u00e9]{1,3}$/));

  test("are picked as a JSON parser finds them, whatever else the object has", () => {
    const objects = fc.dictionary(anyName, fc.jsonValue(), { noNullPrototype: true });
    fc.assert(
      fc.property(objects, fc.uniqueArray(fieldName), fc.infiniteStream(fc.boolean()), (object, others, coins) => {
        const own = Object.keys(object).filter((name) => /^[a-z][a-z0-9_]*$/.test(name));
        const names = [...new Set([...own, ...others])]
          .filter(() => coins.next().value as boolean)
          .sort(compareMembers);
        const wanted = names.map((name) => (Object.hasOwn(object, name) ? spell(object[name]) : undefined));
        expect(pickMembers(spellInOrder(object), names)).toEqual(wanted);
      }),
      { numRuns: 2_000 },
    );
  });

  test("keep every digit of a number", () => {
    const object = '{"big": 9007199254740993, "next": 0.1000000000000000000001}';
    expect(pickMembers(object, ["big", "next"])).toEqual(["9007199254740993", "0.1000000000000000000001"]);
  });

  test("are found after quotes, backslashes and brackets in strings", () => {
    const object = { a: '\\"', b: '}{"],[', c: "\\\\", d: { e: '"}' }, f: 1 };
    const names = ["a", "b", "c", "d", "f"];
    expect(pickMembers(spell(object), names)).toEqual(names.map((name) => spell(object[name as keyof typeof object])));
  });
});

describe("a compact value", () => {
  test("has no blanks between tokens, and keeps those in strings", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(compact(spell(value))).toBe(JSON.stringify(value));
      }),
    );
  });

  test("may hold a text of 20 million characters", () => {
    const value = ["x".repeat(20_000_000), '\\"'.repeat(2_000_000), { a: 1 }];
    expect(compact(spell(value)) === JSON.stringify(value)).toBe(true);
  });
});
