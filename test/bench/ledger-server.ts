/**
 * A server with the ledger or with one that does nothing, and otherwise the same: composed of the server's own parts,
 * as in `precast serve`. Its argument is its settings as one JSON value.
 */
import { join } from "node:path";
import { openDatabase } from "../../cli/database.ts";
import { createApp } from "../../server/app.ts";
import { openCache, openHits } from "../../server/cache.ts";
import { listen } from "../../server/http/listen.ts";
import { type Ledger, openLedger } from "../../server/ledger/ledger.ts";
import { openLive } from "../../server/live/live.ts";
import { openTree } from "../../server/tree.ts";
import { DEFAULT_CACHE_POLICY } from "../../shared/api/answer.ts";

export type LedgerServer = {
  readonly counts: boolean;
  readonly url: string;
  readonly out: string;
  readonly data: string;
};

const { counts, url, out, data } = JSON.parse(process.argv[2] ?? "") as LedgerServer;
const limits = { connections: 10, queue: 200, queryTimeout: 5_000 };
const onError = (error: unknown) => console.error(error);
const NONE: Ledger = {
  count: async () => true,
  backlog: () => ({ requests: 0, seconds: 0 }),
  close: async () => {},
};

const database = await openDatabase({ url, dataDir: data, ...limits, connections: limits.connections + 1 });
const ledger = counts
  ? await openLedger(database, { folder: join(data, "ledger"), now: () => new Date(), onError })
  : NONE;
const live = openLive(database, {
  mediaBaseUrl: "https://media.example.com",
  answerCache: openCache(16_000_000),
  ...limits,
});
const sources = { ...openTree(out), ...live, onError };
const app = createApp({
  sources,
  isRefusing: () => false,
  hits: openHits(1 << 26),
  ledger,
  policy: DEFAULT_CACHE_POLICY,
  observe: null,
});
const listening = await listen(app, "127.0.0.1", 0);
console.log(JSON.stringify({ url: listening.url }));

process.once("SIGTERM", async () => {
  await listening.stop();
  live.close();
  await ledger.close();
  await database.close();
});
