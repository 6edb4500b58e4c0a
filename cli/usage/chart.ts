/** Draws a bar chart in characters, with one line for each day. */
import { formatCount } from "../terminal/format.ts";
import type { DaySum } from "./sums.ts";

const MIN_BAR = 10;
const GAP = "  ";

/** `width` is the width of the terminal in characters. A day with counts always has a bar, however short. */
export function drawChart(days: readonly DaySum[], width: number): string {
  const counts = days.map(({ count }) => formatCount(count));
  const numbers = counts.reduce((longest, { length }) => Math.max(longest, length), 0);
  const most = days.reduce((max, { count }) => Math.max(max, count), 1);
  const room = Math.max(MIN_BAR, width - "2026-01-20".length - numbers - 2 * GAP.length);
  return days
    .map(({ day, count }, index) => {
      const length = count === 0 ? 0 : Math.max(1, Math.round((count / most) * room));
      return [day, (counts[index] ?? "").padStart(numbers), "█".repeat(length)].join(GAP).trimEnd();
    })
    .join("\n");
}
