/** A whole Precast for a test: content in a database, a tree when wanted, and the real server on a real socket. */
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildTree } from "../../cli/builder/build.ts";
import type { AppReport } from "../../cli/builder/report.ts";
import { importBundle } from "../../cli/commands/import.ts";
import { openDatabase } from "../../cli/database.ts";
import { createApp } from "../../server/app.ts";
import { type Hits, openCache, openHits, openResolvedRequests } from "../../server/cache.ts";
import type { Limits } from "../../server/http/connection.ts";
import { LIMITS, listen } from "../../server/http/listen.ts";
import type { Observation } from "../../server/http/observe.ts";
import { openLedger } from "../../server/ledger/ledger.ts";
import { type Live, openLive } from "../../server/live/live.ts";
import type { LiveState } from "../../server/live/sources.ts";
import { openTree, type Tree } from "../../server/tree.ts";
import { DEFAULT_CACHE_POLICY } from "../../shared/api/answer.ts";
import type { Database } from "../../shared/database/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { writeBundle } from "./content.ts";
import { copyEmbedded, copyPostgres } from "./migrated.ts";
import type { Bundle } from "./model.ts";
import { createDatabase, dropDatabase } from "./postgres.ts";

export type Engine = "postgres" | "embedded";
export const ENGINES: readonly Engine[] = ["postgres", "embedded"];
export const MEDIA = "https://media.test";

export type RequestOptions = {
  readonly method?: string;
  readonly appKey?: string;
  readonly headers?: Record<string, string | string[]>;
  /** Keeps connections for further requests; without one, each request gets a connection of its own. */
  readonly agent?: Agent;
};
export type ReceivedAnswer = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  /** The parsed body; undefined when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of the body, at run time
  readonly json: any;
};

export type Store = {
  readonly database: Database;
  readonly url: string | null;
  readonly folder: string;
  /** The limits of the server that uses the database. */
  readonly limits: Required<DatabaseLimits>;
  readonly close: () => Promise<void>;
};

type DatabaseLimits = { readonly queryTimeout?: number; readonly connections?: number; readonly queue?: number };

/** An empty, migrated database and a temporary folder. `server` is the URL of a PostgreSQL of the test's own. */
export async function openStore(engine: Engine, limits: DatabaseLimits = {}, server?: string): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), "precast-test-"));
  const url = engine === "postgres" ? await (server === undefined ? copyPostgres() : createDatabase(server)) : null;
  const dataDir = join(folder, "data");
  if (url === null) await copyEmbedded(dataDir);
  const bounds = { queryTimeout: 5_000, connections: 4, queue: 100, ...limits };
  const connections = bounds.connections + 1;
  const { queryTimeout = null } = limits;
  const database = await openDatabase({ url, dataDir, queryTimeout, connections });
  await migrate(database);
  const close = async () => {
    await database.close();
    if (url !== null) await dropDatabase(url);
    await rm(folder, { recursive: true, force: true });
  };
  return { database, url, folder, limits: bounds, close };
}

export async function loadBundles(store: Store, bundles: readonly Bundle[]): Promise<void> {
  for (const bundle of bundles) {
    const folder = await mkdtemp(join(store.folder, "bundle-"));
    await writeBundle(folder, bundle);
    await importBundle(store.database, folder, { prune: true, dryRun: false });
  }
}

export function buildSite(store: Store, out = join(store.folder, "out")): Promise<AppReport[]> {
  const options = {
    out,
    apps: null,
    full: false,
    dryRun: false,
    mediaBaseUrl: MEDIA,
    now: () => new Date(),
  };
  return buildTree(store.database, options);
}

export type ApiServer = {
  readonly url: string;
  readonly get: (target: string, asked?: RequestOptions) => Promise<ReceivedAnswer>;
  readonly hits: Hits;
  /** What the server reports to operators. */
  readonly seen: readonly Observation[];
  readonly errors: unknown[];
  /** What it warns of. */
  readonly warnings: string[];
  /** The live work that runs and waits. */
  readonly state: () => LiveState;
  readonly close: () => Promise<void>;
};

/** `deployed` opens a tree that the server reads elsewhere than in the folder. */
type ServerOptions = Partial<Limits> & {
  readonly memory?: number;
  readonly deployed?: (findApp: Live["findApp"], report: (news: string) => void) => Tree;
};

/** Starts the server on a store. `out` is the folder of its tree; without a tree there, every answer is live. */
export async function openApiServer(
  store: Store,
  out = join(store.folder, "out"),
  { memory = 1 << 20, deployed, ...limits }: ServerOptions = {},
): Promise<ApiServer> {
  const errors: unknown[] = [];
  const seen: Observation[] = [];
  const observe = (one: Observation) => void seen.push(one);
  const onError = (error: unknown) => void errors.push(error);
  const ledger = await openLedger(store.database, {
    folder: join(store.folder, "ledger"),
    now: () => new Date(),
    onError,
  });
  const live = openLive(store.database, { mediaBaseUrl: MEDIA, answerCache: openCache(memory), ...store.limits });
  const warnings: string[] = [];
  const warn = (sentence: string) => void warnings.push(sentence);
  const tree = deployed?.(live.findApp, warn) ?? openTree(out, warn);
  const sources = { ...tree, ...live, resolvedRequests: openResolvedRequests(memory), onError };
  const hits = openHits(memory);
  const app = createApp({ sources, isRefusing: live.isRefusing, hits, ledger, policy: DEFAULT_CACHE_POLICY, observe });
  const listening = await listen(app, "127.0.0.1", 0, { ...LIMITS, ...limits }, observe);
  const agent = new Agent({ keepAlive: true });
  return {
    url: listening.url,
    hits,
    seen,
    errors,
    warnings,
    state: live.state,
    get: (target, asked) => ask(listening.url, target, { ...asked, agent }),
    close: async () => {
      await listening.stop();
      agent.destroy();
      live.close();
      await ledger.close();
    },
  };
}

/** Sends one request with its target as it is, which `fetch` would normalise. Without `appKey` it sends none. */
export async function ask(url: string, target: string, asked: RequestOptions = {}): Promise<ReceivedAnswer> {
  const { bytes, ...got } = await askBytes(url, target, asked);
  const text = bytes.toString("utf8");
  return { ...got, text, json: text === "" ? undefined : JSON.parse(text) };
}

export type ReceivedBytes = Pick<ReceivedAnswer, "status" | "headers"> & { readonly bytes: Buffer };

export function askBytes(
  url: string,
  target: string,
  { method = "GET", appKey, headers = {}, agent }: RequestOptions = {},
): Promise<ReceivedBytes> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = { ...headers, ...(appKey === undefined ? {} : { "X-App-Key": appKey }) };
    const outgoing = httpRequest(
      { hostname, port, method, path: target, headers: sent, agent: agent ?? false },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const got = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
          resolve({
            status: incoming.statusCode ?? 0,
            headers: Object.fromEntries(got),
            bytes: Buffer.concat(chunks),
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}
