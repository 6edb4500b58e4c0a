/** The `live` benchmark: runs its cases one after the other and prints how Precast compares. */
import { cpus } from "node:os";
import type { Bench } from "./bench.ts";
import { readsCase } from "./cases/reads.ts";
import { tenantsCase } from "./cases/tenants.ts";
import { writesCase } from "./cases/writes.ts";
import { LIVE_HELP, type LiveCase, type LiveOptions, readLiveOptions } from "./live-options.ts";
import { drawNotes, drawReads, type Found, growthOf } from "./live-result.ts";
import { type Work, withWork } from "./work.ts";

export const liveBench: Bench = {
  name: "live",
  describes: "counted requests, writes and thousands of tenants, against a table made by hand for the same content",
  help: LIVE_HELP,
  run: (args) =>
    withWork(readLiveOptions(args), async (work) => {
      const found = await runCases(work);
      process.stdout.write(work.options.json ? `${JSON.stringify(asJson(work, found))}\n` : asText(work, found));
      return found.faults.length > 0 ? 1 : 0;
    }),
};

const CASES: Readonly<Record<LiveCase, (work: Work<LiveOptions>) => Promise<Found>>> = {
  reads: readsCase,
  writes: writesCase,
  tenants: tenantsCase,
};

async function runCases(work: Work<LiveOptions>): Promise<Found> {
  const found: Found[] = [];
  for (const name of work.options.cases) found.push(await CASES[name](work));
  return {
    reads: found.flatMap(({ reads }) => reads),
    notes: found.flatMap(({ notes }) => notes),
    faults: found.flatMap(({ faults }) => faults),
  };
}

const SOME = 10;

function asText(work: Work<LiveOptions>, { reads, notes, faults }: Found): string {
  const { connections, rounds, seconds, node, postgres, processors } = context(work);
  const head = `${connections} connections, ${rounds} rounds of ${seconds} s, Node.js ${node}, PostgreSQL ${postgres}, ${processors}`;
  const tables = [
    ...(reads.length === 0
      ? []
      : [
          drawReads(reads),
          "anew: by a server that keeps no answers; growth: cost of a request with the most entries, of that with the fewest",
        ]),
    ...(notes.length === 0 ? [] : [drawNotes(notes)]),
  ];
  const verdict = faults.length === 0 ? "yes" : `no: ${faults.length} not\n${faults.slice(0, SOME).join("\n")}`;
  return `${head}\n${tables.join("\n")}\nexact: ${verdict}\n`;
}

function asJson(work: Work<LiveOptions>, { reads, notes, faults }: Found) {
  const rows = [...new Set(reads.map(({ row }) => row))];
  const growth = rows.map((row) => ({ row, growth: growthOf(reads.filter((read) => read.row === row)) }));
  const exact = { holds: faults.length === 0, faults: faults.length, some: faults.slice(0, SOME) };
  return { ...context(work), reads, growth, notes, exact };
}

function context({ options, place }: Work<LiveOptions>) {
  const { connections, rounds, seconds } = options;
  const [first] = cpus();
  return {
    ...{ connections, rounds, seconds },
    node: process.versions.node,
    postgres: place.postgres(),
    processors: `${cpus().length} × ${first?.model.trim() ?? "unknown"}`,
  };
}
