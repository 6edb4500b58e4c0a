/** Applies the safe fixes: runs the statements of the findings and reports each of them. */
import type { Database } from "../../shared/database/database.ts";
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
  if (fixed.length > 0) terminal.say("");
  return { fixed, left: findings.filter((finding) => !fixed.includes(finding)) };
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
