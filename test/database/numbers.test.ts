/** The database reads the text of a number as the same double as the parser of filter values. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readNumber } from "../../shared/api/value.ts";
import { sql } from "../../shared/sql/query.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";

const run = (digit: string) => fc.integer({ min: 0, max: 420 }).map((count) => digit.repeat(count));
const digits = fc.oneof(
  fc.stringMatching(/^[0-9]{1,20}$/),
  fc.tuple(run("0"), fc.stringMatching(/^[0-9]{1,9}$/), run("7")),
);
const joined = digits.map((parts) => [parts].flat().join(""));
const exponent = fc.oneof(
  fc.constantFrom(
    "",
    "e0",
    "e308",
    "e-308",
    "e400",
    "e-400",
    "e+12",
    "e99999999999999999999",
    "e-99999999999999999999",
  ),
  fc.integer({ min: -800, max: 800 }).map((power) => `e${power}`),
);
const spelled = fc
  .tuple(fc.constantFrom("", "-"), joined, fc.option(joined, { nil: null }), exponent)
  .map(([sign, whole, fraction, power]) => `${sign}${whole}${fraction === null ? "" : `.${fraction}`}${power}`);

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  test("a number is read as the filter parser reads it, however long, large or small it is", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(spelled, { minLength: 30, maxLength: 30 }), async (texts) => {
        const question =
          "SELECT precast.double(text)::text FROM unnest($1::text[]) WITH ORDINALITY AS one (text, place) ORDER BY place";
        const rows = await store.database.query(sql(question, [texts]));
        // Adding 0 turns -0 into 0: the sign of zero does not matter.
        expect(rows.map(([read]) => Number(read) + 0)).toEqual(texts.map((text) => (readNumber(text) as number) + 0));
      }),
      { numRuns: 100 },
    );
  });
});
