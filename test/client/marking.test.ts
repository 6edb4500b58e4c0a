/** What the client marks in a text is what a search finds it by (contract.md section 4). */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createClient } from "../../dist/client/client.js";
import { fold, readWords } from "../../shared/api/folding.ts";

const { mark } = createClient({ url: "", appKey: "" }).type("posts");

/** The text with what matches in brackets. */
function marked(text: string, q: string): string {
  return mark(text, q)
    .map((piece) => (piece.match ? `[${piece.text}]` : piece.text))
    .join("");
}

describe("words are marked as they stand in the text", () => {
  test.each([
    ["a part of a word", "Lighthouses", "light", "[Light]houses"],
    ["each time", "old and bold", "old", "[old] and b[old]"],
    ["each word", "The old port", "port old", "The [old] [port]"],
    ["words that overlap", "undertaking", "under dert", "[undert]aking"],
    ["nothing of what only separates words", "a-b a b", "--", "a-b a b"],
    ["letters with accents", "Café olé", "cafe OLE", "[Café] [olé]"],
    ["accents that follow their letter", "Zu\u0308rich", "zürich", "[Zu\u0308rich]"],
    ["letters that are spelled with two", "Straße, Ærø", "strasse aero", "[Straße], [Ærø]"],
    ["a whole letter of which a half is meant", "Straße", "stras", "[Straß]e"],
    ["the Turkish dot", "İzmir, ılık", "izmir ilik", "[İzmir], [ılık]"],
    ["soft hyphens within", "Wasser\u00adkraft\u00adwerk", "wasserkraft", "[Wasser\u00adkraft\u00ad]werk"],
    ["Greek at the end of a word", "ΟΔΟΣ οδος", "οδοσ", "[ΟΔΟΣ] [οδος]"],
    ["Hangul in its parts", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국", "[\u1112\u1161\u11ab\u1100\u116e\u11a8]"],
    ["Hangul in letters", "ㄱㅏ", "가", "[ㄱㅏ]"],
    ["narrow katakana", "ｶﾞｲﾄﾞ", "ガイド", "[ｶﾞｲﾄﾞ]"],
    ["characters beyond the first plane", "😀 𝐀𝐁", "ab", "😀 [𝐀𝐁]"],
    ["nothing in an empty text", "", "a", ""],
  ])("%s", (_, text, q, expected) => {
    expect(marked(text, q)).toBe(expected);
  });
});

test("the pieces are the text, and something is marked where a search finds it", () => {
  const characters = [..."abAéßŁıσςΣ ,\u0301\u0308\u00ad\u200b\u3099가ㄱㅏㄳﾡￂ\u1100\u1161\u11a8ｶﾞ한नि़ﬁ😀"];
  const text = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map((parts) => parts.join(""));
  const found = { yes: 0, no: 0 };
  fc.assert(
    fc.property(text, text, fc.nat(10), (one, other, from) => {
      for (const q of [other, one.slice(from, from + 3)]) {
        const pieces = mark(one, q);
        expect(pieces.map((piece) => piece.text).join("")).toBe(one);
        const isFound = readWords(q).some((word) => fold(one).includes(word));
        expect([one, q, pieces.some(({ match }) => match)]).toEqual([one, q, isFound]);
        found[isFound ? "yes" : "no"]++;
      }
    }),
    { numRuns: 3_000 },
  );
  expect(Math.min(found.yes, found.no)).toBeGreaterThan(500);
});
