/** The `work` benchmark: workers as processes publish many apps and their edits, against one `build && deploy`. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "./bench.ts";
import { OptionError } from "./bench.ts";
import { BODY } from "./content.ts";
import { COMMON_OPTIONS, type CommonOptions, readCommon, readOptions, readWhole } from "./options.ts";
import { openStore, type Work, withWork } from "./work.ts";
import { measureQueue } from "./workers/queue.ts";
import { asJson, asText, type Found, type Side } from "./workers/report.ts";
import { runSide, type Setting } from "./workers/side.ts";

export type WorkersOptions = CommonOptions & {
  readonly apps: number;
  readonly entries: number;
  readonly large: number;
  readonly largeEntries: number;
  readonly body: number;
  readonly workers: readonly number[];
  readonly appsPerProcess: number;
  readonly edits: number;
  readonly rounds: number;
  readonly reference: boolean;
  readonly check: boolean;
  readonly toFolder: boolean;
};

const HELP = `Publishes apps for the first time, then edits one by one while all is idle, then one edit of each that are committed
together: with precast work in one and several processes, and with one precast build && precast deploy. The store is the tests'
stand-in for S3, a process of its own. Then it measures what the queue costs beside a publication, in one process.

Options:
  --apps N               small apps: 10 to 100000, by default 2000
  --entries N            entries of a small app, by default 5
  --large N              large apps, by default 20
  --large-entries N      entries of a large app, by default 3000
  --body N               characters of the rich text of an entry, by default 2900
  --workers A,B          numbers of workers, by default 1,2,4
  --apps-per-process N   apps that a worker publishes at the same time, by default 4
  --edits N              edits one by one, by default 50; with build && deploy at most 5
  --rounds N             how often each side publishes everything, by default once
  --to-folder            publish to a folder, as where the store would need too much memory
  --no-reference         without build && deploy
  --no-check             do not compare the target with a full build
  --json                 print one JSON value instead of tables (with npm run -s)
  --dir FOLDER           where trees are written, by default the system's temporary folder
  --keep                 keep what was written
  --database-url URL     a PostgreSQL on which a superuser may make databases, by default one of its own

Ten thousand apps of 100 entries, of which one at a time is edited:
  npm run bench -- work --apps 10000 --entries 100 --body 300 --large 0 --workers 1 --to-folder --no-reference --no-check

Exit code 1 when a target does not hold what a full build makes. How long something takes changes no exit code.
`;

const OPTIONS = {
  apps: { type: "string", default: "2000" },
  entries: { type: "string", default: "5" },
  large: { type: "string", default: "20" },
  "large-entries": { type: "string", default: "3000" },
  body: { type: "string", default: `${BODY}` },
  workers: { type: "string", default: "1,2,4" },
  "apps-per-process": { type: "string", default: "4" },
  edits: { type: "string", default: "50" },
  rounds: { type: "string", default: "1" },
  "to-folder": { type: "boolean", default: false },
  "no-reference": { type: "boolean", default: false },
  "no-check": { type: "boolean", default: false },
  ...COMMON_OPTIONS,
} as const;

function readWorkersOptions(args: readonly string[]): WorkersOptions {
  const values = readOptions(args, OPTIONS);
  const workers = values.workers.split(",").map((text) => readWhole("--workers", text, 1, 64));
  if (new Set(workers).size < workers.length) throw new OptionError("--workers names a number twice.");
  return {
    apps: readWhole("--apps", values.apps, 10, 100_000),
    entries: readWhole("--entries", values.entries, 1, 2_000),
    large: readWhole("--large", values.large, 0, 1_000),
    largeEntries: readWhole("--large-entries", values["large-entries"], 1, 100_000),
    body: readWhole("--body", values.body, 1, 100_000),
    workers,
    appsPerProcess: readWhole("--apps-per-process", values["apps-per-process"], 1, 64),
    edits: readWhole("--edits", values.edits, 1, 10_000),
    rounds: readWhole("--rounds", values.rounds, 1, 100),
    reference: !values["no-reference"],
    check: !values["no-check"],
    toFolder: values["to-folder"],
    ...readCommon(values),
  };
}

export const workersBench: Bench = {
  name: "work",
  describes: "how fast workers publish many apps, against build && deploy, and what their queue costs",
  help: HELP,
  run: (args) =>
    withWork(readWorkersOptions(args), async (work) => {
      const found = await measureAll(work);
      process.stdout.write(work.options.json ? `${JSON.stringify(asJson(work, found))}\n` : asText(work, found));
      return found.sides.some(({ runs }) => runs.some(({ faults }) => (faults ?? []).length > 0)) ? 1 : 0;
    }),
};

async function measureAll(work: Work<WorkersOptions>): Promise<Found> {
  const { options, place, say } = work;
  const { content, small } = makeContent(options);
  const { url, source } = await openStore(work, "work", content);
  const step = Math.max(1, Math.floor(small.length / options.edits));
  const edited = Array.from({ length: options.edits }, (_, edit) => small[(edit * step) % small.length] as string);
  const targets = options.toFolder ? join(place.folder, "targets") : null;
  if (targets !== null) mkdirSync(targets);
  const { appsPerProcess, check } = options;
  const apps = content.map(({ key }) => key);
  const setting: Setting = { url, source, apps, edited, folder: place.folder, targets, appsPerProcess, check, say };
  const sides = [...(options.reference ? [0] : []), ...options.workers].map((workers): Side => ({ workers, runs: [] }));
  for (let round = 1; round <= options.rounds; round++) {
    for (const { workers, runs } of round % 2 === 1 ? sides : [...sides].reverse()) {
      say(`work: round ${round}, ${workers === 0 ? "build && deploy" : `${workers} workers`}`);
      runs.push(await runSide(setting, workers, `round-${round}-${workers}`));
    }
  }
  say("work: the queue alone");
  const queue = await measureQueue(url, place.folder, small.slice(0, MOST_ALONE), appsPerProcess);
  return { sides, queue };
}

/** Apps that are published without a queue. */
const MOST_ALONE = 500;

/** Every entry has a number of its own. */
function makeContent({ apps, entries, large, largeEntries, body }: WorkersOptions) {
  const small = Array.from({ length: apps }, (_, index) => ({
    ...{ key: `small-${index}`, first: index * entries, count: entries, body },
  }));
  const others = Array.from({ length: large }, (_, index) => ({
    ...{ key: `large-${index}`, first: apps * entries + index * largeEntries, count: largeEntries, body },
  }));
  return { content: [...small, ...others], small: small.map(({ key }) => key) };
}
