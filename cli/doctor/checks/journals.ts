/** Finds journals of the ledger that no server sends: their server is gone, or a server could not read all lines. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes, formatCounted } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type Journal = { readonly bytes: number; readonly minutes: number; readonly broken: boolean };
type Facts = { readonly folder: string; readonly journals: readonly Journal[] };

export const journalsCheck = defineCheck({
  name: "journals",
  gather: readJournals,
  judge: (facts) => [unsentFinding(facts), brokenFinding(facts)].filter((one) => one !== null),
});

async function readJournals({ dataDir, now }: CheckContext): Promise<Facts> {
  const folder = join(dataDir, "ledger");
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => /\.ndjson(\.broken)?$/.test(name));
  const journals = await Promise.all(files.map((name) => readJournal(join(folder, name), now)));
  return { folder, journals: journals.filter((journal) => journal !== null) };
}

/** Null when the file is gone, because a server has just sent it. */
async function readJournal(path: string, now: Date): Promise<Journal | null> {
  const found = await stat(path).catch(() => null);
  if (found === null) return null;
  const minutes = (now.getTime() - found.mtimeMs) / 60_000;
  return { bytes: found.size, minutes, broken: path.endsWith(".broken") };
}

/** Minutes. A running server touches its journals every few seconds, and takes over those of dead servers. */
const UNSENT_MINUTES = 10;

function unsentFinding({ folder, journals }: Facts): Finding | null {
  const unsent = journals.filter(({ broken, minutes }) => !broken && minutes >= UNSENT_MINUTES);
  if (unsent.length === 0) return null;
  return {
    kind: "advice",
    subject: `${folder}: unsent journals`,
    problem: `${describe(unsent)} of counted requests, not written for ${age(unsent)}: no running server uses the folder.`,
    gain: "The counts reach the database.",
    remedy: "Start `precast serve` with this --data-dir and database. It sends the journals, and can then be stopped.",
    fix: null,
  };
}

function brokenFinding({ folder, journals }: Facts): Finding | null {
  const broken = journals.filter((journal) => journal.broken);
  if (broken.length === 0) return null;
  return {
    kind: "advice",
    subject: `${folder}: broken journals`,
    problem: `${describe(broken)} with lines that could not be read. All other lines are counted.`,
    gain: "No counts are lost unnoticed.",
    remedy: "Find the cause (a full disk or a manual edit, for example), then delete the files that end in .broken.",
    fix: null,
  };
}

function describe(journals: readonly Journal[]): string {
  const bytes = journals.reduce((sum, journal) => sum + journal.bytes, 0);
  return `${formatCounted(journals.length, "journal")} (${formatBytes(bytes)})`;
}

function age(journals: readonly Journal[]): string {
  const minutes = Math.floor(Math.max(...journals.map((journal) => journal.minutes)));
  return minutes < 120 ? formatCounted(minutes, "minute") : formatCounted(Math.floor(minutes / 60), "hour");
}
