/** Applies the safe fixes: runs the statements of the findings and reports each of them. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, sql } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled, isConflict, isReadOnly } from "../../shared/database/fault.ts";
import { formatSeconds } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { CheckFinding } from "./check-run.ts";
import { canFix } from "./finding.ts";

export type FixResult = { readonly fixed: readonly CheckFinding[]; readonly left: readonly CheckFinding[] };

/**
 * Warns of a statement that fails, and keeps its finding in `left`. Throws a DatabaseFault when the database is
 * unavailable, and its error when the database is read-only.
 */
export async function applyFixes(
  database: Database,
  findings: readonly CheckFinding[],
  terminal: Terminal,
): Promise<FixResult> {
  const fixed: CheckFinding[] = [];
  for (const finding of findings) {
    if (canFix(finding) && (await runAll(database, finding.fix, terminal))) fixed.push(finding);
  }
  if (fixed.length > 0) {
    await awaitStatistics(database);
    terminal.say("");
  }
  return { fixed, left: findings.filter((finding) => !fixed.includes(finding)) };
}

/** The first version of PostgreSQL that shows at once what has been counted (`server_version_num`). */
const PROMPT_STATISTICS = 150_000;
/** Milliseconds: older versions show counts that are up to half a second old. */
const STATISTICS_AGE = 600;

/** Waits until the statistics include the fixes: the next `precast doctor` would find again what was just fixed. */
async function awaitStatistics(database: Database): Promise<void> {
  const [row] = await database.query(sql("SELECT current_setting('server_version_num')"));
  if (Number(row?.[0]) < PROMPT_STATISTICS) await sleep(STATISTICS_AGE);
}

async function runAll(database: Database, statements: readonly string[], terminal: Terminal): Promise<boolean> {
  for (const statement of statements) {
    const start = performance.now();
    try {
      await database.execute(statement);
    } catch (error) {
      if (error instanceof DatabaseFault && !isConflict(error) && !isCancelled(error)) throw error;
      if (isReadOnly(error)) throw error;
      terminal.warn(`${statement}: failed, ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
    terminal.say(`${statement}: done in ${formatSeconds((performance.now() - start) / 1_000)}`);
  }
  return true;
}
