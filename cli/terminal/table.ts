/** Draws a table for a person. */
import Table from "cli-table3";

/** No line between two rows. */
const NO_RULES = { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" };

export function drawTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const table = new Table({ head: [...head], style: { head: ["bold"], border: ["gray"] }, chars: NO_RULES });
  table.push(...rows.map((row) => row.map(String)));
  return table.toString();
}
