/** Applies the safe fixes: runs the statements of the findings and reports each of them. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled, isConflict, isReadOnly } from "../../shared/database/fault.ts";
import { sql } from "../../shared/query.ts";
import { formatSeconds } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { CheckFinding } from "./check-run.ts";
import { canFix } from "./finding.ts";

export type FixResult = { readonly fixed: readonly CheckFinding[]; readonly left: readonly CheckFinding[] };

/** Runs the named checks again, which tells whether a fix has helped. */
export type CheckAgain = (names: readonly string[]) => Promise<readonly CheckFinding[]>;

/**
 * Warns of a statement that fails or does not help, and keeps its finding in `left`. Throws a DatabaseFault when the
 * database is unavailable, and its error when the database is read-only.
 */
export async function applyFixes(
  database: Database,
  findings: readonly CheckFinding[],
  terminal: Terminal,
  checkAgain: CheckAgain,
): Promise<FixResult> {
  const fixed: CheckFinding[] = [];
  for (const finding of findings) {
    if (canFix(finding) && (await runAll(database, finding.fix, terminal))) fixed.push(finding);
  }
  if (fixed.length === 0) return { fixed, left: findings };
  await awaitStatistics(database);
  const again = await checkAgain([...new Set(fixed.map(({ check }) => check))]);
  const remains = (finding: CheckFinding) => again.find((one) => isSame(one, finding));
  for (const { subject } of fixed.filter(remains))
    terminal.warn(`${subject}: the fix was applied and did not help. Something else has to change first.`);
  terminal.say("");
  return {
    fixed: fixed.filter((finding) => remains(finding) === undefined),
    left: findings.flatMap((finding) => (fixed.includes(finding) ? (remains(finding) ?? []) : finding)),
  };
}

function isSame(one: CheckFinding, other: CheckFinding): boolean {
  return one.check === other.check && one.subject === other.subject;
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
