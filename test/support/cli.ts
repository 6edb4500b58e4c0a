/**
 * The compiled program as a real process: it runs in a folder of its own with nothing of the caller's environment. And a
 * shop for it to work on, small enough that every file of its tree can be listed by hand.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyEmbedded } from "./embedded.ts";
import { layContent, layTree } from "./groundwork.ts";
import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
import { type Asked, ask, type Got } from "./site.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/**
 * What node is given to run it. The embedded database lives for a second or two here: to optimise its WebAssembly as it runs
 * takes more of the processor than it ever gives back.
 */
export const START: readonly string[] = ["--liftoff-only", MAIN];
/** A process that has not ended by then hangs. */
const DEADLINE = 100_000;

type Env = Readonly<Record<string, string>>;

/** Standard error is left to what went wrong. */
const SERVE_ENV: Env = { PRECAST_PORT: "0", PRECAST_LOG_LEVEL: "warn" };

export type Ran = {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** A command that runs until it is told to stop. */
export type Started = {
  readonly pid: number;
  /** Resolves when the output, of either kind, matches. */
  readonly printed: (pattern: RegExp) => Promise<void>;
  readonly output: () => Pick<Ran, "stdout" | "stderr">;
  /** Sends the signal and awaits the exit. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<Ran>;
  /** Awaits the exit. */
  readonly end: () => Promise<Ran>;
};

export type Served = Started & {
  readonly url: string;
  readonly get: (target: string, asked?: Asked) => Promise<Got>;
};

export type Place = {
  /** Where the program runs. */
  readonly folder: string;
  /** Runs a command line, split at blanks: `build --app shop`. */
  readonly run: (line: string, env?: Env) => Promise<Ran>;
  /** Runs it with `--json`; it must exit 0 and print one line alone. */
  readonly json: <T = unknown>(line: string, env?: Env) => Promise<T>;
  /** Imports a bundle; what it lacks is deleted. */
  readonly take: (bundle: Bundle, env?: Env) => Promise<void>;
  /** Builds the tree for what is tested thereafter; without a folder in `out`. */
  readonly build: (out?: string) => Promise<void>;
  /** Runs any program there: a shell, for one. */
  readonly spawn: (program: string, args: readonly string[], env?: Env) => Promise<Ran>;
  /** Starts a command that runs on. */
  readonly start: (line: string, env?: Env) => Started;
  /** Starts `serve`, on a free port unless told otherwise, and resolves when it has told its URL. */
  readonly serve: (line?: string, env?: Env) => Promise<Served>;
  /** Kills what still runs: after a test that failed. */
  readonly quit: () => Promise<void>;
  /** The same, and deletes the folder. */
  readonly close: () => Promise<void>;
};

/** `env` is what every command is given beside PATH, HOME and TMPDIR: who shares a database meets in the temporary folder. */
export function openPlace(env: Env = {}): Place {
  const folder = mkdtempSync(join(tmpdir(), "precast-cli-"));
  const running = new Set<Running>();

  function start(program: string, args: readonly string[], more: Env = {}): Running {
    const started = startProcess(program, args, folder, { ...env, ...more });
    running.add(started);
    const forget = () => void running.delete(started);
    started.ended.then(forget, forget);
    return started;
  }
  async function quit(): Promise<void> {
    const left = [...running];
    for (const { child } of left) child.kill("SIGKILL");
    await Promise.all(left.map(({ ended }) => ended));
  }

  const groundOf = (more?: Env) => ({ folder, env: { ...env, ...more } });
  const startCommand = (line: string, more?: Env) => start(process.execPath, [...START, ...wordsOf(line)], more);

  return {
    folder,
    run: (line, more) => inTime(startCommand(line, more)),
    json: async (line, more) => parsed(line, await inTime(startCommand(`${line} --json`, more))),
    take: (bundle, more) => layContent(groundOf(more), bundle),
    build: (out = "out") => layTree(groundOf(), out),
    spawn: (program, args, more) => inTime(start(program, args, more)),
    start: (line, more) => started(startCommand(line, more)),
    serve: async (line, more) => served(startCommand(`serve ${line ?? ""}`, { ...SERVE_ENV, ...more })),
    quit,
    close: async () => {
      await quit();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A place whose embedded database is there and migrated, as a copy of one that is, for tests of what comes later. That commands
 * make and migrate it is tested where they are: in a place without.
 */
export async function openEmbeddedPlace(env: Env = {}): Promise<Place> {
  const place = openPlace(env);
  await copyEmbedded(join(place.folder, ".precast"));
  return place;
}

function wordsOf(line: string): string[] {
  return line.split(" ").filter((word) => word !== "");
}

function parsed<T>(line: string, { code, stdout, stderr }: Ran): T {
  if (code !== 0 || !/^.+\n$/.test(stdout)) throw new Error(`${line} --json: exit ${code}\n${stdout}\n${stderr}`);
  return JSON.parse(stdout) as T;
}

type Running = {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  readonly output: () => Pick<Ran, "stdout" | "stderr">;
  /** Resolves when the output matches; rejects when the process ends without. */
  readonly matches: (pattern: RegExp) => Promise<RegExpExecArray>;
};

function startProcess(program: string, args: readonly string[], folder: string, env: Env): Running {
  const { PATH = "", HOME = "" } = process.env;
  const TMPDIR = tmpdir();
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  const watchers = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
      for (const watch of [...watchers]) watch();
    });
  }
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...output }));
  });
  const matches = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const watch = () => {
        const found = pattern.exec(output.stdout) ?? pattern.exec(output.stderr);
        if (found === null) return;
        watchers.delete(watch);
        resolve(found);
      };
      watchers.add(watch);
      ended.then((ran) => reject(new Error(`It ended before it printed ${pattern}: ${JSON.stringify(ran)}`)), reject);
      watch();
    });
  return { child, ended, output: () => ({ ...output }), matches };
}

/** Fails for a process that does not end. */
async function inTime({ child, ended, output }: Running): Promise<Ran> {
  let hangs = false;
  const deadline = setTimeout(() => {
    hangs = true;
    child.kill("SIGKILL");
  }, DEADLINE);
  const ran = await ended.finally(() => clearTimeout(deadline));
  if (hangs) throw new Error(`It printed ${JSON.stringify(output())} and did not end.`);
  return ran;
}

async function served(running: Running): Promise<Served> {
  const [, url = ""] = await running.matches(/(http:\/\/[^/\s"]+).*\n/);
  return { ...started(running), url, get: (target, asked) => ask(url, target, asked) };
}

function started(running: Running): Started {
  return {
    pid: running.child.pid as number,
    printed: async (pattern) => void (await running.matches(pattern)),
    output: running.output,
    stop: async (signal = "SIGTERM") => {
      running.child.kill(signal);
      return inTime(running);
    },
    end: () => inTime(running),
  };
}

/** Every file below a folder with its content, by relative path. What build and server keep to themselves is left out. */
export function readTree(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.startsWith(".precast") && statSync(join(folder, path)).isFile())
    .sort();
  return new Map(files.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** Of a database that is away. Nothing listens at the lowest port, and no other test is given it. */
export const AWAY_URL = "postgres://nobody@127.0.0.1:1/none";

/** A port on which nothing listens, and the server that would take it. */
export async function holdPort(): Promise<{ readonly port: number; readonly release: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

export const SHOP = "Shop";
/** The folder of the shop in the tree. */
export const SHOP_FOLDER = "x-53686f70/v1";
export const LONG = "x".repeat(65);

/** The ids of all types are the same. */
export function idOf(number: number): string {
  return `abcdef00-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

/** Two published types with entries and drafts, one that is empty, and one that is not published. */
export function shop(): Bundle {
  return {
    app: { key: SHOP, name: "Shop" },
    types: [POSTS, AUTHORS, type("notes", [field("title", "text")]), { ...AUTHORS, slug: "secrets", published: false }],
    entries: {
      posts: [ONE, TWO, THREE, DRAFT],
      authors: [entry(1, 1, { name: "Ada" }), entry(2, 2, { name: "Hidden" }, { status: "draft" })],
      secrets: [entry(1, 1, { name: "Nobody" })],
    },
  };
}

/** The shop, with its posts as the function changes them. */
export function shopWith(change: (posts: BundleEntry[]) => BundleEntry[]): Bundle {
  const bundle = shop();
  return { ...bundle, entries: { ...bundle.entries, posts: change(bundle.entries.posts ?? []) } };
}

/** The shop as it is after one of its posts was unpublished. */
export function shopWithout(number: number): Bundle {
  return shopWith((posts) =>
    posts.map((post) => (post.id === idOf(number) ? { ...post, status: "draft" as const } : post)),
  );
}

/** A small app of one type, with as many entries as names. */
export function smallApp(key: string, names: readonly string[]): Bundle {
  return {
    app: { key, name: key },
    types: [{ ...AUTHORS, sortable_fields: [] }],
    entries: { authors: names.map((name, index) => entry(index + 1, 1, { name })) },
  };
}

function field(name: string, kind: BundleField["type"], more: Partial<BundleField> = {}): BundleField {
  return { name, type: kind, label: name, required: false, searchable: false, ...more };
}

function type(slug: string, fields: BundleField[], more: Partial<BundleType> = {}): BundleType {
  const rest = { name: slug, description: "", icon: "", filterable_fields: [], sortable_fields: [] };
  return { slug, fields, ...rest, ...more };
}

function entry(number: number, day: number, data: BundleEntry["data"], more: Partial<BundleEntry> = {}): BundleEntry {
  const stamp = `2026-01-0${day}T12:00:00Z`;
  const stamps = { published_at: stamp, created_at: stamp, updated_at: stamp };
  return { id: idOf(number), status: "published", ...stamps, data, ...more };
}

const AUTHORS = type("authors", [field("name", "text", { required: true, searchable: true })], {
  position: 2,
  sortable_fields: ["name"],
});

const POSTS = type(
  "posts",
  [
    field("title", "text", { required: true, searchable: true }),
    field("body", "rich_text"),
    field("category", "select"),
    field("tags", "select", { multiple: true }),
    field("price", "number"),
    field("active", "boolean"),
    field("day", "date"),
    field("author_id", "relation", { target: "authors" }),
    field("cover", "media"),
  ],
  {
    position: 1,
    per_page: 2,
    filterable_fields: ["category", "tags", "price", "active", "day", "author_id"],
    sortable_fields: ["price"],
  },
);

const ONE = entry(1, 3, {
  title: "One",
  body: "<p>Hello</p>",
  category: "News",
  tags: ["a", "ä"],
  price: 2020,
  active: true,
  day: "2026-01-20",
  author_id: idOf(1),
  cover: "c 1.png",
});
const TWO = entry(2, 2, {
  title: "Two",
  category: "Match Report",
  tags: [],
  price: 0.5,
  active: false,
  author_id: idOf(2),
});
const THREE = entry(3, 1, { title: "Three", category: LONG });
const DRAFT = entry(4, 4, { title: "Draft", category: "Draft", tags: ["draft"], price: 7 }, { status: "draft" });
