/** The progress bar: its last state shows what was done, however many files there were. */
import { expect, test } from "vitest";
import { openProgress } from "../../cli/terminal/progress.ts";

/** Every state of the bar that a terminal received: the number of files done, and the total. */
function shownOf(totalFiles: number, done: number): (readonly [number, number])[] {
  let text = "";
  const stream = { isTTY: true, columns: 120, write: (more: string) => (text += more) };
  const progress = openProgress(stream, "files");
  for (let files = 1; files <= done; files += 1) progress.update({ done: files, total: totalFiles, bytes: files });
  progress.stop();
  return [...text.matchAll(/(\d+)\/(\d+) files/g)].map(([, files, total]) => [Number(files), Number(total)]);
}

test.each([1, 99, 9_999, 10_000, 10_001, 12_345])(
  "a bar over %i files ends at the total and never exceeds it",
  (total) => {
    const shown = shownOf(total, total);
    expect(shown.at(-1)).toEqual([total, total]);
    for (const [files, of] of shown) expect([files <= total, of]).toEqual([true, total]);
  },
);

test("a bar whose work stops early ends at what was done, not at the total", () => {
  expect(shownOf(300, 120).at(-1)).toEqual([120, 300]);
});

test("a bar draws nothing when nothing is done", () => {
  expect(shownOf(0, 0)).toEqual([]);
});
