/** The options of the `build` benchmark: their help, and how they are read. */
import { resolve } from "node:path";
import { OptionError } from "./bench.ts";
import { COMMON_OPTIONS, type CommonOptions, readCommon, readNames, readOptions, readWhole } from "./options.ts";

export const CASES = ["full", "nothing", "edit", "publish", "apps", "embedded"] as const;
export type Case = (typeof CASES)[number];

export type BuildOptions = CommonOptions & {
  readonly entries: number;
  readonly cases: readonly Case[];
  /** A bundle to import and build on the embedded database; null for none. */
  readonly bundle: string | null;
  readonly check: boolean;
  /** How often a case runs: `large` for those that take long, `small` for the others. */
  readonly runs: { readonly large: number; readonly small: number };
};

export const BUILD_HELP = `Cases:
  full       everything from nothing, against tar -xf of the same tree
  nothing    a build after which nothing has changed
  edit       one entry edited: a text; a number that can be sorted by; a text and updated_at
  publish    one draft published, as the newest entry
  apps       200 apps of 50 entries against one app of 10,000
  embedded   the demo content, imported into the embedded database and built

Options:
  --entries N            entries of the cases full to publish: 1000 to 1000000, by default 100000
  --cases A,B            these cases alone
  --bundle FOLDER        import and build this bundle on the embedded database as well
  --runs N               how often each case is run; by default full, tar, publish and bundle once, the rest 5 times
  --no-check             do not look whether the tree after the changes is the one of a build from nothing
  --json                 print one JSON value instead of a table (with npm run -s)
  --dir FOLDER           where trees and archives are written, by default the system's temporary folder
  --keep                 keep what was written
  --database-url URL     a PostgreSQL on which a superuser may make databases, by default one of its own

Nothing is deleted before the end, so --runs takes disk: a tree and, for tar, its copy a run. On ext4 without a journal, what
is written shortly after many files were deleted or replaced takes several times as long (inodes that were freed in the
last minutes are passed over one by one): leave five minutes between two benches.

Exit code 1 when a tree is wrong or a build fails. How long something takes changes no exit code.
`;

const OPTIONS = {
  entries: { type: "string", default: "100000" },
  cases: { type: "string", default: CASES.join(",") },
  bundle: { type: "string" },
  runs: { type: "string" },
  "no-check": { type: "boolean", default: false },
  ...COMMON_OPTIONS,
} as const;

export function readBuildOptions(args: readonly string[]): BuildOptions {
  const values = readOptions(args, OPTIONS);
  const runs = values.runs === undefined ? null : readWhole("--runs", values.runs, 1, 100);
  const options = {
    entries: readWhole("--entries", values.entries, 1_000, 1_000_000),
    cases: readNames("--cases", "case", values.cases, CASES),
    bundle: values.bundle === undefined ? null : resolve(values.bundle),
    check: !values["no-check"],
    ...readCommon(values),
    runs: { large: runs ?? 1, small: runs ?? 5 },
  };
  if (options.runs.small > options.entries / 100)
    throw new OptionError("--runs: every run publishes a draft, and one in 100 entries is one; give more --entries.");
  return options;
}
