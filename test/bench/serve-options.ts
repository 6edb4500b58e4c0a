/** The options of the `serve` benchmark: their help, and how they are read. */
import { resolve } from "node:path";
import { COMMON_OPTIONS, type CommonOptions, readCommon, readNames, readOptions, readWhole } from "./options.ts";

const SERVE_CASES = ["cached", "counted", "treeless", "overload"] as const;
export type ServeCase = (typeof SERVE_CASES)[number];

export type ServeOptions = CommonOptions & {
  readonly entries: number;
  readonly apps: number;
  readonly cases: readonly ServeCase[];
  readonly rounds: number;
  /** How long each round of each side is measured. */
  readonly seconds: number;
  readonly connections: number;
  /** Where CPU profiles are written; null for none. */
  readonly profile: string | null;
};

export const SERVE_HELP = `Cases:
  cached     answers of the tree, against bare node:http that writes the same bytes from memory, and nginx on the same tree
  counted    counted requests with the ledger, against the same server without
  treeless   counted requests without a tree, as where the tree is on a CDN, against the same server with it
  overload   answers of the tree while the database hangs and the queue for it is full, against the same without

Options:
  --entries N            entries of all apps together: 1000 to 1000000, by default 10000
  --apps N               apps that share them: 1 to 1000, by default 1
  --cases A,B            these cases alone
  --rounds N             how often each server is measured, in turn: by default 5
  --seconds N            how long each time: by default 3
  --connections N        keep-alive connections, each with one request at a time: by default 50
  --profile FOLDER       write CPU profiles of precast serve and bare node:http there; profiled processes are slower
  --json                 print one JSON value instead of a table (with npm run -s)
  --dir FOLDER           where tree and ledger are written, by default the system's temporary folder
  --keep                 keep what was written
  --database-url URL     a PostgreSQL on which a superuser may make databases, by default one of its own

CPU is user and system time of the server's processes in the measured time, read from /proc: it is told on Linux alone.
nginx is measured where /usr/sbin/nginx is.

Exit code 1 when an answer is not what the tree holds or a count is wrong. How long something takes changes no exit code.
`;

const OPTIONS = {
  entries: { type: "string", default: "10000" },
  apps: { type: "string", default: "1" },
  cases: { type: "string", default: SERVE_CASES.join(",") },
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "3" },
  connections: { type: "string", default: "50" },
  profile: { type: "string" },
  ...COMMON_OPTIONS,
} as const;

export function readServeOptions(args: readonly string[]): ServeOptions {
  const values = readOptions(args, OPTIONS);
  return {
    entries: readWhole("--entries", values.entries, 1_000, 1_000_000),
    apps: readWhole("--apps", values.apps, 1, 1_000),
    cases: readNames("--cases", "case", values.cases, SERVE_CASES),
    rounds: readWhole("--rounds", values.rounds, 1, 100),
    seconds: readWhole("--seconds", values.seconds, 1, 600),
    connections: readWhole("--connections", values.connections, 1, 10_000),
    profile: values.profile === undefined ? null : resolve(values.profile),
    ...readCommon(values),
  };
}
