/**
 * The entry trigger stores plain values after one fast check, `plain_path`. It accepts only values that fit their field
 * and have the canonical spelling. The trigger fills slots with them as they are.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";

const TYPES = ["text", "rich_text", "select", "media", "relation", "number", "boolean", "date", "datetime", "json"];
const UUID = "0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01";

const digits = (count: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: count, maxLength: count }).map((all) => all.join(""));
const two = fc.oneof(digits(2), fc.constantFrom("01", "02", "12", "28", "29", "30", "31", "23", "59"));
const year = fc.oneof(digits(4), fc.constantFrom("0000", "0001", "2024", "2025", "9998", "9999"));
const day = fc.tuple(year, two, two).map((parts) => parts.join("-"));
const zone = fc.constantFrom("+00:00", "Z", "-05:30", "");
const fraction = fc.constantFrom(".000", ".123", ".12", ".1234", "");
const instant = fc
  .tuple(day, two, two, two, fraction, zone)
  .map(([date, h, m, s, f, z]) => `${date}T${h}:${m}:${s}${f}${z}`);
/** Numbers as JSON text, which keeps trailing zeros. */
const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.bigInt({ min: 0n, max: 10n ** 17n }),
    fc.constantFrom("", ".0", ".50", ".5", ".123456789012345", "e3", "e400", "e-400"),
  )
  .map((parts) => parts.join(""));
const text = fc
  .oneof(
    day,
    instant,
    fc.constantFrom(UUID, UUID.toUpperCase(), `${UUID}\n`, "", "true", "5"),
    fc.string({ maxLength: 5 }),
  )
  .map((value) => JSON.stringify(value.replaceAll("\0", "")));
const single = fc.oneof(text, number, fc.constantFrom("null", "true", "false", "{}", "[]", '{"a":[1.0]}'));
const value = fc.oneof(
  single,
  fc.array(single, { maxLength: 3 }).map((all) => `[${all.join(",")}]`),
);

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  /** The check as the trigger makes it. */
  const PLAIN = `(coalesce(jsonb_build_object('field', value) @@ precast.plain_path('field', type, multiple)::jsonpath, true)
    AND NOT (type = 'number' AND value::text LIKE '%.%0'))::text`;
  /** For each value and type, single and multiple: whether it is plain, and whether it fits, is canonical and fills a slot. */
  const LOOK = `SELECT type || ' ' || multiple || ' ' || value,
      ${PLAIN},
      (CASE WHEN multiple THEN precast.fits_many(type, value) ELSE precast.fits(type, value) END
        AND (NOT precast.needs_canonical(type, value)
          OR precast.canonical(type, multiple, value)::text IS NOT DISTINCT FROM value::text)
        AND (multiple OR CASE
          WHEN type IN ('rich_text', 'json') THEN true
          WHEN type IN ('number', 'boolean') THEN precast.plain_number(value)
            IS NOT DISTINCT FROM precast.number_slot(jsonb_build_object('field', value), jsonb_build_array('field', type))
          ELSE value #>> '{}'
            IS NOT DISTINCT FROM precast.text_slot(jsonb_build_object('field', value), jsonb_build_array('field', type))
        END))::text
    FROM unnest($1::text[]::jsonb[]) AS value, unnest($2::text[]) AS type, unnest('{true,false}'::boolean[]) AS multiple
    WHERE NOT multiple OR type IN ('text', 'select', 'media', 'relation')`;

  test("every plain value fits its field, is canonical and fills a slot as it is", async () => {
    let plain = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 10, maxLength: 10 }), async (values) => {
        const rows = await store.database.query(sql(LOOK, [values, TYPES]));
        plain += rows.filter(([, isPlain]) => isPlain === "true").length;
        expect(rows.filter(([, isPlain, isRight]) => isPlain === "true" && isRight !== "true")).toEqual([]);
      }),
      { numRuns: 150 },
    );
    expect(plain).toBeGreaterThan(1_000);
  });

  test("common values are plain", async () => {
    const usual = [
      ['"a title"', "text"],
      ['"<p>a body</p>"', "rich_text"],
      [`"${UUID}"`, "relation"],
      ["-12.25", "number"],
      ["true", "boolean"],
      ['"2026-01-20"', "date"],
      ['"2026-01-20T15:30:00.000+00:00"', "datetime"],
      ['{"any": [1, null]}', "json"],
      ["null", "date"],
    ] as const;
    const look = (value: string, type: string, multiple: boolean) =>
      store.database.query(
        sql(`SELECT ${PLAIN} FROM (SELECT $1::jsonb, $2::text, $3::boolean) AS one (value, type, multiple)`, [
          value,
          type,
          String(multiple),
        ]),
      );
    for (const [value, type] of usual) expect([value, await look(value, type, false)]).toEqual([value, [["true"]]]);
    expect(await look('["a", "b"]', "select", true)).toEqual([["true"]]);
    expect(await look(`["${UUID}"]`, "relation", true)).toEqual([["true"]]);
    expect(await look("[]", "relation", true)).toEqual([["true"]]);
  });
});
