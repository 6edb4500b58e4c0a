/** What a build has looked at it knows again, however much that is, and nothing else. */
import { expect, test } from "vitest";
import { openKept } from "../../cli/build/stage/kept.ts";

test("every path that was added is known, and no other", () => {
  const kept = openKept();
  const paths = Array.from({ length: 20_000 }, (_, index) => `posts/entry/${index}.json`);
  for (const path of paths) kept.add(path);
  for (const path of paths) kept.add(path);
  expect(paths.filter((path) => !kept.has(path))).toEqual([]);
  expect(paths.filter((path) => kept.has(path.replace("entry", "page")))).toEqual([]);
});
