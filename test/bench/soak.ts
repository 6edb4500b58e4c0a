/**
 * The soak: hours of a server's life in minutes. Readers ask without pause while content is edited and built, the
 * database is stopped and frozen, and workers are killed; at the end every body and every count is accounted for.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../support/postgres.ts";
import type { Bench } from "./bench.ts";
import { readOptions, readWhole } from "./options.ts";
import { asText } from "./soak/report.ts";
import { type SoakOptions, soak } from "./soak/run.ts";

const HELP = `Options:
  --minutes N            how long: 1 to 600, by default 5
  --entries N            entries: 200 to 100000, by default 2000
  --workers N            processes that answer: 2 to 16, by default 3
  --clients N            readers of free answers, and a third as many of counted ones: by default 24
  --seed N               another order of events
  --json                 print one JSON value (with npm run -s)

Exit code 1 when a body was wrong, a count was lost, or an answer was none that a server gives in trouble. Linux alone.
`;

const OPTIONS = {
  minutes: { type: "string", default: "5" },
  entries: { type: "string", default: "2000" },
  workers: { type: "string", default: "3" },
  clients: { type: "string", default: "24" },
  seed: { type: "string", default: "1" },
  json: { type: "boolean", default: false },
} as const;

export const soakBench: Bench = {
  name: "soak",
  describes:
    "hours of a server's life in minutes: load, builds, outages and killed workers, and every answer accounted for",
  help: HELP,
  run: async (args) => {
    const options = readSoakOptions(args);
    const folder = mkdtempSync(join(tmpdir(), "precast-soak-"));
    const postgres = await startPostgres();
    try {
      const report = await soak(options, postgres, folder);
      process.stdout.write(options.json ? `${JSON.stringify({ ...options, ...report })}\n` : asText(report));
      return report.faults.length > 0 ? 1 : 0;
    } finally {
      await postgres.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function readSoakOptions(args: readonly string[]): SoakOptions {
  const values = readOptions(args, OPTIONS);
  return {
    minutes: readWhole("--minutes", values.minutes, 1, 600),
    entries: readWhole("--entries", values.entries, 200, 100_000),
    workers: readWhole("--workers", values.workers, 2, 16),
    clients: readWhole("--clients", values.clients, 3, 10_000),
    seed: readWhole("--seed", values.seed, 0, 2 ** 31),
    json: values.json,
  };
}
