/** The `serve` benchmark: runs its cases one after the other and prints what each server did. */
import { cpus } from "node:os";
import type { Bench } from "./bench.ts";
import { cachedCase } from "./cases/cached.ts";
import { countedCase } from "./cases/counted.ts";
import { overloadCase } from "./cases/overload.ts";
import { treelessCase } from "./cases/treeless.ts";
import { readServeOptions, SERVE_HELP, type ServeCase, type ServeOptions } from "./serve-options.ts";
import { drawRows, type Found } from "./serve-result.ts";
import { type Work, withWork } from "./work.ts";

export const serveBench: Bench = {
  name: "serve",
  describes: "what an answer costs, from the tree and live, and what happens when the database hangs",
  help: SERVE_HELP,
  run: (args) =>
    withWork(readServeOptions(args), async (work) => {
      const found = await runCases(work);
      process.stdout.write(work.options.json ? `${JSON.stringify(asJson(work, found))}\n` : asText(work, found));
      return found.faults.length > 0 ? 1 : 0;
    }),
};

const CASES: Readonly<Record<ServeCase, (work: Work<ServeOptions>) => Promise<Found>>> = {
  cached: cachedCase,
  counted: countedCase,
  treeless: treelessCase,
  overload: overloadCase,
};

async function runCases(work: Work<ServeOptions>): Promise<Found> {
  const found: Found[] = [];
  for (const name of work.options.cases) found.push(await CASES[name](work));
  return { rows: found.flatMap(({ rows }) => rows), faults: found.flatMap(({ faults }) => faults) };
}

const SOME = 5;

function asText(work: Work<ServeOptions>, { rows, faults }: Found): string {
  const { entries, apps, connections, rounds, seconds, node, postgres, processors } = context(work);
  const head = `${entries.toLocaleString("en")} entries in ${apps} app(s), ${connections} connections, ${rounds} rounds of ${seconds} s`;
  const verdict = faults.length === 0 ? "yes" : `no: ${faults.length} not, ${faults.slice(0, SOME).join(", ")}`;
  return `${head}, Node.js ${node}, PostgreSQL ${postgres ?? "not used"}, ${processors}
${drawRows(rows)}
exact: ${verdict} (every answer is what the tree holds, before and after, and every count is in the ledger)
`;
}

function asJson(work: Work<ServeOptions>, { rows, faults }: Found) {
  const exact = { holds: faults.length === 0, faults: faults.length, some: faults.slice(0, SOME) };
  return { ...context(work), rows, exact };
}

function context({ options, place }: Work<ServeOptions>) {
  const { entries, apps, connections, rounds, seconds } = options;
  const [first] = cpus();
  return {
    ...{ entries, apps, connections, rounds, seconds },
    node: process.versions.node,
    postgres: place.postgres(),
    processors: `${cpus().length} × ${first?.model.trim() ?? "unknown"}`,
  };
}
