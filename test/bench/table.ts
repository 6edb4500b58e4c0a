/** Draws the results of a benchmark as a table. */
import Table from "cli-table3";

/** `isNumber` says which columns, counted from 0, are aligned to the right. */
export function drawTable(
  head: readonly string[],
  isNumber: (column: number) => boolean,
  rows: readonly string[][],
): string {
  const table = new Table({
    head: [...head],
    style: { head: [], border: [] },
    colAligns: head.map((_, column) => (isNumber(column) ? "right" : "left")),
    chars: { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" },
  });
  table.push(...rows);
  return table.toString();
}
