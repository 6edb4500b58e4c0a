/** The `deploy` benchmark: copies a tree to the tests' S3 stand-in with `precast deploy` and with rclone, in turn. */
import { cpus } from "node:os";
import { join } from "node:path";
import type { Bench } from "./bench.ts";
import { type Client, PREFIX, precastClient, rcloneClient } from "./deploy/clients.ts";
import { type Held, type Store, startStore } from "./deploy/store.ts";
import { measureTimes } from "./measure.ts";
import { COMMON_OPTIONS, type CommonOptions, readCommon, readOptions, readWhole } from "./options.ts";
import { runBuild } from "./precast.ts";
import { type Spread, spreadOf } from "./spread.ts";
import { drawTable } from "./table.ts";
import { type Look, lookAt } from "./tree.ts";
import { openStore, type Work, withWork } from "./work.ts";

type DeployOptions = CommonOptions & {
  readonly entries: number;
  readonly rounds: number;
  /** Files that are sent at once. */
  readonly transfers: number;
};

const HELP = `Builds a tree and copies it to the tests' stand-in for S3, which runs as a process of its own, with precast deploy and
with rclone sync in turn: to an empty bucket, and again when nothing has changed.

Options:
  --entries N            entries of the tree: 100 to 100000, by default 3364, which are 7,397 files with the app's state
  --rounds N             how often each program copies it: by default 5
  --transfers N          files that are sent at once: by default 16
  --json                 print one JSON value instead of a table (with npm run -s)
  --dir FOLDER           where the tree is written, by default the system's temporary folder
  --keep                 keep what was written
  --database-url URL     a PostgreSQL on which a superuser may make databases, by default one of its own

CPU is user and system time of the program. rclone is run where it is installed, with its defaults.

Exit code 1 when the bucket does not hold the tree afterwards. How long something takes changes no exit code.
`;

const OPTIONS = {
  entries: { type: "string", default: "3364" },
  rounds: { type: "string", default: "5" },
  transfers: { type: "string", default: "16" },
  ...COMMON_OPTIONS,
} as const;

function readDeployOptions(args: readonly string[]): DeployOptions {
  const values = readOptions(args, OPTIONS);
  return {
    entries: readWhole("--entries", values.entries, 100, 100_000),
    rounds: readWhole("--rounds", values.rounds, 1, 100),
    transfers: readWhole("--transfers", values.transfers, 1, 1_000),
    ...readCommon(values),
  };
}

export const deployBench: Bench = {
  name: "deploy",
  describes: "how long a tree takes to a bucket, from nothing and when nothing has changed, against rclone",
  help: HELP,
  run: (args) =>
    withWork(readDeployOptions(args), async (work) => {
      const out = await buildTree(work);
      const store = await startStore();
      try {
        const found = await runRounds(work, store, out);
        process.stdout.write(work.options.json ? `${JSON.stringify(asJson(work, found))}\n` : asText(work, found));
        return found.faults.length > 0 ? 1 : 0;
      } finally {
        await store.stop();
      }
    }),
};

async function buildTree(work: Work<DeployOptions>): Promise<string> {
  const { options, place, say } = work;
  const { source } = await openStore(work, "deploy", [{ key: "bench", first: 0, count: options.entries }]);
  const out = join(place.folder, "out");
  say("deploy: building");
  await runBuild(source, out, place.folder);
  return out;
}

const TURNS = ["first upload", "nothing to do"] as const;

/** What one program took in one round. */
type Copied = {
  readonly seconds: number;
  /** Seconds of CPU; that of the store is the least that any program has to wait for. */
  readonly cpu: number;
  readonly storeCpu: number;
  readonly requests: number;
};

type Side = { readonly client: Client; readonly copied: Readonly<Record<(typeof TURNS)[number], Copied[]>> };
type Found = { readonly sides: readonly Side[]; readonly files: number; readonly faults: readonly string[] };

async function runRounds({ options, place, say }: Work<DeployOptions>, store: Store, out: string): Promise<Found> {
  const copy = { out, transfers: options.transfers, folder: place.folder };
  const rclone = rcloneClient(store, copy);
  if (rclone === null) say("deploy: rclone is not installed, so there is nothing to compare with");
  const clients = [precastClient(store, copy), ...(rclone === null ? [] : [rclone])];
  const sides = clients.map((client): Side => ({ client, copied: { "first upload": [], "nothing to do": [] } }));
  const tree = lookAt(out);
  const faults: string[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    say(`deploy: round ${round}`);
    // In turn, because the program that comes first may be at a disadvantage.
    for (const { client, copied } of round % 2 === 1 ? sides : [...sides].reverse()) {
      let before = await store.empty();
      for (const turn of TURNS) {
        const [program, ...args] = client.command;
        const { seconds, cpu } = await measureTimes(program, args, place.folder, client.env);
        const after = await store.look();
        copied[turn].push({ seconds, cpu, storeCpu: after.cpu - before.cpu, requests: after.requests });
        faults.push(...differencesOf(tree, after).map((path) => `${client.name}, ${turn}: ${path}`));
        before = after;
      }
    }
  }
  return { sides, files: tree.size, faults };
}

/** The paths at which the bucket differs from the tree. What programs keep there for themselves is left out. */
function differencesOf(tree: Look, { objects }: Held): string[] {
  const held = new Map(objects.map(([key, hash]) => [key.slice(PREFIX.length + 1), hash]));
  const paths = [...new Set([...tree.keys(), ...held.keys()])].filter((path) => !path.startsWith(".precast/"));
  return paths.filter((path) => held.get(path) !== tree.get(path)?.hash).sort();
}

const AIM = "≤ 1.0 of rclone";
const HEAD = ["what", "program", "seconds (median, least to most)", "CPU s", "store's CPU s", "requests"];
const RATIOS = ["seconds", "CPU"];

function asText(work: Work<DeployOptions>, { sides, files, faults }: Found): string {
  const { entries, rounds, transfers, programs, processors } = context(work, sides);
  const head = `${entries.toLocaleString("en")} entries, ${files.toLocaleString("en")} files and the app's state, ${transfers} at once, ${rounds} rounds, ${programs.join(", ")}, ${processors}`;
  const rows = TURNS.flatMap((turn) => sides.map((side) => cellsOf(turn, side, sides)));
  const titles = [...HEAD, ...RATIOS.map((name) => `ratio of ${name}`), "aim"];
  const table = drawTable(titles, (column) => column >= 2 && column < titles.length - 1, rows);
  const verdict = faults.length === 0 ? "yes" : `no: ${faults.length} not, ${faults.slice(0, 5).join(", ")}`;
  const lonely = sides.length > 1 ? "" : "rclone is not installed: there is nothing to compare with.\n";
  return `${head}\n${table}\n${lonely}exact: ${verdict} (the bucket holds the tree)\n`;
}

function cellsOf(turn: (typeof TURNS)[number], side: Side, sides: readonly Side[]): string[] {
  const all = side.copied[turn];
  const median = (read: (one: Copied) => number) => spreadOf(all.map(read)).median;
  const reference = sides[1];
  const ratios = reference === undefined || side === reference ? null : ratiosOf(turn, side, reference);
  return [
    turn,
    side.client.name,
    spreadText(spreadOf(all.map(({ seconds }) => seconds))),
    median(({ cpu }) => cpu).toFixed(2),
    median(({ storeCpu }) => storeCpu).toFixed(2),
    median(({ requests }) => requests).toLocaleString("en"),
    ...(ratios === null ? ["", "", ""] : [spreadText(ratios.seconds), spreadText(ratios.cpu), AIM]),
  ];
}

/** Compared round by round, so that what disturbs the machine for a while disturbs both. */
function ratiosOf(turn: (typeof TURNS)[number], side: Side, reference: Side) {
  const of = (read: (one: Copied) => number) =>
    spreadOf(side.copied[turn].map((one, round) => read(one) / read(reference.copied[turn][round] as Copied)));
  return { seconds: of(({ seconds }) => seconds), cpu: of(({ cpu }) => cpu) };
}

function spreadText({ least, median, most }: Spread): string {
  const range = least === most ? "" : ` (${least.toFixed(2)} to ${most.toFixed(2)})`;
  return `${median.toFixed(2)}${range}`;
}

function asJson(work: Work<DeployOptions>, { sides, files, faults }: Found) {
  const results = TURNS.flatMap((turn) =>
    sides.map((side, place) => {
      const reference = sides[1];
      const ratios = reference === undefined || place === 1 ? null : ratiosOf(turn, side, reference);
      return { what: turn, program: side.client.name, rounds: side.copied[turn], ratios };
    }),
  );
  const exact = { holds: faults.length === 0, faults: faults.length, some: faults.slice(0, 5) };
  return { ...context(work, sides), files, results, exact };
}

function context({ options, place }: Work<DeployOptions>, sides: readonly Side[]) {
  const { entries, rounds, transfers } = options;
  const [first] = cpus();
  return {
    ...{ entries, rounds, transfers },
    programs: sides.map(({ client }) => client.version),
    postgres: place.postgres(),
    processors: `${cpus().length} × ${first?.model.trim() ?? "unknown"}`,
  };
}
