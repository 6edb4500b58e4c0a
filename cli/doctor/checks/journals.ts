/** Finds journals of the ledger that no server sends: their server is gone, or a server could not read all lines. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes, formatCounted } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type Journal = { readonly bytes: number; readonly minutes: number; readonly broken: boolean };
type Facts = {
  readonly folder: string;
  readonly journals: readonly Journal[];
  /** The system's error code when the folder cannot be read. Null when it can be, and when there is none. */
  readonly refusal: string | null;
};

export const journalsCheck = defineCheck({
  name: "journals",
  gather: readJournals,
  judge: (facts) => [unsentFinding(facts), brokenFinding(facts), unreadFinding(facts)].filter((one) => one !== null),
});

async function readJournals({ dataDir, now }: CheckContext): Promise<Facts> {
  const folder = join(dataDir, "ledger");
  try {
    const files = (await readdir(folder)).filter((name) => /\.ndjson(\.broken)?$/.test(name));
    const journals = await Promise.all(files.map((name) => readJournal(join(folder, name), now)));
    return { folder, journals: journals.filter((journal) => journal !== null), refusal: null };
  } catch (error) {
    const code = codeOf(error);
    return { folder, journals: [], refusal: code === "ENOENT" ? null : code };
  }
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}

/** Null when the file is gone, because a server has just sent it. */
async function readJournal(path: string, now: Date): Promise<Journal | null> {
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
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

function unreadFinding({ folder, refusal }: Facts): Finding | null {
  if (refusal === null) return null;
  return {
    kind: "information",
    subject: `${folder}: cannot be read`,
    problem: `It was not checked for journals that no server sends: the system refuses to read it (${refusal}).`,
    gain: "Unsent and broken journals are reported.",
    remedy: "Run `precast doctor` as the user of the server.",
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
