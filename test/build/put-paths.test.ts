/** The set of the files that a build has looked at: it contains all of them, however many, and no others. */
import { expect, test } from "vitest";
import { openPutPaths } from "../../cli/builder/stage.ts";

test("the set contains every path that was added, and no other", () => {
  const putPaths = openPutPaths();
  const paths = Array.from({ length: 20_000 }, (_, index) => `posts/entry/${index}.json`);
  for (const path of paths) putPaths.add(path);
  for (const path of paths) putPaths.add(path);
  expect(paths.filter((path) => !putPaths.has(path))).toEqual([]);
  expect(paths.filter((path) => putPaths.has(path.replace("entry", "page")))).toEqual([]);
});
