/** The progress bar: its last state shows what was done, however many files there were. */
import { expect, test } from "vitest";
import { openProgress } from "../../cli/progress.ts";

/** Every state of the bar that a terminal received: the number of files done, and the total. `times` for as many apps. */
function shownOf(totalFiles: number, done: number, times = 1): (readonly [number, number])[] {
  let text = "";
  const stream = { isTTY: true, columns: 120, write: (more: string) => (text += more) };
  const progress = openProgress(stream, "files");
  for (let app = 0; app < times; app += 1) {
    const [most, total] = [done * (app + 1), totalFiles * (app + 1)];
    for (let files = 1; files <= most; files += 1) progress.update({ done: files, total, bytes: files });
  }
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

test("a bar for the files of a second app begins anew, with their total", () => {
  const shown = shownOf(300, 300, 2);
  expect(shown).toContainEqual([300, 300]);
  expect(shown.at(-1)).toEqual([600, 600]);
  for (const [files, of] of shown) expect(files).toBeLessThanOrEqual(of);
});

test("a bar draws nothing when nothing is done", () => {
  expect(shownOf(0, 0)).toEqual([]);
});
