/** The set of the files that a build has looked at: it contains all of them, however many, and no others. */
import { expect, test } from "vitest";
import { openKept } from "../../cli/build/stage/kept.ts";

test("the set contains every path that was added, and no other", () => {
  const kept = openKept();
  const paths = Array.from({ length: 20_000 }, (_, index) => `posts/entry/${index}.json`);
  for (const path of paths) kept.add(path);
  for (const path of paths) kept.add(path);
  expect(paths.filter((path) => !kept.has(path))).toEqual([]);
  expect(paths.filter((path) => kept.has(path.replace("entry", "page")))).toEqual([]);
});
