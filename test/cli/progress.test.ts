/** The progress bar: what it shows last is all of it, however much there was. */
import { expect, test } from "vitest";
import { openProgress } from "../../cli/terminal/progress.ts";

/** Every state of the bar that a terminal was shown: files, and of how many. */
function shownOf(totalFiles: number, done: number): (readonly [number, number])[] {
  let text = "";
  const stream = { isTTY: true, columns: 120, write: (more: string) => (text += more) };
  const progress = openProgress(stream, "files");
  for (let files = 1; files <= done; files += 1) progress.update({ done: files, total: totalFiles, bytes: files });
  progress.stop();
  return [...text.matchAll(/(\d+)\/(\d+) files/g)].map(([, files, total]) => [Number(files), Number(total)]);
}

test.each([1, 99, 9_999, 10_000, 10_001, 12_345])("of %i files it ends at the last", (total) => {
  const shown = shownOf(total, total);
  expect(shown.at(-1)).toEqual([total, total]);
  for (const [files, of] of shown) expect([files <= total, of]).toEqual([true, total]);
});

test("where the work ends early it does not say that it is done", () => {
  expect(shownOf(300, 120).at(-1)).toEqual([120, 300]);
});

test("where nothing is done nothing is drawn", () => {
  expect(shownOf(0, 0)).toEqual([]);
});
