/** Serves the admin port: health, readiness and metrics, for operators and their systems, apart from the API's port. */
import { open, readdir, statfs } from "node:fs/promises";
import { createServer, STATUS_CODES } from "node:http";
import { join } from "node:path";
import { H3, HTTPResponse, redirect, toNodeHandler } from "h3";
import { shareRunning } from "../shared/async.ts";
import type { Database } from "../shared/database/database.ts";
import { sql } from "../shared/sql/query.ts";
import { CHANGES_FILE, isStateFile, REMOTE_FILE, STATE_FOLDER } from "../shared/tree.ts";
import { listenOn } from "./http/listen.ts";
import { assertWritable, makeFolder } from "./ledger/owner.ts";
import { CONTENT_TYPE } from "./metrics.ts";

export type AdminOptions = {
  readonly host: string;
  readonly port: number;
  /** The folder of the tree; null for one that is read where it was deployed, which counts as ready. */
  readonly out: string | null;
  /** The folder of journals. */
  readonly ledgerFolder: string;
  readonly database: Pick<Database, "query">;
  /** State of each read replica, in the order in which they were configured. */
  readonly replicas: () => readonly Health[];
  /** The metrics of all processes, in the text format of Prometheus. */
  readonly metrics: () => Promise<string>;
  /** Shown below /studio/. */
  readonly studio?: Mounted | undefined;
  readonly onError: (error: unknown) => void;
};

export type Admin = {
  readonly url: string;
  /** From now on `/readyz` reports the server as unavailable. */
  readonly drain: () => void;
  readonly close: () => Promise<void>;
};

export async function openAdmin(options: AdminOptions): Promise<Admin> {
  const readReadiness = openReadiness(options);
  // Metrics take milliseconds to write, and nothing else happens in the process meanwhile: a connection that asks
  // thousands of times without waiting would stop the server.
  const metrics = shareRunning(options.metrics);
  let draining = false;

  const { url, close } = await openPages({
    ...options,
    pages: {
      "/healthz": () => json(200, { status: "ok" }),
      "/readyz": async () => {
        const state = await readReadiness(draining);
        return json(state.status === "unavailable" ? 503 : 200, state);
      },
      "/metrics": async () => page(200, CONTENT_TYPE, await metrics()),
    },
  });
  return {
    url,
    drain: () => {
      draining = true;
    },
    close: () => {
      options.studio?.close();
      return close();
    },
  };
}

type PagesOptions = Pick<AdminOptions, "host" | "port" | "studio" | "onError"> & {
  /** By their paths. */
  readonly pages: Readonly<Record<string, Page>>;
};

/** Serves a few pages to operators. */
export async function openPages({ host, port, studio, onError, pages }: PagesOptions) {
  const app = openRouter(onError, studio, pages);
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, toNodeHandler(app));
  return {
    url: await listenOn(server, host, port),
    close: (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers all paths below the one that it is mounted at. */
type Mounted = { readonly app: H3; readonly close: () => void };

type Page = () => HTTPResponse | Promise<HTTPResponse>;

const STUDIO = "/studio";

/** Answers GET and HEAD on the paths of the pages, and below the one of the studio, and nothing else. */
function openRouter(
  onError: AdminOptions["onError"],
  studio: Mounted | undefined,
  pages: Readonly<Record<string, Page>>,
): H3 {
  const app = new H3({
    silent: true,
    onError: (error) => {
      onError(error.cause ?? error);
      return refusal(500, "INTERNAL_ERROR", "The state of the server could not be read. See the log for the cause.");
    },
  });
  // Before the router, which would take `//metrics` and `/%6detrics` for `/metrics`.
  app.use(({ runtime }) => {
    const path = runtime?.node?.req.url?.split("?")[0] ?? "";
    if (Object.hasOwn(pages, path) || (studio && path.startsWith(`${STUDIO}/`))) return undefined;
    if (studio && path === STUDIO) return redirect(`${STUDIO}/`);
    return refusal(404, "NOT_FOUND", "There is no such path. The paths are /healthz, /readyz and /metrics.");
  });
  if (studio) app.mount(STUDIO, studio.app);
  for (const [path, show] of Object.entries(pages)) {
    app.get(path, show).head(path, show);
    app.all(path, () => refusal(405, "METHOD_NOT_ALLOWED", "Use GET or HEAD.", { Allow: "GET, HEAD" }));
  }
  return app;
}

function refusal(status: number, code: string, message: string, headers: Record<string, string> = {}): HTTPResponse {
  return json(status, { error: { code, message } }, headers);
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): HTTPResponse {
  return page(status, "application/json; charset=utf-8", JSON.stringify(value), headers);
}

export function page(status: number, type: string, body: string, headers: Record<string, string> = {}): HTTPResponse {
  return new HTTPResponse(body, {
    status,
    statusText: STATUS_CODES[status] ?? "",
    headers: {
      ...headers,
      "Content-Type": type,
      "Content-Length": String(Buffer.byteLength(body)),
      "Cache-Control": "no-store",
    },
  });
}

// Decides whether a server is ready for requests, which load balancers check before they send any.

export type Readiness = {
  readonly status: "ok" | "degraded" | "unavailable";
  /** True once the server is told to stop: it finishes open requests and should get no new ones. */
  readonly draining: boolean;
  readonly tree: TreeHealth;
  readonly database: Health;
  readonly ledger: Health;
  /** Absent when no replicas are configured. */
  readonly replicas?: readonly Health[];
};

/** `error` says why the database, or the folder of the ledger, is not ready; null when it is. */
type Health = { readonly ready: boolean; readonly error: string | null };

type ReadinessOptions = Pick<AdminOptions, "out" | "ledgerFolder" | "database" | "replicas">;

export function openReadiness({ out, ledgerFolder, database, replicas }: ReadinessOptions) {
  const probe = openProbe(database);
  return async (draining: boolean): Promise<Readiness> => {
    const parts = await Promise.all([readTreeHealth(out), probe(), readLedgerHealth(ledgerFolder)]);
    return describeReadiness(...parts, replicas(), draining);
  };
}

/**
 * The tree or a database alone is enough. With a tree, all free requests are answered: if servers counted as
 * unavailable without the database, all would be removed at once, and nobody would answer requests that do not need it.
 * Without a tree, as before the first build, everything is answered live. Replicas answer live requests while the
 * primary is unavailable, but counts do not arrive then, so the server is degraded. Nor is it healthy while it cannot
 * store counts, and refuses the requests that it would have to count.
 */
function describeReadiness(
  tree: TreeHealth,
  database: Health,
  ledger: Health,
  replicas: readonly Health[],
  draining: boolean,
): Readiness {
  const answers = [tree, database, ...replicas].some(({ ready }) => ready);
  const isHealthy = [tree, database, ledger].every(({ ready }) => ready);
  const status = draining || !answers ? "unavailable" : isHealthy ? "ok" : "degraded";
  return { status, draining, tree, database, ledger, ...(replicas.length === 0 ? {} : { replicas }) };
}

// Checks whether the database answers, within a time limit of its own and with one query at a time.

/** In milliseconds. Health checks wait a few seconds at most. */
const LIMIT = 1_000;
const TOO_SLOW: Health = { ready: false, error: `no answer within ${LIMIT / 1_000} s` };

type Probe = () => Promise<Health>;

/** Probes that overlap share one query: those of a database that hangs must not use up its connections. */
function openProbe(database: Pick<Database, "query">): Probe {
  const ask = shareRunning(() => askOnce(database));
  return () => Promise.race([ask(), tooSlow()]);
}

/** A database without the tables of Precast is not ready either. */
async function askOnce(database: Pick<Database, "query">): Promise<Health> {
  try {
    await database.query(sql("SELECT EXISTS (SELECT FROM precast.apps)::text"));
    return { ready: true, error: null };
  } catch (error) {
    return { ready: false, error: error instanceof Error ? error.message || error.name : String(error) };
  }
}

function tooSlow(): Promise<Health> {
  return new Promise((resolve) => setTimeout(resolve, LIMIT, TOO_SLOW).unref());
}

// Reads from the folder, at each call, whether there is a tree, for how many apps, and when it was last built.

type TreeHealth = { readonly ready: boolean; readonly apps: number | null; readonly built_at: string | null };

/** Bytes read of the last build's list of changes, which begins with the time of the build and may be long. */
const BEGINNING = 256;

async function readTreeHealth(out: string | null): Promise<TreeHealth> {
  if (out === null) return { ready: true, apps: null, built_at: null };
  const names = await readdir(join(out, STATE_FOLDER)).catch((): string[] => []);
  const apps = names.filter(isStateFile).length;
  // The server does not use a tree that lacks files which exist only where it was deployed.
  return {
    ready: apps > 0 && !names.includes(REMOTE_FILE),
    apps,
    built_at: await readBuiltAt(join(out, STATE_FOLDER, CHANGES_FILE)),
  };
}

/** Seconds since the last build of the tree; null without one. */
export async function readTreeAge(out: string, now: Date): Promise<number | null> {
  const built_at = await readBuiltAt(join(out, STATE_FOLDER, CHANGES_FILE));
  return built_at === null ? null : (now.getTime() - Date.parse(built_at)) / 1_000;
}

async function readBuiltAt(file: string): Promise<string | null> {
  const handle = await open(file).catch(() => null);
  if (handle === null) return null;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(BEGINNING), 0, BEGINNING, 0);
    return /"built_at":"([^"]+)"/.exec(buffer.toString("utf8", 0, bytesRead))?.[1] ?? null;
  } finally {
    await handle.close();
  }
}

// Checks, at each call, whether the folder of journals can take counts: whether it is writable and its disk has room.

async function readLedgerHealth(folder: string): Promise<Health> {
  try {
    // As for each journal: a folder that was removed is created again.
    await makeFolder(folder);
    await assertWritable(folder);
    if (await isFull(folder)) throw new Error(`no space left on the disk of ${folder}`);
    return { ready: true, error: null };
  } catch (error) {
    return { ready: false, error: (error as Error).message };
  }
}

/** File systems without a fixed number of files or blocks report 0 of 0. */
async function isFull(folder: string): Promise<boolean> {
  const { blocks, bavail, files, ffree } = await statfs(folder);
  return (blocks > 0 && bavail === 0) || (files > 0 && ffree === 0);
}
