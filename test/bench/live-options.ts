/** The options of the `live` benchmark: their help, and how they are read. */
import { ROWS, type RowName } from "./live/asked.ts";
import { COMMON_OPTIONS, type CommonOptions, readCommon, readNames, readOptions, readWhole } from "./options.ts";

const LIVE_CASES = ["reads", "writes", "tenants"] as const;
export type LiveCase = (typeof LIVE_CASES)[number];

export type LiveOptions = CommonOptions & {
  readonly cases: readonly LiveCase[];
  /** For `reads`: the numbers of articles, in ascending order. */
  readonly sizes: readonly number[];
  readonly rows: readonly RowName[];
  readonly requests: number;
  readonly rounds: number;
  /** How long each round of each side is measured. */
  readonly seconds: number;
  readonly connections: number;
  /** Whether the whole tree is built first, instead of one with the types alone. */
  readonly build: boolean;
  /** For `writes`: how many entries are imported. */
  readonly entries: number;
  readonly tenants: number;
  readonly settings: Readonly<Record<string, string>>;
};

/** The least that an operator with a million entries would configure. */
const SETTINGS = { shared_buffers: "1GB", work_mem: "16MB", random_page_cost: "1.1" };

export const LIVE_HELP = `Cases:
  reads      counted requests, against a program by hand on a table that is made for the same content
  writes     import, edits by SQL one by one, at once and in one, vacuum, against the same on that table
  tenants    one small app among thousands, against one alone

Options:
  --cases A,B            these cases alone
  --sizes N,N            reads: so many articles, each 1000 to 2000000: by default 10000,100000
  --rows A,B             reads: these rows alone, of
                         ${wrapped(ROWS)}
  --requests N           reads: different requests of a row, by default 200; fewer where checking them takes long
  --rounds N             reads: how often each side is measured, in turn: by default 3
  --seconds N            reads: how long each time: by default 2; longer where answers take long
  --connections N        reads: keep-alive connections, each with one request at a time: by default 20
  --build                reads: build the whole tree first; without it the server's tree knows the types alone
  --entries N            writes: so many are imported, 1000 to 1000000: by default 100000
  --tenants N            tenants: so many apps of three types with ten entries each: by default 2000
  --json                 print one JSON value instead of tables (with npm run -s)
  --dir FOLDER           where trees, ledgers and bundles are written, by default the system's temporary folder
  --database-url URL     a PostgreSQL on which a superuser may make databases, by default one of its own
  --keep                 keep what was written; with --database-url also the databases of the reads, bench_live_<size>: the
                         next bench with --keep migrates them and takes them as they are

Exit code 1 when both sides do not give the same page and total, or an answer is neither right nor a refusal for want of time.
How long something takes changes no exit code.
`;

const OPTIONS = {
  cases: { type: "string", default: LIVE_CASES.join(",") },
  sizes: { type: "string", default: "10000,100000" },
  rows: { type: "string", default: ROWS.join(",") },
  requests: { type: "string", default: "200" },
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "2" },
  connections: { type: "string", default: "20" },
  build: { type: "boolean", default: false },
  entries: { type: "string", default: "100000" },
  tenants: { type: "string", default: "2000" },
  ...COMMON_OPTIONS,
} as const;

export function readLiveOptions(args: readonly string[]): LiveOptions {
  const values = readOptions(args, OPTIONS);
  return {
    cases: readNames("--cases", "case", values.cases, LIVE_CASES),
    sizes: values.sizes
      .split(",")
      .map((size) => readWhole("--sizes", size, 1_000, 2_000_000))
      .sort((a, b) => a - b),
    rows: readNames("--rows", "row", values.rows, ROWS),
    requests: readWhole("--requests", values.requests, 1, 10_000),
    rounds: readWhole("--rounds", values.rounds, 1, 100),
    seconds: readWhole("--seconds", values.seconds, 1, 600),
    connections: readWhole("--connections", values.connections, 1, 1_000),
    build: values.build,
    entries: readWhole("--entries", values.entries, 1_000, 1_000_000),
    tenants: readWhole("--tenants", values.tenants, 1, 10_000),
    ...readCommon(values),
    settings: SETTINGS,
  };
}

function wrapped(names: readonly string[]): string {
  const half = Math.ceil(names.length / 2);
  return [names.slice(0, half), names.slice(half)].map((some) => some.join(", ")).join(",\n                         ");
}
