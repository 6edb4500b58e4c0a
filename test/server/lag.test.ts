/** The lag of a replica, computed from recorded positions of the primary's log. */
import { expect, test } from "vitest";
import { addMark, findLag, isBeyond, type Mark } from "../../server/replica-status.ts";

const WINDOW = 10_000;

function marksOf(...pairs: readonly (readonly [time: number, position: bigint])[]): readonly Mark[] {
  return pairs.reduce<readonly Mark[]>((marks, [time, position]) => addMark(marks, { time, position }, WINDOW), []);
}

test("the lag is the time since the last recorded log position that the replica has reached", () => {
  const marks = marksOf([1_000, 10n], [2_000, 20n], [3_000, 30n]);
  expect(findLag(marks, 30n, 3_500)).toBe(500);
  expect(findLag(marks, 35n, 3_500)).toBe(500);
  expect(findLag(marks, 29n, 3_500)).toBe(1_500);
  expect(findLag(marks, 10n, 3_500)).toBe(2_500);
});

test("the lag is unknown while the replica has reached no recorded log position", () => {
  expect(findLag(marksOf([1_000, 10n]), 9n, 1_000)).toBeNull();
  expect(findLag([], 9n, 1_000)).toBeNull();
});

test("an idle primary does not increase the lag of a replica that has its whole log", () => {
  expect(findLag(marksOf([1_000, 10n], [2_000, 10n], [9_000, 10n]), 10n, 9_001)).toBe(1);
});

test("log positions recorded before the window are forgotten", () => {
  const marks = marksOf([1_000, 10n], [2_000, 20n], [11_500, 30n]);
  expect(findLag(marks, 10n, 11_500)).toBeNull();
  expect(findLag(marks, 20n, 11_500)).toBe(9_500);
});

test("a log position that goes back belongs to another server: higher recorded positions are forgotten", () => {
  const marks = marksOf([1_000, 10n], [2_000, 40n], [3_000, 30n]);
  expect(findLag(marks, 30n, 3_000)).toBe(0);
  expect(findLag(marks, 29n, 3_000)).toBe(2_000);
});

test("a server is ahead when the primary had not reached its log position at a later time, and only then", () => {
  const marks = marksOf([1_000, 10n], [2_000, 20n]);
  expect(isBeyond(marks, 21n, 1_500)).toBe(true);
  expect(isBeyond(marks, 20n, 1_500)).toBe(false);
  // What the primary has written since it was last checked is not known.
  expect(isBeyond(marks, 21n, 2_000)).toBe(false);
  expect(isBeyond([], 21n, 2_000)).toBe(false);
});
