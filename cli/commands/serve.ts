/** `precast serve`: answers from the tree and the database, in one process or in several. */
import { isWorker } from "../../server/cluster.ts";
import { openLog } from "../../server/log.ts";
import { defineCommand } from "../command.ts";
import { serveAsPrimary } from "../serve/primary.ts";
import { SERVE_SETTINGS, serveAsWorker } from "../serve/process.ts";

export const serveCommand = defineCommand({
  name: "serve",
  describes: "answer API requests from the tree, or live where the tree has no answer",
  argument: null,
  settings: SERVE_SETTINGS,
  examples: [
    "precast serve",
    "precast serve --watch",
    "precast serve --host 0.0.0.0 --port 8080 --out /var/lib/precast",
    "precast serve --workers 4 --connections 40 --admin-port 9090",
    "precast serve --read-database-url postgres://replica-1/cms --max-replica-lag 2",
  ],
  run: async (context, settings) => {
    const { terminal } = context;
    const level = settings.logLevel ?? (settings.quiet ? "warn" : "info");
    const log = await openLog({ level, descriptor: STANDARD_ERROR, shared: settings.workers > 1, ...terminal.log });
    const process = { context: { ...context, terminal: { ...terminal, warn: log.warn } }, settings, log };
    try {
      return await (isWorker() ? serveAsWorker(process) : serveAsPrimary(process));
    } finally {
      await log.close();
    }
  },
});

/** File descriptor. */
const STANDARD_ERROR = 2;
