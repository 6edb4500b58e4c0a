/** Finds tables that need VACUUM: many rows are dead, or many pages are not all-visible for index-only scans. */
import { formatCount } from "../../terminal/format.ts";
import { defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";
import { maintenanceRemedy, readTables, type Table } from "../tables.ts";

export const deadRowsCheck = defineCheck({
  name: "dead-rows",
  gather: readTables,
  judge: (tables) => tables.flatMap((table) => findingOf(table) ?? []),
});

const DEAD_SHARE = 0.2;
const DEAD_ROWS = 1_000;
const HIDDEN_SHARE = 0.5;
/** Pages. Reading past the dead rows of a smaller table, or visiting its pages in an index-only scan, costs little. */
const SMALL = 100;
const SMALL_HIDDEN = 1_000;

function findingOf(table: Table): Finding | null {
  const found = deadRows(table) ?? hiddenPages(table);
  // TRUNCATE false: to return space to the disk, VACUUM would lock writers out for a moment.
  return found === null
    ? null
    : {
        kind: "advice",
        subject: table.name,
        ...found,
        ...maintenanceRemedy(table, `VACUUM (TRUNCATE false) ${table.name}`),
      };
}

type Problem = Pick<Finding, "problem" | "gain">;

function deadRows({ rows, dead, pages }: Table): Problem | null {
  if (pages < SMALL) return null;
  if (dead <= DEAD_ROWS || dead <= (rows + dead) * DEAD_SHARE) return null;
  const share = percent(dead / (rows + dead));
  return {
    problem: `${formatCount(dead)} of its ${formatCount(rows + dead)} rows are dead (${share}), and scans still read them.`,
    gain: `Scans read up to ${share} less, and new rows reuse the space of the dead ones.`,
  };
}

function hiddenPages({ pages, visiblePages }: Table): Problem | null {
  if (pages < SMALL_HIDDEN || visiblePages >= pages * (1 - HIDDEN_SHARE)) return null;
  return {
    problem: `${formatCount(pages - visiblePages)} of its ${formatCount(pages)} pages are not marked as all-visible, so index-only scans have to read them.`,
    gain: "Totals are counted in an index alone, without reading the table, which is often ten times as fast.",
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
