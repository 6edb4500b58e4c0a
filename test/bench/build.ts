/** The `build` benchmark: runs its cases one after the other and prints what each took. */
import { cpus } from "node:os";
import type { Bench } from "./bench.ts";
import { BUILD_HELP, type Case, readBuildOptions } from "./build-options.ts";
import { appsCase } from "./cases/apps.ts";
import { changeCases } from "./cases/change.ts";
import { DEMO, embeddedCase } from "./cases/embedded.ts";
import { differencesFromNothing } from "./cases/exact.ts";
import { fullCase } from "./cases/full.ts";
import { drawResults, type Result } from "./result.ts";
import { openStore, type Work, withWork } from "./work.ts";

export const buildBench: Bench = {
  name: "build",
  describes: "how long a build takes, from nothing and after small changes",
  help: BUILD_HELP,
  run: (args) =>
    withWork(readBuildOptions(args), async (work) => {
      const found = await runCases(work);
      process.stdout.write(work.options.json ? `${JSON.stringify(asJson(work, found))}\n` : asText(work, found));
      return isWrong(found.exactness) ? 1 : 0;
    }),
};

/** What the checks of the tree after the changes found; null where a check was not made. */
type Exactness = {
  /** Paths at which the tree differs from that of a build from nothing. */
  readonly differing: readonly string[] | null;
  /** Files whose time and bytes did not change together. */
  readonly wrong: readonly string[] | null;
};

type Found = { readonly results: readonly Result[]; readonly exactness: Exactness };

async function runCases(work: Work): Promise<Found> {
  const { options } = work;
  const picked = (...cases: readonly Case[]) => options.cases.some((name) => cases.includes(name));
  const results: Result[] = [];
  let exactness: Exactness = { differing: null, wrong: null };
  if (picked("full", "nothing", "edit", "publish")) {
    const large = await largeCases(work, picked("nothing", "edit", "publish"));
    results.push(...large.results);
    exactness = large.exactness;
  }
  if (picked("apps")) results.push(...(await appsCase(work)));
  if (picked("embedded")) results.push(...(await embeddedCase(work, "embedded", DEMO, options.runs.small)));
  const { bundle } = options;
  if (bundle !== null) results.push(...(await embeddedCase(work, "bundle", bundle, options.runs.large)));
  return { results, exactness };
}

/** The cases that share the one large app. */
async function largeCases(work: Work, changes: boolean): Promise<Found> {
  const content = [{ key: "bench", first: 0, count: work.options.entries }];
  const store = await openStore(work, "full", content);
  const { tree, results } = await fullCase(work, store);
  if (!changes) return { results, exactness: { differing: null, wrong: null } };
  const changed = await changeCases(work, tree);
  const differing = work.options.check ? await differencesFromNothing(work, tree) : null;
  return { results: [...results, ...changed.results], exactness: { differing, wrong: changed.wrong } };
}

function isWrong({ differing, wrong }: Exactness): boolean {
  return (differing ?? []).length > 0 || (wrong ?? []).length > 0;
}

function asText(work: Work, { results, exactness }: Found): string {
  const { entries, node, processors, postgres } = context(work);
  const head = `${entries.toLocaleString("en")} entries, Node.js ${node}, PostgreSQL ${postgres ?? "not used"}, ${processors}`;
  const lines = [
    verdict("exact", "the tree is that of a build from nothing", exactness.differing),
    verdict("written", "the files that changed have a new time, and no others", exactness.wrong),
  ];
  return `${head}\n${drawResults(results)}\n${lines.join("")}`;
}

function verdict(name: string, says: string, faults: readonly string[] | null): string {
  if (faults === null) return "";
  const some = faults.slice(0, 5).join(", ");
  return `${name}: ${faults.length === 0 ? "yes" : "no"} (${says})${some === "" ? "" : `: ${faults.length} not, ${some}`}\n`;
}

function asJson(work: Work, { results, exactness }: Found) {
  const { differing, wrong } = exactness;
  return { ...context(work), results, exact: findings(differing), onlyChanged: findings(wrong) };
}

function findings(faults: readonly string[] | null) {
  return faults === null ? null : { holds: faults.length === 0, faults: faults.length, some: faults.slice(0, 5) };
}

function context({ options, place }: Work) {
  const [first] = cpus();
  return {
    entries: options.entries,
    node: process.versions.node,
    postgres: place.postgres(),
    processors: `${cpus().length} × ${first?.model.trim() ?? "unknown"}`,
  };
}
