/**
 * `npm run walk`: the files in which a function runs for a request, and for one edited entry, by V8's precise coverage.
 * What also runs while the server is idle is left out. It prints figures, and with `--files` the files.
 */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { type Profiler, Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { runCommandLine } from "../cli/program.ts";
import { openPlace } from "./bench/place.ts";
import { temporaryRoot } from "./support/postgres.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HOME = /^(cli|server|shared)\//;
/** A second is the longest that a server waits before it sends what it has counted. */
const UNTIL_SENT_MS = 2_500;

type Walk = { readonly functions: ReadonlySet<string>; readonly files: ReadonlySet<string> };
type Row = { readonly name: string; readonly walk: Walk; readonly limit: string };

const session = new Session();

/** Runs `action` and returns what ran meanwhile, except for `idle`. */
async function walk(action: () => Promise<unknown>, idle: Walk | null = null): Promise<Walk> {
  await session.post("Profiler.takePreciseCoverage");
  await action();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const functions = new Set(result.flatMap(ranIn).filter((name) => !idle?.functions.has(name)));
  return { functions, files: new Set([...functions].map((name) => name.split(":")[0] as string)) };
}

/** The functions of a script that ran, as `file:name:offset`. The script itself is one without a name. */
function ranIn({ url, functions }: Profiler.ScriptCoverage): string[] {
  if (!url.startsWith(pathToFileURL(ROOT).href)) return [];
  const file = relative(ROOT, fileURLToPath(url.split("?")[0] as string));
  if (!HOME.test(file)) return [];
  // `__name` is what tsx adds to each file in order to keep the names of functions.
  const ran = functions.filter(({ functionName, ranges: [range] }) => {
    const isScript = functionName === "" && range?.startOffset === 0;
    return range !== undefined && range.count > 0 && !isScript && functionName !== "__name";
  });
  return ran.map(({ functionName, ranges }) => `${file}:${functionName}:${ranges[0]?.startOffset}`);
}

type Program = { readonly run: (...args: string[]) => Promise<string>; readonly serve: () => Promise<Served> };
type Served = { readonly url: string; readonly stop: () => Promise<void> };

/** The program in this process, with all its files in `folder`. */
function openProgram(databaseUrl: string, folder: string): Program {
  const shared = ["--database-url", databaseUrl, "--json"];
  const places = ["--data-dir", join(folder, "data"), "--out", join(folder, "out")];
  async function start(args: readonly string[], stopped: Promise<void>, onText: (text: string) => void) {
    const code = await runCommandLine([...args, ...shared, ...places], {
      env: {},
      now: () => new Date(),
      stopped: () => stopped,
      readConfiguration: async () => null,
      stdout: { write: onText },
      stderr: process.stderr,
    });
    if (code !== 0) throw new Error(`precast ${args.join(" ")}: exit code ${code}`);
  }
  const run = async (...args: string[]) => {
    let text = "";
    await start(args, new Promise(() => {}), (more) => {
      text += more;
    });
    return text;
  };
  const serve = async () => {
    const { promise: stopped, resolve: stop } = deferred<void>();
    const { promise: url, resolve: listening, reject } = deferred<string>();
    const ended = start(["serve", "--port", "0"], stopped, (text) => listening(JSON.parse(text).url));
    ended.catch(reject);
    return { url: await url, stop: () => Promise.resolve(stop()).then(() => ended) };
  };
  return { run, serve };
}

function deferred<T>() {
  let settle: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...(settle as NonNullable<typeof settle>) };
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** Asks for a target of the demo, and reads the whole answer. */
function ask(url: string, target: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(`/api/v1${target}`, url), { agent, headers: { "X-App-Key": "atlas" } }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${target}: ${answer.statusCode}`));
      answer.resume().on("end", resolve);
    });
    asked.on("error", reject).end();
  });
}

async function walkRequests({ serve }: Program): Promise<Row[]> {
  const { url, stop } = await serve();
  const counted = (least: number) => `/cities?filter[elevation_m][gte]=${least}&sort=-population`;
  await ask(url, "/_schemas");
  const idle = await walk(() => pause(UNTIL_SENT_MS));
  const asking = (target: string) =>
    walk(async () => {
      await ask(url, target);
      await pause(UNTIL_SENT_MS);
    }, idle);
  const rows = [
    { name: "a counted list with filter and sort, first time", walk: await asking(counted(2000)), limit: "45" },
    { name: "the same with another value", walk: await asking(counted(1500)), limit: "" },
    { name: "the same again", walk: await asking(counted(1500)), limit: "30" },
    { name: "a free list, first time", walk: await asking("/cities"), limit: "" },
    { name: "a free list again, from memory", walk: await asking("/cities"), limit: "9" },
  ];
  agent.destroy();
  await stop();
  return rows;
}

async function walkEdit({ run }: Program, bundle: string, folder: string): Promise<Row> {
  const target = pathToFileURL(join(folder, "deployed")).href;
  await run("deploy", target);
  const entries = join(bundle, "entries/cities.ndjson");
  writeFileSync(entries, readFileSync(entries, "utf8").replace('"name":"Lyon"', '"name":"Lyons"'));
  const edited = await walk(async () => {
    await run("import", bundle);
    await run("build");
    await run("deploy", target);
  });
  const files = new Set([...edited.files].filter((file) => file.startsWith("cli/")));
  const functions = new Set([...edited.functions].filter((name) => name.startsWith("cli/")));
  return { name: "import, build and deploy of one edited entry, in cli/", walk: { files, functions }, limit: "40" };
}

function print(rows: readonly Row[], withFiles: boolean): void {
  const line = (...cells: readonly [string, unknown, unknown, unknown]) =>
    process.stdout.write(
      `${cells[0].padEnd(54)}${cells
        .slice(1)
        .map((cell) => String(cell).padStart(10))
        .join("")}\n`,
    );
  line("", "files", "at most", "functions");
  for (const { name, walk, limit } of rows) {
    line(name, walk.files.size, limit, walk.functions.size);
    if (withFiles) for (const file of walk.files) process.stdout.write(`  ${file}\n`);
  }
}

const place = openPlace({ dir: temporaryRoot(), keep: false, databaseUrl: null });
try {
  const program = openProgram(await place.database("walk"), place.folder);
  const bundle = join(place.folder, "bundle");
  cpSync(join(ROOT, "cli/demo"), bundle, { recursive: true });
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await program.run("migrate");
  await program.run("import", bundle);
  await program.run("build");
  print(
    [...(await walkRequests(program)), await walkEdit(program, bundle, place.folder)],
    process.argv.includes("--files"),
  );
} finally {
  await place.close();
}
