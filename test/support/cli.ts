/**
 * Runs the compiled program as a real process, in a folder and with an environment of its own. Also defines the content
 * `shop`, small enough that a test can list every file of its tree.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildInProcess, importInProcess, runInProcess } from "./in-process.ts";
import { copyEmbedded } from "./migrated.ts";
import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
import { ask, type ReceivedAnswer, type RequestOptions } from "./site.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/**
 * Newer versions of Node.js have a `navigator`. Without one, `pg` tells the runtime by a `Response`: the first one loads
 * all of fetch, a seventh of what a short command costs.
 */
const NAVIGATOR = 'globalThis.navigator ??= { userAgent: "Node.js" }';
/**
 * The arguments with which node runs the program. `--liftoff-only` keeps V8 from optimising the embedded database's
 * WebAssembly: in processes that live for a second or two, that costs more CPU than it saves.
 */
export const NODE_ARGUMENTS: readonly string[] = argumentsOf(MAIN);
/** Milliseconds after which a process that has not ended counts as hung. */
const DEADLINE = 100_000;

type Env = Readonly<Record<string, string>>;

/** So that a build does not warn of the address of media that nobody has set, and a deploy does not refuse it. */
const LOCAL_MEDIA: Env = { PRECAST_MEDIA_BASE_URL: "http://localhost:3000", PRECAST_ALLOW_LOCAL_MEDIA: "true" };

/** The log level leaves standard error to warnings and errors. */
const SERVE_ENV: Env = { PRECAST_PORT: "0", PRECAST_LOG_LEVEL: "warn" };

export type CommandResult = {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** A command that runs until it is told to stop. */
export type RunningCommand = {
  readonly pid: number;
  /** Resolves when standard output or standard error matches. */
  readonly printed: (pattern: RegExp) => Promise<void>;
  readonly output: () => Pick<CommandResult, "stdout" | "stderr">;
  /** Sends the signal and awaits the exit. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<CommandResult>;
  /** Awaits the exit. */
  readonly end: () => Promise<CommandResult>;
};

export type RunningServer = RunningCommand & {
  readonly url: string;
  readonly get: (target: string, asked?: RequestOptions) => Promise<ReceivedAnswer>;
};

export type Place = {
  /** The working directory of every command. */
  readonly folder: string;
  /** Runs a command line, split at blanks: `build --app shop`. */
  readonly run: (line: string, env?: Env) => Promise<CommandResult>;
  /**
   * Does what `run` does in the test's own process, which saves the start of another. What that process does (how it
   * ends, what it has open, its pipes and signals) is tested with `run`. Words may also be given one by one.
   */
  readonly call: (line: string | readonly string[], env?: Env) => Promise<CommandResult>;
  /** Calls a command line with `--json` and parses what it prints; it must exit with 0 and print exactly one line. */
  readonly json: <T = unknown>(line: string, env?: Env) => Promise<T>;
  /** Imports a bundle as `import --prune` does, in the test's own process. */
  readonly import: (bundle: Bundle, env?: Env) => Promise<void>;
  /** Builds the tree in the test's own process, by default in `out`: for tests of what comes after a build. */
  readonly build: (out?: string) => Promise<void>;
  /** Runs any other program there, such as a shell. */
  readonly spawn: (program: string, args: readonly string[], env?: Env) => Promise<CommandResult>;
  /** Starts a command that runs until it is stopped. */
  readonly start: (line: string, env?: Env) => RunningCommand;
  /** Starts `serve`, on a free port by default, and resolves when it has printed its URL. */
  readonly serve: (line?: string, env?: Env) => Promise<RunningServer>;
  /** Kills the processes that still run, as after a failed test. */
  readonly quit: () => Promise<void>;
  /** Kills the processes that still run, and deletes the folder. */
  readonly close: () => Promise<void>;
};

function argumentsOf(main: string): string[] {
  return ["--liftoff-only", `--import=data:text/javascript,${encodeURIComponent(NAVIGATOR)}`, main];
}

/**
 * `env` is added to PATH, HOME and TMPDIR, which commands that share an embedded database need to find each other.
 * `main` is the compiled program, of which `call` and `json` know nothing: they call the source.
 */
export function openPlace(env: Env = {}, main = MAIN): Place {
  const folder = mkdtempSync(join(tmpdir(), "precast-cli-"));
  const running = new Set<Running>();

  function start(program: string, args: readonly string[], more: Env = {}): Running {
    const started = startProcess(program, args, folder, { ...LOCAL_MEDIA, ...env, ...more });
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

  const contextOf = (more?: Env) => ({ folder, env: { ...LOCAL_MEDIA, ...env, ...more } });
  const startCommand = (line: string, more?: Env) =>
    start(process.execPath, [...argumentsOf(main), ...wordsOf(line)], more);

  return {
    folder,
    run: (line, more) => withDeadline(startCommand(line, more)),
    call: (line, more) => runInProcess(contextOf(more), typeof line === "string" ? wordsOf(line) : line),
    json: async (line, more) => parsed(line, await runInProcess(contextOf(more), wordsOf(`${line} --json`))),
    import: (bundle, more) => importInProcess(contextOf(more), bundle),
    build: (out = "out") => buildInProcess(contextOf(), out),
    spawn: (program, args, more) => withDeadline(start(program, args, more)),
    start: (line, more) => commandOf(startCommand(line, more)),
    serve: async (line, more) => serverOf(startCommand(`serve ${line ?? ""}`, { ...SERVE_ENV, ...more })),
    quit,
    close: async () => {
      await quit();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A place whose embedded database already exists and is migrated: a copy of the template. Tests of how commands create
 * and migrate it use `openPlace`.
 */
export async function openEmbeddedPlace(env: Env = {}): Promise<Place> {
  const place = openPlace(env);
  await copyEmbedded(join(place.folder, ".precast"));
  return place;
}

function wordsOf(line: string): string[] {
  return line.split(" ").filter((word) => word !== "");
}

function parsed<T>(line: string, { code, stdout, stderr }: CommandResult): T {
  if (code !== 0 || !/^.+\n$/.test(stdout)) throw new Error(`${line} --json: exit ${code}\n${stdout}\n${stderr}`);
  return JSON.parse(stdout) as T;
}

type Running = {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandResult>;
  readonly output: () => Pick<CommandResult, "stdout" | "stderr">;
  /** Resolves when the output matches; rejects when the process ends without a match. */
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
  const ended = new Promise<CommandResult>((resolve, reject) => {
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

/** Resolves when the process ends. Kills it after DEADLINE and throws. */
async function withDeadline({ child, ended, output }: Running): Promise<CommandResult> {
  let hangs = false;
  const deadline = setTimeout(() => {
    hangs = true;
    child.kill("SIGKILL");
  }, DEADLINE);
  const ran = await ended.finally(() => clearTimeout(deadline));
  if (hangs) throw new Error(`It printed ${JSON.stringify(output())} and did not end.`);
  return ran;
}

async function serverOf(running: Running): Promise<RunningServer> {
  const [, url = ""] = await running.matches(/(http:\/\/[^/\s"]+).*\n/);
  return { ...commandOf(running), url, get: (target, asked) => ask(url, target, asked) };
}

function commandOf(running: Running): RunningCommand {
  return {
    pid: running.child.pid as number,
    printed: async (pattern) => void (await running.matches(pattern)),
    output: running.output,
    stop: async (signal = "SIGTERM") => {
      running.child.kill(signal);
      return withDeadline(running);
    },
    end: () => withDeadline(running),
  };
}

/** Every file below a folder with its content, by relative path, except `.precast`, which only Precast itself reads. */
export function readTree(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.startsWith(".precast") && statSync(join(folder, path)).isFile())
    .sort();
  return new Map(files.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** The URL of an unreachable database: nothing listens on port 1, and the system never assigns it to a test. */
export const UNREACHABLE_URL = "postgres://nobody@127.0.0.1:1/none";

/** Occupies a free port until `release`. */
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
/** The shop's folder in the tree. */
export const SHOP_FOLDER = "x-53686f70/v1";
export const LONG = "x".repeat(65);

/** Every type uses the same ids. */
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

/** The shop with its posts changed by `change`. */
export function shopWith(change: (posts: BundleEntry[]) => BundleEntry[]): Bundle {
  const bundle = shop();
  return { ...bundle, entries: { ...bundle.entries, posts: change(bundle.entries.posts ?? []) } };
}

/** The shop with one of its posts unpublished. */
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
