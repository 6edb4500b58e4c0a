/** What all commands have in common: help, options and their variables, output, errors, exit codes, the database. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { openTerminal } from "../../cli/terminal.ts";
import { explainOpenFailure } from "../../shared/database/embedded/failure.ts";
import { errorFault } from "../../shared/database/embedded/thread.ts";
import { sql } from "../../shared/sql/query.ts";
import {
  type CommandResult,
  holdPort,
  idOf,
  MAIN,
  NODE_ARGUMENTS,
  openPlace,
  type Place,
  SHOP,
  SHOP_FOLDER,
  shop,
  smallApp,
} from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { mountDisk, NO_DISK, unlessLacking, unmountDisk } from "../support/root.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const COMMANDS = [
  "init",
  "migrate",
  "import",
  "convert",
  "export",
  "copy",
  "build",
  "work",
  "queue",
  "watch",
  "serve",
  "plan",
  "deploy",
  "explain",
  "verify",
  "status",
  "doctor",
  "edge",
  "studio",
  "types",
  "openapi",
  "report",
  "mcp",
  "adopt",
  "sync",
  "usage",
  "completion",
  "config",
];
/**
 * `deploy` and `edge` read only the tree, `mcp` only the API, `init` and `convert` only files, `config` only settings, and
 * `completion` nothing; `adopt` reads another database, and `sync` a mapping first.
 */
const WITHOUT_DATABASE = ["init", "convert", "deploy", "edge", "mcp", "completion", "config", "adopt", "sync"];
const WITH_DATABASE = COMMANDS.filter((command) => !WITHOUT_DATABASE.includes(command));
const EVERYWHERE = ["--database-url", "--data-dir", "--out", "--media-base-url", "--json", "--quiet", "--debug"];
/** The options of a store, and those of a CDN. */
const STORE = ["--concurrency", "--endpoint", "--region", "--path-style", "--retries", "--timeout"];
const PURGE = [
  "--purge",
  "--purge-method",
  "--purge-endpoint",
  "--cloudflare-zone",
  "--fastly-service",
  "--cloudfront-distribution",
];
const OWN: Record<string, string[]> = {
  init: ["--template"],
  migrate: [],
  import: ["--prune", "--dry-run", "--from", "--app", "--locale", "--unsafe-html", "--strict"],
  export: ["--app"],
  copy: ["--type", "--prune", "--dry-run"],
  convert: ["--app", "--locale", "--unsafe-html", "--strict"],
  build: ["--app", "--full", "--dry-run", "--max-size", "--state", "--summary", ...STORE],
  work: [
    "--target",
    "--apps-per-process",
    "--large-apps",
    "--finish",
    "--max-size",
    "--allow-local-media",
    "--cache-control",
    "--cdn-cache-control",
    "--admin-port",
    "--admin-host",
    ...STORE,
    ...PURGE,
  ],
  queue: ["--target"],
  watch: [
    "--app",
    "--target",
    "--max-size",
    "--allow-local-media",
    "--cache-control",
    "--cdn-cache-control",
    ...STORE,
    ...PURGE,
  ],
  serve: [
    "--host",
    "--port",
    "--workers",
    "--watch",
    "--drain",
    "--max-connections",
    "--connections",
    "--queue",
    "--memory-cache",
    "--tree",
    "--tree-refresh",
    "--tree-cache",
    "--endpoint",
    "--region",
    "--path-style",
    "--read-database-url",
    "--max-replica-lag",
    "--ledger-sync",
    "--cache-control",
    "--cdn-cache-control",
    "--cache-tags",
    "--tree-paths",
    "--trusted-proxy",
    "--admin-port",
    "--admin-host",
    "--media-port",
    "--media-host",
    "--studio",
    "--log-level",
  ],
  plan: ["--app", "--model", "--prune", "--prices", "--budget", "--max-size", "--summary"],
  deploy: [
    "--dry-run",
    "--max-delete",
    "--force",
    "--allow-older",
    "--allow-local-media",
    "--media",
    "--cache-control",
    "--cdn-cache-control",
    "--wait-visible",
    "--wait-limit",
    "--summary",
    ...STORE,
    ...PURGE,
  ],
  explain: ["--app", "--sql", "--plan"],
  verify: ["--app", "--sample"],
  status: [],
  doctor: ["--fix", "--connections", "--workers"],
  edge: ["--app", "--origin", "--tree-url", "--cache-control", "--cdn-cache-control", "--cache-tags", "--write"],
  studio: ["--port", "--open", "--plan", "--media-port", "--media-host", "--connections", "--workers"],
  types: ["--app", "--lang", "--values", "--write", "--check"],
  openapi: ["--app", "--write", "--check"],
  report: ["--html", "--app", "--since", "--until", "--plan"],
  mcp: ["--url", "--app", "--budget"],
  adopt: ["--from", "--map", "--app", "--preset", "--overwrite"],
  sync: ["--from", "--map", "--dry-run", "--prune", "--watch", "--every", "--triggers"],
  usage: ["--app", "--by", "--since", "--until", "--csv"],
  completion: [],
  config: [],
};
const VARIABLE = /\(((?:PRECAST|AWS|CLOUDFLARE|FASTLY|CLOUDFRONT)_[A-Z_]+|DATABASE_URL)(?: or [A-Z_]+)?\)$/;
const STACK = /\n\s+at .*:\d+/;
const SENTENCE = /^[^\n]+\.\n$/;

/** A folder without a database, for commands that end before they need one or fail because there is none. */
let nowhere: Place;
beforeAll(() => {
  nowhere = openPlace();
});
afterAll(() => nowhere.close());

describe("help and version", () => {
  const helps = new Map<string, Promise<CommandResult>>();
  /** Asks for the help of a command once for all tests. */
  function helpOf(command: string): Promise<CommandResult> {
    const help = helps.get(command) ?? nowhere.call(`${command} --help`);
    helps.set(command, help);
    return help;
  }

  test.each(["--help", "-h", "help"])(
    "the help of the program lists every command and shows an example: %s",
    async (line) => {
      const { code, stdout, stderr } = await nowhere.run(line);
      expect([code, stderr]).toEqual([0, ""]);
      for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^ +${command} .*\\S`, "m"));
      expect(stdout).toMatch(/^ +\$ precast \w+/m);
    },
  );

  test.each(COMMANDS)(
    "the help of %s shows an example, and exactly its options, each with an environment variable",
    async (command) => {
      const { code, stdout, stderr } = await helpOf(command);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(new RegExp(`^ +\\$ precast ${command}\\b`, "m"));
      const options = optionsIn(stdout);
      expect([...options.keys()].sort()).toEqual([...EVERYWHERE, ...(OWN[command] ?? []), "--help"].sort());
      options.delete("--help");
      for (const text of options.values()) expect(text).toMatch(VARIABLE);
    },
  );

  test("the help names a different environment variable for each option", async () => {
    const pairs = new Set<string>();
    for (const command of COMMANDS) {
      const options = optionsIn((await helpOf(command)).stdout);
      for (const [flag, text] of options) if (flag !== "--help") pairs.add(`${flag} ${VARIABLE.exec(text)?.[1]}`);
    }
    const variables = [...pairs].map((pair) => pair.split(" ")[1]);
    expect(new Set(variables).size).toBe(variables.length);
  });

  test("--version prints the version of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(MAIN, "../../../package.json"), "utf8")) as { version: string };
    expect(await nowhere.run("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test.each([
    ["--version", []],
    ["help status", ["status.ts"]],
  ])("a command line that needs few modules loads those of no other command: %s", async (line, loaded) => {
    const folder = join(nowhere.folder, "coverage");
    await nowhere.run(line, { NODE_V8_COVERAGE: folder });
    const text = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
    // Coverage contains the source maps of all files that were loaded, which name the modules in them.
    const sources = text.join("").match(/\/cli\/commands\/[^"]+/g) ?? [];
    expect(text.join("")).toContain("/cli/main.ts");
    expect(sources.map((source) => basename(source))).toEqual(loaded);
    rmSync(folder, { recursive: true });
  });

  /** The description of each option, as one line. */
  function optionsIn(help: string): Map<string, string> {
    const [, list = ""] = /\nOptions:\n([\s\S]*?)\n\n/.exec(help) ?? [];
    const texts = list.split(/\n(?= {2}-)/).map((text) => text.replace(/\s+/g, " ").trim());
    return new Map(texts.map((text) => [/--[a-z-]+/.exec(text)?.[0] ?? "", text]));
  }
});

test("the compiled main file can be executed directly, as npx does", () => {
  expect(execFileSync(MAIN, ["--version"], { encoding: "utf8" })).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("a command whose output pipe is closed prints no error and exits with 0", async () => {
  const written = `read _ <gone; ${process.execPath} ${MAIN} --help; echo $? >&2`;
  const piped = await nowhere.spawn("sh", ["-c", `mkfifo gone; { ${written}; } | { exec <&-; echo >gone; }`]);
  expect(piped.stderr).toBe("0\n");
});

test("a command that cannot write its output says why and exits with 1", async () => {
  const { code, stderr } = await nowhere.spawn("sh", ["-c", `${process.execPath} ${MAIN} --help >/dev/full`]);
  const why = "The output could not be written (ENOSPC: no space left on device, write).";
  expect([code, stderr]).toEqual([1, `${why} Everything else was done, unless an error above says otherwise.\n`]);
});

describe("an invalid command line", () => {
  test.each([
    ["--databse-url=postgres://cms:s3cr3t@ss@host/db", "status"],
    ["postgres://cms:s3cr3t@ss@host/db"],
    ["import", "postgres://cms:s3cr3t@ss@host/db"],
  ])("shows no password of an address in the wrong place: %s", async (...args) => {
    const { code, stdout, stderr } = await nowhere.call(args);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("postgres://cms:…@host/db");
  });

  test.each([
    ["nope", /unknown command 'nope'/],
    ["help nope", /unknown command 'nope'/],
    ["build --nope", /unknown option '--nope'/],
    ["import", /missing required argument 'folder'/],
    ["explain --app a", /missing required argument/],
    ["status now", /too many arguments/],
    ["build --out", /argument missing/],
    ["buidl", /build/],
  ])("ends with exit code 1 and says what is wrong: %s", async (line, sentence) => {
    const { code, stdout, stderr } = await nowhere.call(line);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(sentence);
    expect(stderr).toContain("--help");
    expect(stderr).not.toMatch(STACK);
  });

  test("without a command shows the help and exits with 1", async () => {
    const { code, stdout, stderr } = await nowhere.run("");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("Usage: precast");
  });
});

type Bad = readonly [command: string, flag: string, variable: string, bad: string, good: string];

/** Options whose values are validated, with a bad and a good value. */
const CHECKED: Bad[] = [
  ["status", "--media-base-url", "PRECAST_MEDIA_BASE_URL", "https://media.test:port", "https://media.test"],
  ["build", "--app", "PRECAST_APP", "a.b", "a"],
  ["explain /x", "--app", "PRECAST_APP", "a.b", "a"],
  ["usage", "--app", "PRECAST_APP", "a.b", "a"],
  ["serve", "--port", "PRECAST_PORT", "65536", "1"],
  ["serve", "--port", "PRECAST_PORT", "1.5", "1"],
  ["serve", "--connections", "PRECAST_CONNECTIONS", "0", "1"],
  ["serve", "--admin-port", "PRECAST_ADMIN_PORT", "70000", "0"],
  ["serve", "--log-level", "PRECAST_LOG_LEVEL", "loud", "silent"],
  ["serve", "--read-database-url", "PRECAST_READ_DATABASE_URL", "mysql://x", "postgres://x/y"],
  ["serve", "--max-replica-lag", "PRECAST_MAX_REPLICA_LAG", "0", "1"],
  ["serve", "--queue", "PRECAST_QUEUE", "many", "0"],
  ["serve", "--workers", "PRECAST_WORKERS", "0", "1"],
  ["serve", "--drain", "PRECAST_DRAIN", "soon", "0"],
  ["serve", "--max-connections", "PRECAST_MAX_CONNECTIONS", "0", "1"],
  ["serve", "--trusted-proxy", "PRECAST_TRUSTED_PROXY", "10.0.0.0/40", "10.0.0.0/8"],
  ["serve", "--cache-control", "PRECAST_CACHE_CONTROL", "a\nb", "no-cache"],
  ["serve", "--cdn-cache-control", "PRECAST_CDN_CACHE_CONTROL", "ä", "no-cache"],
  ["verify", "--sample", "PRECAST_SAMPLE", "0", "1"],
  ["usage", "--by", "PRECAST_BY", "value", "type"],
  ["usage", "--since", "PRECAST_SINCE", "yesterday", "2026-01-20"],
  ["usage", "--until", "PRECAST_UNTIL", "2026-02-30", "2026-01-20"],
];
const FLAGS: [command: string, variables: string[]][] = [
  ["status", ["PRECAST_JSON", "PRECAST_QUIET", "PRECAST_DEBUG"]],
  ["import x", ["PRECAST_PRUNE", "PRECAST_DRY_RUN", "PRECAST_STRICT"]],
  ["build", ["PRECAST_DRY_RUN", "PRECAST_FULL"]],
  ["serve", ["PRECAST_WATCH"]],
  ["doctor", ["PRECAST_FIX"]],
];

/** Groups options by command. A second bad value of an option gets its own group: a run sets each option once. */
function turnsOf(all: readonly Bad[]): [command: string, flags: string, options: Bad[]][] {
  const turns: [command: string, options: Bad[]][] = [];
  for (const option of all) {
    const lacks = (others: readonly Bad[]) => others.every(([, flag]) => flag !== option[1]);
    const turn = turns.find(([command, others]) => command === option[0] && lacks(others));
    if (turn === undefined) turns.push([option[0], [option]]);
    else turn[1].push(option);
  }
  return turns.map(([command, options]) => [command, options.map(([, flag]) => flag).join(" "), options]);
}

describe("the configuration", () => {
  const BAD_URL = { DATABASE_URL: "mysql://x" };
  const BAD_URL_LINE = "DATABASE_URL must begin with postgres:// or postgresql://\n";

  test("an address of several hosts is refused, with what to do", async () => {
    for (const bad of ["u@a,b/db", "u@a:5432,b:5433/db", "u:p@/db?host=a,b", "u:p@h/db?x=1&host=a,b"]) {
      for (const line of [`status --database-url postgres://${bad}`, `serve --read-database-url postgres://${bad}`]) {
        const { code, stdout, stderr } = await nowhere.call(line, {
          DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
        });
        expect([line, code, stdout]).toEqual([line, 1, ""]);
        const told =
          /^--(read-)?database-url names several hosts, and Precast connects to one: name the primary, or a proxy/;
        expect([line, stderr]).toEqual([line, expect.stringMatching(told)]);
      }
    }
    const { stderr } = await nowhere.call("status --database-url postgres://u:a,b@127.0.0.1:1/db?application_name=c,d");
    expect(stderr).toMatch(/^The database did not answer /);
  });

  test("a malformed database address is refused with a hint, and the address of a socket is accepted", async () => {
    const status = (url: string) => nowhere.call(["status", "--database-url", url]);
    for (const bad of [
      "postgres://u:a/b@host/db",
      "postgres://u:a#b@host/db",
      "postgres://u:a?b@host/db",
      "postgres://h:99999/db",
    ]) {
      const { code, stderr } = await status(bad);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^--database-url must be an address .*%2F.*\n$/)]);
      expect(stderr).not.toContain("a/b");
    }
    for (const good of [
      "postgres:///db?host=/nowhere",
      "postgres://u:a%2Fb@/db?host=/nowhere",
      "postgres://%2Fnowhere/db",
    ]) {
      const { code, stderr } = await status(good);
      expect([code, stderr]).toEqual([1, expect.stringContaining("did not answer (connect ENOENT /nowhere/")]);
    }
  });

  // One run reports the problems of all options of a command.
  test.each(turnsOf(CHECKED))(
    "%s %s: a bad value is reported with its flag or variable, and a flag overrides the variable",
    async (...given) => {
      const [command, , options] = given;
      const flags = (value: (option: Bad) => string) => options.flatMap((option) => [option[1], value(option)]);
      const env = (value: (option: Bad) => string) =>
        Object.fromEntries(options.map((option) => [option[2], value(option)]));
      const bad = (option: Bad) => option[3];
      const good = (option: Bad) => option[4];
      const run = (words: string[], more: Record<string, string>) =>
        nowhere.call([...command.split(" "), ...words], { ...BAD_URL, ...more });
      const asked = [
        { ran: await run(flags(bad), {}), name: ([, flag]: Bad) => flag },
        { ran: await run([], env(bad)), name: ([, , variable]: Bad) => variable },
        { ran: await run(flags(bad), env(good)), name: ([, flag]: Bad) => flag },
      ];
      for (const { ran, name } of asked) {
        expect([ran.code, ran.stdout]).toEqual([1, ""]);
        const told = ran.stderr.trimEnd().split("\n");
        const expected = [...options.map((option) => `${name(option)} must be`), "DATABASE_URL must be"];
        expect(told.map((line) => /^\S+ must be/.exec(line)?.[0]).sort()).toEqual(expected.sort());
      }
      expect(await run(flags(good), env(bad))).toEqual({ code: 1, stdout: "", stderr: BAD_URL_LINE });
    },
  );

  test("an option that does nothing without another is refused, and its variable, which may be for others, is not", async () => {
    const vain: [command: string, needed: string, ...options: string[]][] = [
      ["serve", "--read-database-url", "--max-replica-lag 2"],
      ["serve", "--admin-port", "--admin-host ::1"],
      ["serve", "--media-port", "--media-host ::1"],
      ["deploy file:///nowhere", "--wait-visible", "--wait-limit 2"],
      ["deploy file:///nowhere", "--purge", "--purge-method PURGE", "--purge-endpoint https://cdn.test"],
      ["deploy file:///nowhere", "--purge", "--cloudflare-zone a", "--fastly-service b", "--cloudfront-distribution c"],
    ];
    for (const [command, needed, ...options] of vain) {
      const { code, stdout, stderr } = await nowhere.run(`${command} ${options.join(" ")}`, BAD_URL);
      const told = options.map((option) => `${option.split(" ")[0]} has no effect without ${needed}\n`).join("");
      expect([code, stdout, stderr]).toEqual([1, "", `${BAD_URL_LINE}${told}`]);
    }
    const variables = { ...BAD_URL, PRECAST_ADMIN_HOST: "::1", PRECAST_MAX_REPLICA_LAG: "2" };
    expect((await nowhere.run("serve", variables)).stderr).toBe(BAD_URL_LINE);
  });

  test("one port for media and for something else is refused", async () => {
    const told = `${BAD_URL_LINE}--media-port must be a port of its own, but 3922 is another one as well\n`;
    for (const line of ["serve --port 3922", "serve --admin-port 3922", "studio --port 3922"])
      expect(await nowhere.call(`${line} --media-port 3922`, BAD_URL)).toMatchObject({ code: 1, stderr: told });
  });

  test("one port for clients and for the admin is refused", async () => {
    const { code, stderr } = await nowhere.run("serve --port 3922 --admin-port 3922", BAD_URL);
    expect([code, stderr]).toEqual([
      1,
      `${BAD_URL_LINE}--admin-port must be another port than --port, which is 3922\n`,
    ]);
  });

  test("an empty folder name is refused, and does not stand for the current folder", async () => {
    const { code, stderr } = await nowhere.call(["build", "--out", "", "--data-dir", ""]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^--out must be the name of a folder/m)]);
    expect(stderr).toMatch(/^--data-dir must be the name of a folder/m);
    const edge = await nowhere.call(["edge", "caddy", "--app", "a", "--write", ""]);
    expect(edge).toEqual({ code: 1, stdout: "", stderr: "--write must be the name of a folder\n" });
  });

  test("an option is not taken for the value that another one lacks, as after an empty variable of a shell", async () => {
    const { code, stdout, stderr } = await nowhere.call("build --out --full --region --path-style");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      "--region must be followed by a value, not by --path-style\n--out must be followed by a value, not by --full\n",
    );
    expect(existsSync(join(nowhere.folder, "--full"))).toBe(false);
  });

  test("an empty host is refused, and does not stand for every address of the machine; nor is a blank header sent", async () => {
    const args = ["serve", "--host", "", "--admin-host", "", "--cache-control", " "];
    const { code, stderr } = await nowhere.call(args);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^--host must be an address such as 127\.0\.0\.1/m)]);
    expect(stderr).toMatch(/^--admin-host must be an address/m);
    expect(stderr).toMatch(/^--cache-control must be a header value/m);
  });

  test("a PRECAST_APP that names no app is refused, and does not stand for an empty selection", async () => {
    const { code, stderr } = await nowhere.call("verify", { PRECAST_APP: " , " });
    expect([code, stderr]).toEqual([1, "PRECAST_APP must name at least one app\n"]);
  });

  test("an empty environment variable counts as not set", async () => {
    const empty = Object.fromEntries([...CHECKED.map(([, , variable]) => [variable, ""]), ["PRECAST_JSON", ""]]);
    expect((await nowhere.call("serve", { ...empty, ...BAD_URL })).stderr).toBe(BAD_URL_LINE);
  });

  test.each(FLAGS)("%s: %s accept true, 1, false and 0, and nothing else", async (command, variables) => {
    const env = (value: string) => Object.fromEntries(variables.map((variable) => [variable, value]));
    for (const value of ["true", "1", "false", "0"]) {
      expect((await nowhere.call(command, { ...BAD_URL, ...env(value) })).stderr).toContain(BAD_URL_LINE.trim());
    }
    const { code, stderr } = await nowhere.call(command, env("maybe"));
    const told = variables.map((variable) => `${variable} must be true or false`);
    expect([code, stderr.trimEnd().split("\n").sort()]).toEqual([1, told.sort()]);
  });

  test("all invalid options and variables are reported at once", async () => {
    const env = { DATABASE_URL: "mysql://x", PRECAST_QUEUE: "-1", PRECAST_MEDIA_BASE_URL: "x", PRECAST_JSON: "maybe" };
    const { code, stdout, stderr } = await nowhere.run("serve --port x --connections 0", env);
    expect([code, stdout]).toEqual([1, ""]);
    const told = stderr.trimEnd().split("\n");
    const names = [
      "--connections",
      "--port",
      "DATABASE_URL",
      "PRECAST_JSON",
      "PRECAST_MEDIA_BASE_URL",
      "PRECAST_QUEUE",
    ];
    expect(told.map((line) => line.split(" ")[0]).sort()).toEqual(names);
  });
});

describe("on PostgreSQL", () => {
  let store: Store;
  let place: Place;
  let bundle: string;
  const out = (path: string, folder = "out") => join(place.folder, folder, path);

  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    bundle = join(place.folder, "bundle");
    await writeBundle(bundle, shop());
  });
  afterAll(async () => {
    await place.close();
    await store.close();
  });
  beforeEach(async () => {
    rmSync(out(""), { recursive: true, force: true });
    await store.database.execute("DELETE FROM precast.apps");
    await place.import(shop());
  });

  /** Commands, in an order in which each exits with 0. */
  const lines = () => [
    "migrate",
    `import ${bundle}`,
    "build",
    `explain /posts?per_page=1 --app ${SHOP}`,
    "verify",
    "status",
    "doctor",
    `types --app ${SHOP}`,
    "usage",
  ];
  /** What `serve` prints from its start to its end. */
  const served = async (line: string) => (await place.serve(line)).stop();

  test("--json prints one JSON value on standard output, everything else on standard error", async () => {
    const told: Record<string, string> = {};
    for (const line of lines()) {
      const { code, stdout, stderr } = await place.run(`${line} --json`);
      expect([line, code]).toEqual([line, 0]);
      expect([line, stdout.split("\n").length]).toEqual([line, 2]);
      expect(typeof JSON.parse(stdout)).toBe("object");
      told[line.split(" ")[0] ?? ""] = stderr;
    }
    expect(told).toMatchObject({
      migrate: expect.stringContaining("up to date"),
      import: expect.stringContaining("unchanged"),
      build: expect.stringContaining("files"),
    });
    const { code, stdout, stderr } = await served("--json");
    expect([code, stdout]).toMatchObject([0, expect.stringMatching(/^\{"url":"http:[^\n]*\}\n$/)]);
    expect(stderr).toContain("Try:");
  });

  test("an import warns of a relation whose target is no type of the app, and imports it all the same", async () => {
    const { app, types, entries } = shop();
    const fewer = { app: { ...app, key: "fewer" }, types: types.slice(0, 1), entries: { posts: entries.posts ?? [] } };
    await writeBundle(join(place.folder, "fewer"), fewer);
    const { code, stdout, stderr } = await place.call("import fewer --quiet --json");
    const told = `content_types/posts.json: the target of "author_id" is "authors", which is no content type of this app.`;
    expect([code, stderr.split("\n")]).toEqual([0, [expect.stringContaining(told), ""]]);
    const missing_targets = [{ type: "posts", field: "author_id", target: "authors" }];
    expect(JSON.parse(stdout)).toMatchObject({ types: { created: 1 }, missing_targets });
  });

  test.each(["import", "build"])("the JSON of %s says whether it was a dry run", async (command) => {
    const line = callOf(command, bundle);
    expect(await place.json(`${line} --dry-run`)).toMatchObject({ dry_run: true });
    expect(await place.json(line)).toMatchObject({ dry_run: false });
  });

  test("an import names the next command, unless it was a dry run", async () => {
    const line = `import ${bundle}`;
    expect((await place.call(line)).stdout).toMatch(/\nNext: run `precast build`\.\n$/);
    expect((await place.call(`${line} --dry-run`)).stdout).not.toContain("Next");
    expect(await place.json(line)).toMatchObject({ next: "precast build", warnings: [] });
    expect(await place.json(`${line} --dry-run`)).toMatchObject({ next: null });
  });

  test("--quiet prints only results", async () => {
    const results = ["explain", "verify", "status", "doctor", "edge", "types", "usage"];
    for (const line of [...lines(), "edge"]) {
      const { code, stdout, stderr } = await place.call(`${line} --quiet`);
      const isResult = results.includes(line.split(" ")[0] ?? "");
      expect([line, code, stdout !== "", stderr]).toEqual([line, 0, isResult, ""]);
      const json = await place.call(`${line} --quiet --json`);
      expect([line, json.code, json.stderr]).toEqual([line, 0, ""]);
      expect(json.stdout).not.toBe("");
    }
  });

  test("--quiet still prints errors", async () => {
    const { code, stdout, stderr } = await place.call("build --app nope --quiet");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(SENTENCE);
  });

  test("a failure with --json prints nothing on standard output", async () => {
    const { code, stdout, stderr } = await place.run("build --app nope --json");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(SENTENCE);
  });

  test("output into a pipe contains neither colours nor bars", async () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
    const decoration = /[\u001b\r█░│]/;
    for (const line of lines()) {
      const { stdout, stderr } = await place.run(line);
      expect(stdout).not.toBe("");
      expect([line, stdout + stderr]).toEqual([line, expect.not.stringMatching(decoration)]);
    }
    const { stdout, stderr } = await served("");
    expect(stdout + stderr).not.toMatch(decoration);
  });

  test("the exit code is 0 for success, 1 for a failure and 2 for differences that verify finds", async () => {
    expect((await place.run("build")).code).toBe(0);
    expect((await place.run("verify")).code).toBe(0);
    rmSync(out(`${SHOP_FOLDER}/_schemas.json`));
    expect((await place.run("verify")).code).toBe(2);
    expect((await place.run("verify --app nope")).code).toBe(1);
  });

  test("an error is one sentence that names what is wrong, and has its stack only with --debug", async () => {
    writeFileSync(join(place.folder, "file"), "");
    for (const line of ["build --app nope", "build --out file/x", "verify --out file/x"]) {
      const plain = await place.call(line);
      expect([line, plain.code, plain.stdout]).toEqual([line, 1, ""]);
      expect([line, plain.stderr]).toEqual([line, expect.stringMatching(SENTENCE)]);
      expect(plain.stderr).toContain(line.split(" ").at(-1));
      for (const ran of [await place.call(`${line} --debug`), await place.call(line, { PRECAST_DEBUG: "1" })]) {
        expect([line, ran.code, ran.stderr]).toEqual([line, 1, expect.stringMatching(STACK)]);
      }
    }
  });

  describe("an option is set by its flag, or by its environment variable where there is no flag", () => {
    const title = () => readFileSync(out(`${SHOP_FOLDER}/posts/page/1.json`), "utf8");
    const onlyIn = (folder: string) =>
      readdirSync(place.folder)
        .filter((name) => name === "a" || name === "b")
        .join() === folder;

    test("--out, PRECAST_OUT", async () => {
      await place.call("build", { PRECAST_OUT: "a" });
      expect(onlyIn("a")).toBe(true);
      rmSync(out("", "a"), { recursive: true });
      await place.call("build --out b", { PRECAST_OUT: "a" });
      expect(onlyIn("b")).toBe(true);
      rmSync(out("", "b"), { recursive: true });
    });

    test("--data-dir, PRECAST_DATA_DIR", async () => {
      await (await place.serve("", { PRECAST_DATA_DIR: "a" })).stop();
      expect(onlyIn("a")).toBe(true);
      rmSync(out("", "a"), { recursive: true });
      await (await place.serve("--data-dir b", { PRECAST_DATA_DIR: "a" })).stop();
      expect(onlyIn("b")).toBe(true);
      rmSync(out("", "b"), { recursive: true });
    });

    test("--database-url, DATABASE_URL", async () => {
      const other = openPlace();
      const { apps } = await other.json<{ apps: unknown[] }>(`status --database-url ${store.url}`, {
        DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
      });
      await other.close();
      expect(apps).toHaveLength(1);
    });

    test("--media-base-url, PRECAST_MEDIA_BASE_URL", async () => {
      await place.call("build", { PRECAST_MEDIA_BASE_URL: "https://a.test" });
      expect(title()).toContain('"https://a.test/Shop/');
      await place.call("build --media-base-url https://b.test", { PRECAST_MEDIA_BASE_URL: "https://a.test" });
      expect(title()).toContain('"https://b.test/Shop/');
    });

    test("--json, PRECAST_JSON", async () => {
      expect(JSON.parse((await place.call("status", { PRECAST_JSON: "1" })).stdout)).toHaveProperty("apps");
      expect((await place.call("status", { PRECAST_JSON: "false" })).stdout).toMatch(/^Shop\t/);
    });

    test("--quiet, PRECAST_QUIET", async () => {
      expect((await place.call("build", { PRECAST_QUIET: "true" })).stdout).toBe("");
      expect((await place.call("build", { PRECAST_QUIET: "0" })).stdout).not.toBe("");
    });

    test("--app, PRECAST_APP", async () => {
      for (const key of ["a", "b"]) await place.import(smallApp(key, [key]));
      const built = async (line: string) =>
        (await place.json<{ apps: { key: string }[] }>(line, { PRECAST_APP: `${SHOP},a` })).apps.map(({ key }) => key);
      expect(await built("build")).toEqual([SHOP, "a"]);
      expect(await built("build --app b")).toEqual(["b"]);
      expect(await place.json("explain /authors", { PRECAST_APP: "a" })).toMatchObject({ shape: "page" });
      expect(await place.json("explain /posts --app Shop", { PRECAST_APP: "a" })).toMatchObject({ refusal: null });
    });

    test("--prune and --dry-run, PRECAST_PRUNE and PRECAST_DRY_RUN", async () => {
      await writeBundle(join(place.folder, "fewer"), { ...shop(), types: shop().types.slice(0, 1), entries: {} });
      const types = async (env: Record<string, string>, line = "import fewer") =>
        (await place.json<{ types: { deleted: number } }>(line, env)).types.deleted;
      expect(await types({})).toBe(0);
      expect(await types({ PRECAST_PRUNE: "1", PRECAST_DRY_RUN: "1" })).toBe(3);
      expect(await types({ PRECAST_DRY_RUN: "1" }, "import fewer --prune")).toBe(3);
      expect(await types({ PRECAST_PRUNE: "1" }, "import fewer --dry-run")).toBe(3);
      expect(await types({ PRECAST_PRUNE: "1" })).toBe(3);
      expect(await types({ PRECAST_PRUNE: "1" })).toBe(0);
      await place.call("build", { PRECAST_DRY_RUN: "1" });
      expect(readdirSync(place.folder)).not.toContain("out");
    });

    test("--full, PRECAST_FULL", async () => {
      await place.call("build");
      for (const ran of [await place.call("build --full"), await place.call("build", { PRECAST_FULL: "1" })]) {
        expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining("wrote 0 files")]);
      }
    });

    test("--watch, PRECAST_WATCH", async () => {
      for (const [line, env] of [["--watch", { PRECAST_WATCH: "0" }] as const, ["", { PRECAST_WATCH: "1" }] as const]) {
        const server = await place.serve(line, env);
        await server.printed(/^Shop: .*wrote 46 files/m);
        await server.stop();
        rmSync(out(""), { recursive: true });
      }
    });

    test("--sample, PRECAST_SAMPLE", async () => {
      await place.call("build");
      const computed = async (line: string, env: Record<string, string>) =>
        (await place.json<{ apps: { computed: number }[] }>(line, env)).apps[0]?.computed;
      expect(await computed("verify", { PRECAST_SAMPLE: "1" })).toBe(1);
      expect(await computed("verify --sample 2", { PRECAST_SAMPLE: "1" })).toBe(2);
    });

    test("--since and --until, PRECAST_SINCE and PRECAST_UNTIL", async () => {
      await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count)
        SELECT 'Shop', day::date, 'list', 200, 1 FROM generate_series('2026-01-01'::date, '2026-01-09', '1 day') AS day`);
      const env = { PRECAST_SINCE: "2026-01-03", PRECAST_UNTIL: "2026-01-06" };
      const total = async (line: string) => (await place.json<{ total: number }>(line, env)).total;
      expect(await total("usage")).toBe(4);
      expect(await total("usage --since 2026-01-06")).toBe(1);
      expect(await total("usage --until 2026-01-03")).toBe(1);
      await store.database.execute("DELETE FROM precast.usage");
    });

    test("--host and --port, PRECAST_HOST and PRECAST_PORT", async () => {
      const [first, second] = [await holdPort(), await holdPort()];
      await first.release();
      await second.release();
      const env = { PRECAST_HOST: "0.0.0.0", PRECAST_PORT: String(first.port) };
      const byFlag = await place.serve(`--host 127.0.0.1 --port ${second.port}`, env);
      expect(byFlag.url).toBe(`http://127.0.0.1:${second.port}`);
      await byFlag.stop();
      const byVariable = await place.serve("", env);
      expect(byVariable.url).toBe(`http://0.0.0.0:${first.port}`);
      await byVariable.stop();
    });

    test("--cache-control and --cdn-cache-control, and their variables", async () => {
      await place.call("build");
      const env = { PRECAST_CACHE_CONTROL: "max-age=1", PRECAST_CDN_CACHE_CONTROL: "max-age=2" };
      const cachedAs = async (line: string) => {
        const server = await place.serve(line, env);
        const { headers } = await server.get("/api/v1/posts", { appKey: SHOP });
        await server.stop();
        return [headers["cache-control"], headers["cdn-cache-control"]];
      };
      expect(await cachedAs("")).toEqual(["max-age=1", "max-age=2"]);
      expect(await cachedAs("--cache-control max-age=3 --cdn-cache-control max-age=4")).toEqual([
        "max-age=3",
        "max-age=4",
      ]);
    });

    test("--connections and --queue, and their variables: requests beyond the limits get 503", async () => {
      const env = { PRECAST_CONNECTIONS: "1", PRECAST_QUEUE: "0" };
      const statuses = async (line: string) => {
        const server = await place.serve(line, env);
        // All targets differ, because equal requests share a query.
        const targets = Array.from({ length: 40 }, (_, index) => `/api/v1/posts/search?q=one&per_page=${index + 1}`);
        const asked = targets.map((target) => server.get(target, { appKey: SHOP }));
        const found = new Set((await Promise.all(asked)).map(({ status }) => status));
        await server.stop();
        return [...found].sort();
      };
      expect(await statuses("")).toContain(503);
      expect(await statuses("--connections 2 --queue 1000")).toEqual([200]);
      await store.database.execute("DELETE FROM precast.usage");
    });
  });

  describe("a login that the database refuses is told in its words", () => {
    const as = (change: (url: URL) => void) => {
      const url = new URL(inject("postgresUrl"));
      change(url);
      return { DATABASE_URL: url.href };
    };

    test.each<[string, string, (url: URL) => void]>([
      ["role", 'role "nobody_here" does not exist', (url) => Object.assign(url, { username: "nobody_here" })],
      [
        "database",
        'database "nothing_here" does not exist',
        (url) => Object.assign(url, { pathname: "/nothing_here" }),
      ],
    ])("an unknown %s", async (_, words, change) => {
      const { code, stdout, stderr } = await nowhere.call("status", as(change));
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toBe(
        `The database refused the login (${words}). Check the user, the password and the name of the database in --database-url (DATABASE_URL).\n`,
      );
    });

    test("no user, neither in the address nor in the environment", async () => {
      const { code, stdout, stderr } = await nowhere.run(
        "status",
        as((url) => Object.assign(url, { username: "" })),
      );
      expect([code, stdout, stderr]).toEqual([
        1,
        "",
        expect.stringMatching(/^The address of the database names no user, .* Write postgres:\/\/user@host\/name /),
      ]);
    });

    test("serve warns of it, and serves the tree", async () => {
      const server = await nowhere.serve(
        "",
        as((url) => Object.assign(url, { username: "nobody_here" })),
      );
      const { code, stderr } = await server.stop();
      expect([code, stderr]).toEqual([0, expect.stringContaining("The database refuses the login (role ")]);
    });
  });

  test("migrate says that the schema is up to date when it runs again", async () => {
    const url = await createDatabase(inject("postgresUrl"), "migrate");
    const env = { DATABASE_URL: url };
    const first = await place.run("migrate", env);
    expect([first.code, first.stdout]).toEqual([0, expect.stringMatching(/^Applied 0001_\w+\.sql, /)]);
    const second = await place.call("migrate", env);
    expect([second.code, second.stdout]).toEqual([0, "The schema is up to date.\n"]);
    expect(await place.json("migrate", env)).toEqual({ applied: [] });
    await dropDatabase(url);
  });

  test("migrate says what to do when the list of applied migrations was lost", async () => {
    const url = await createDatabase(inject("postgresUrl"), "unlisted");
    await place.run("migrate", { DATABASE_URL: url });
    const database = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 1 });
    for (const [lose, lacking] of [
      ["DELETE FROM precast.migrations WHERE name LIKE '0010%'", "0010_indexes.sql"],
      ["DROP TABLE precast.migrations", "0001_content.sql"],
    ]) {
      await database.execute(lose as string);
      const { code, stderr } = await place.call("migrate", { DATABASE_URL: url });
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^The list of applied migrations .*Restore that table.*\n$/),
      ]);
      expect(stderr).toContain(`lacks ${lacking}, `);
    }
    await database.close();
    await dropDatabase(url);
  });

  test("migrate changes nothing in a database from before the first release", async () => {
    const url = await createDatabase(inject("postgresUrl"), "before");
    const database = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 1 });
    await database.execute(`CREATE SCHEMA precast; CREATE TABLE precast.migrations (name text PRIMARY KEY);
      INSERT INTO precast.migrations VALUES ('0001_content.sql'), ('0002_flags.sql')`);
    const { code, stdout, stderr } = await place.call("migrate", { DATABASE_URL: url });
    const [[tables] = []] = await database.query(
      sql("SELECT count(*)::text FROM pg_tables WHERE schemaname = 'precast'"),
    );
    expect([code, stdout, tables]).toEqual([1, "", "1"]);
    expect(stderr).toMatch(/before the first release\. .*use a new database and import again\.\n$/);
    await database.close();
    await dropDatabase(url);
  });

  test("import does not write to a database that its operator has set to read-only", async () => {
    const url = await createDatabase(inject("postgresUrl"), "frozen");
    const env = { DATABASE_URL: url };
    await place.run("migrate", env);
    const database = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 1 });
    await database.execute(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET default_transaction_read_only = on`);
    await database.close();
    const folder = join(place.folder, "frozen");
    await writeBundle(folder, shop());
    const { code, stderr } = await place.call(`import ${folder}`, env);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^The database is read-only \(.*\n$/)]);
    await dropDatabase(url);
  });

  test("migrate creates the trigram indexes in a database that has no schema public", async () => {
    const url = await createDatabase(inject("postgresUrl"), "hardened");
    const database = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 1 });
    await database.execute("DROP SCHEMA public");
    expect(await place.call("migrate --quiet", { DATABASE_URL: url })).toEqual({ code: 0, stdout: "", stderr: "" });
    const indexes = "SELECT to_regclass('precast.terms_by_part')::text, to_regclass('precast.entries_by_texts')::text";
    expect(await database.query(sql(indexes))).toEqual([["precast.terms_by_part", "precast.entries_by_texts"]]);
    await database.close();
    await dropDatabase(url);
  });

  test.each(["SQL_ASCII", "LATIN1"])(
    "migrate refuses a database with the encoding %s and says how to create one in UTF-8",
    async (encoding) => {
      const url = await createDatabase(inject("postgresUrl"), "encoded", `ENCODING '${encoding}' LOCALE 'C'`);
      const { code, stdout, stderr } = await place.call("migrate", { DATABASE_URL: url });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toBe(
        `The encoding of the database is ${encoding}, which cannot store every character. ` +
          "Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.\n",
      );
      await dropDatabase(url);
    },
  );

  test.each(WITH_DATABASE.filter((command) => command !== "migrate"))(
    "%s fails and asks for precast migrate when the database has no schema",
    async (command) => {
      const url = await createDatabase(inject("postgresUrl"), "empty");
      const { code, stdout, stderr } = await outcome(place, command, bundle, { DATABASE_URL: url });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(SENTENCE);
      expect(stderr).toContain("`precast migrate`");
      await dropDatabase(url);
    },
  );

  test.each(WITH_DATABASE.filter((command) => command !== "migrate"))(
    "%s refuses a schema that a newer version has migrated",
    async (command) => {
      await store.database.execute("INSERT INTO precast.migrations (name) VALUES ('9999_future.sql')");
      const { code, stdout, stderr } = await outcome(place, command, bundle);
      await store.database.execute("DELETE FROM precast.migrations WHERE name = '9999_future.sql'");
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/newer/);
    },
  );
});

/** The command with the arguments that it requires. */
function callOf(command: string, folder: string): string {
  const rest: Record<string, string> = {
    import: folder,
    explain: "/posts --app Shop",
    serve: "--port 0",
    report: "--html x",
    export: "exported",
    copy: "Shop Other",
    work: "--target file:///nowhere",
  };
  return `${command} ${rest[command] ?? ""}`;
}

/** Those that run until they are stopped are run as processes. */
function outcome(place: Place, command: string, folder: string, env: Record<string, string> = {}) {
  const isLong = ["serve", "watch", "work"].includes(command);
  return (isLong ? place.run : place.call)(callOf(command, folder), env);
}

test("a Node.js that is too old is refused in one sentence, and the oldest that package.json names is not", async () => {
  const { engines } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engines.node) ?? [];
  const runAs = (version: string) => {
    const pretend = `Object.defineProperties(process, ${JSON.stringify({ version: { value: `v${version}` } })});
      Object.defineProperty(process.versions, "node", { value: "${version}" });`;
    return nowhere.spawn(process.execPath, ["--import", `data:text/javascript,${pretend}`, MAIN, "--version"]);
  };
  for (const old of ["18.20.8", `${major}.${Number(minor) - 1}.0`]) {
    const stderr = `Precast needs Node.js ${major}.${minor} or newer, and this is v${old}.\n`;
    expect(await runAs(old)).toEqual({ code: 1, stdout: "", stderr });
  }
  for (const version of [`${major}.${minor}.0`, "22.0.0"])
    expect(await runAs(version)).toMatchObject({ code: 0, stderr: "" });
});

describe("when the database does not answer", () => {
  let refused: string;

  beforeAll(async () => {
    const { port, release } = await holdPort();
    await release();
    refused = `postgres://nobody@127.0.0.1:${port}/none`;
  });

  test.each(WITH_DATABASE.filter((command) => command !== "serve"))(
    "%s fails with one sentence that names DATABASE_URL",
    async (command) => {
      const { code, stdout, stderr } = await outcome(nowhere, command, "bundle", { DATABASE_URL: refused });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^The database did not answer .*ECONNREFUSED.*DATABASE_URL.*\.\n$/);
    },
  );

  test("status --debug prints the stack of the error, with the files and lines of the sources", async () => {
    for (const [line, debug] of [["status --debug"], ["status", "1"]] as const) {
      const env = { DATABASE_URL: refused, PRECAST_DEBUG: debug ?? "" };
      const { code, stderr } = await nowhere.run(line, env);
      expect([code, stderr]).toEqual([1, expect.stringMatching(STACK)]);
      expect(stderr).toMatch(/^ +at .*\/shared\/\S+\.ts:\d+:\d+\)$/m);
      expect(stderr).not.toContain("/dist/");
    }
  });

  test("status --debug does not print the password", async () => {
    const { stderr } = await nowhere.call("status --debug", { DATABASE_URL: refused.replace("nobody", "me:s3cret") });
    expect(stderr).not.toContain("s3cret");
  });
});

describe("on the embedded database", () => {
  let place: Place;
  const lock = () => join(place.folder, ".precast", "database.lock");

  beforeAll(async () => {
    place = openPlace();
  });
  afterAll(() => place.close());

  const READING = [
    "build",
    "watch",
    "serve --port 0",
    "verify",
    "status",
    "usage",
    "doctor",
    "types",
    "explain /x --app a",
  ];

  test.each(READING)("%s creates no database, and says how to name or make one", async (line) => {
    expect(await place.call(line, { PRECAST_OUT: "tree" })).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "There is no database in .precast: specify a PostgreSQL with --database-url (DATABASE_URL), or import a bundle (precast import <folder>), which creates the embedded database.\n",
    });
    expect(readdirSync(place.folder)).toEqual([]);
  });

  test.each([...READING, "migrate", `import ${resolve("cli/demo")}`])(
    "with CI in the environment, %s uses an embedded database only if it is asked for",
    async (line) => {
      const { code, stderr } = await place.call(line, { CI: "true" });
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^CI is set, and no database is named: .* PRECAST_DATA_DIR .*\n$/),
      ]);
      expect(readdirSync(place.folder)).toEqual([]);
      const asked = await place.call(["explain", "/x", "--app", "a", "--data-dir", "asked"], { CI: "true" });
      expect(asked.stderr).toMatch(/^There is no database in asked: /);
    },
  );

  test.each(["build", "verify", "deploy file:///tmp/nowhere"])(
    "%s fails while the database has no app",
    async (line) => {
      const own = { PRECAST_DATA_DIR: "empty", PRECAST_OUT: "empty/out" };
      expect(await place.call("migrate", own)).toMatchObject({ code: 0, stderr: "" });
      const { code, stdout, stderr } = await place.call(line, own);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(
        /^(No app in the embedded database in empty: import a bundle|empty\/out has no finished build).*\n$/,
      );
      rmSync(join(place.folder, "empty"), { recursive: true });
    },
  );

  test("migrate creates the database and its schema in .precast", async () => {
    expect((await place.call("migrate")).stdout).toMatch(/^Applied 0001_.*\.\n$/);
    expect(await place.json("status")).toEqual({ apps: [], trees_without_app: [] });
    expect(readdirSync(place.folder)).toEqual([".precast"]);
    expect((await place.run("migrate")).stdout).toBe("The schema is up to date.\n");
    expect(readdirSync(join(place.folder, ".precast"))).not.toContain("database.lock");
  });

  test("a command fails and names the process that holds the lock", async () => {
    writeFileSync(lock(), `${process.pid}\n`);
    const commands = ["status", "build", "migrate", "serve --port 0"];
    const ran = await Promise.all(commands.map((command) => place.run(command)));
    for (const [index, { code, stdout, stderr }] of ran.entries()) {
      expect([commands[index], code, stdout]).toEqual([commands[index], 1, ""]);
      expect(stderr).toMatch(SENTENCE);
      expect(stderr).toMatch(new RegExp(`embedded database is in use by process ${process.pid}\\b.*--database-url`));
    }
    rmSync(lock());
  });

  test("a command ignores the lock of a dead process", async () => {
    const { stdout: dead } = await place.spawn("/bin/sh", ["-c", "echo $$"]);
    writeFileSync(lock(), dead);
    expect(await place.call("status --quiet")).toMatchObject({ code: 0, stderr: "" });
  });

  test("a command ignores a lock that holds its own process id, as a container leaves it", async () => {
    const script = 'echo $$ > .precast/database.lock; exec "$0" "$1" status';
    const ran = await place.spawn("/bin/sh", ["-c", script, process.execPath, MAIN]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
  });

  test("imported content is still there after a server was killed", async () => {
    await place.import(shop());
    const server = await place.serve();
    expect((await server.get(`/api/v1/posts/${idOf(1)}`, { appKey: SHOP })).status).toBe(200);
    await server.stop("SIGKILL");
    const { apps } = await place.json<{ apps: { key: string; types: { entries: number }[] }[] }>("status");
    expect(apps).toMatchObject([
      { key: SHOP, types: [{ entries: 3 }, { entries: 1 }, { entries: 1 }, { entries: 0 }] },
    ]);
  });

  test("commands that may open too few files say so in a sentence, however few they are", async () => {
    await place.import(shop());
    const sentence =
      /^This process (may open too few files to start|has reached its limit of open files)\. Raise the limit \(ulimit -n\) and run the command again\.\n$/;
    for (const line of ["build", "serve --port 0", "serve --port 0 --workers 2"]) {
      for (const files of [20, 26, 40]) {
        const limited = `ulimit -n ${files}; exec "$0" "$1" ${line}`;
        const { code, stderr } = await place.spawn("sh", ["-c", limited, process.execPath, MAIN]);
        expect([line, files, code, stderr]).toEqual([line, files, 1, expect.stringMatching(sentence)]);
      }
    }
  });

  test("a build that may open no more files fails and names the limit to raise", async () => {
    await place.import(shop());
    const build = `exec ${[process.execPath, ...NODE_ARGUMENTS].join(" ")} build`;
    const { code, stdout, stderr } = await place.spawn("sh", ["-c", `ulimit -n 80; ${build}`]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      "This process has reached its limit of open files. Raise the limit (ulimit -n) and run the command again.\n",
    );
  });

  test("a command fails when a file stands where the data folder should be", async () => {
    writeFileSync(join(place.folder, "file"), "");
    for (const folder of ["file", "file/x"]) {
      const { code, stdout, stderr } = await place.call(`migrate --data-dir ${folder}`);
      expect([folder, code, stdout]).toEqual([folder, 1, ""]);
      expect([folder, stderr]).toEqual([folder, expect.stringMatching(/^.*\bfile\b.*\. Specify another.*\n$/)]);
    }
  });

  test("a command fails when the data folder is a link to nothing", async () => {
    symlinkSync(join(place.folder, "unmounted"), join(place.folder, "link"));
    for (const folder of ["link", "link/x"]) {
      const { code, stdout, stderr } = await place.call(`migrate --data-dir ${folder}`);
      expect([folder, code, stdout]).toEqual([folder, 1, ""]);
      expect([folder, stderr]).toEqual([
        folder,
        expect.stringMatching(/^.* contains a broken symbolic link\. .* specify another/),
      ]);
    }
  });

  test.skipIf(NO_DISK)(
    unlessLacking(NO_DISK, "a command fails when its folder is to be created on a read-only disk"),
    async () => {
      const disk = join(place.folder, "disk");
      mkdirSync(disk);
      mountDisk(disk, "size=64k,ro");
      try {
        for (const command of [
          "migrate --data-dir disk/data",
          "build --out disk/a/b",
          "edge caddy --app a --write disk/x",
        ]) {
          const { code, stdout, stderr } = await place.call(command);
          expect([command, code, stdout]).toEqual([command, 1, ""]);
          expect([command, stderr]).toEqual([
            command,
            expect.stringMatching(/^disk\/.* is on a read-only file system\. Specify another folder \(.*\)\.\n$/),
          ]);
        }
      } finally {
        unmountDisk(disk);
      }
    },
  );

  test.skipIf(NO_DISK)(
    unlessLacking(NO_DISK, "a command fails when its folder is to be created on a disk without inodes"),
    async () => {
      const disk = join(place.folder, "crowded");
      mkdirSync(disk);
      mountDisk(disk, "size=64k,nr_inodes=1");
      try {
        for (const command of inFolder("crowded/a/b")) {
          const { code, stdout, stderr } = await place.call(command);
          expect([command, code, stdout]).toEqual([command, 1, ""]);
          expect([command, stderr]).toEqual([
            command,
            expect.stringMatching(/^The disk is full\. .* inodes \(df -i\), /),
          ]);
        }
      } finally {
        unmountDisk(disk);
      }
    },
  );

  test("a command fails, and does not hang, where nobody can create a folder", async () => {
    // Not only Linux lets nobody put something below a device.
    const [path, told] = existsSync("/proc/self")
      ? ["/proc/precast/x", /^\/proc\/precast cannot be created: nobody can create folders there\. Specify another /]
      : ["/dev/null/x", /^Part of the path \/dev\/null\/.* is a file, not a folder\. Specify another /];
    for (const command of inFolder(path as string)) {
      const { code, stdout, stderr } = await place.run(command);
      expect([command, code, stdout]).toEqual([command, 1, ""]);
      expect([command, stderr]).toEqual([command, expect.stringMatching(told as RegExp)]);
    }
  });

  /** Commands that make a folder there. */
  function inFolder(folder: string): string[] {
    return [`migrate --data-dir ${folder}`, `build --out ${folder}`, `edge caddy --app a --write ${folder}`];
  }

  test("a database whose creation was killed is created again", async () => {
    const folder = join(place.folder, "killed");
    const { pid, end } = place.start("migrate --data-dir killed");
    await until("the database to be begun", () => existsSync(join(folder, "database.begun")));
    process.kill(pid, "SIGKILL");
    await end();
    // As if the process was killed after unpacking PG_VERSION, which marks a database, and before other files.
    mkdirSync(join(folder, "database"), { recursive: true });
    rmSync(join(folder, "database", "global"), { recursive: true, force: true });
    writeFileSync(join(folder, "database", "PG_VERSION"), "17\n");
    const { code, stderr } = await place.run("status --data-dir killed");
    expect([code, stderr]).toEqual([0, ""]);
    expect(readdirSync(folder)).toEqual(["database"]);
  });

  test("a copy put in the place of a database whose creation was killed is opened, and not replaced", async () => {
    const folder = join(place.folder, "restored");
    const { pid, end } = place.start("migrate --data-dir restored");
    await until("the database to be begun", () => existsSync(join(folder, "database.begun")));
    process.kill(pid, "SIGKILL");
    await end();
    rmSync(join(folder, "database"), { recursive: true });
    cpSync(join(place.folder, ".precast", "database"), join(folder, "database"), { recursive: true });
    writeFileSync(join(folder, "database", "copied"), "");
    const { code, stderr } = await place.run("status --data-dir restored");
    expect([code, stderr]).toEqual([0, ""]);
    expect(readdirSync(folder)).toEqual(["database"]);
    expect(existsSync(join(folder, "database", "copied"))).toBe(true);
  });

  test("what is left of a database is kept, and no new one is made over it", async () => {
    const folder = join(place.folder, "half", "database");
    cpSync(join(place.folder, ".precast", "database"), folder, { recursive: true });
    rmSync(join(folder, "PG_VERSION"));
    const control = readFileSync(join(folder, "global", "pg_control"));
    const { code, stdout, stderr } = await place.run("status --data-dir half");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^The embedded database in half\/database cannot be opened \(PG_VERSION is missing\)\. .*\n$/,
    );
    expect(readFileSync(join(folder, "global", "pg_control"))).toEqual(control);
  });

  test("a file in the place of the database is named as such", async () => {
    mkdirSync(join(place.folder, "filed"));
    writeFileSync(join(place.folder, "filed", "database"), "");
    const { code, stderr } = await place.run("status --data-dir filed");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be opened: that is a file, not a folder\. .*\n$/),
    ]);
  });

  test("a command fails, and does not hang, when the data folder holds a database that cannot be opened", async () => {
    mkdirSync(join(place.folder, "strange", "database"), { recursive: true });
    writeFileSync(join(place.folder, "strange", "database", "PG_VERSION"), "9.6\n");
    const { code, stdout, stderr } = await place.run("status --data-dir strange");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^The embedded database in strange\/database cannot be opened \(.*remove it and import again\.\n$/,
    );
    expect(existsSync(join(place.folder, "strange", "database", "PG_VERSION"))).toBe(true);
  });
});

// Given as texts, because PGlite's message depends on the version of V8, and some versions end the process instead.
test.each([
  "WebAssembly.Memory(): could not allocate memory",
  "WebAssembly.instantiate(): Out of memory: Cannot allocate Wasm memory for new instance",
  "Array buffer allocation failed",
])(
  "the error about too little memory names the limit to raise, and does not advise removing the database: %s",
  (said) => {
    const told = explainOpenFailure(join(nowhere.folder, "narrow"), said);
    expect(told).toMatch(/ needs more memory than this process may use \(.*\)\. Raise the limit \(ulimit -v\), /);
    expect(told).not.toContain("remove");
    // Memory may already be lacking while the thread loads its modules: that ends it.
    expect(errorFault(join(nowhere.folder, "narrow"), new Error(said)).message).toBe(told);
  },
);

describe("on a terminal", () => {
  const opened = async (plain: boolean) => {
    const written = { stdout: "", stderr: "" };
    const stream = (name: "stdout" | "stderr") => ({
      isTTY: true,
      write: (text: string) => {
        written[name] += text;
      },
    });
    const streams = { stdout: stream("stdout"), stderr: stream("stderr") };
    return { written, terminal: await openTerminal({ ...streams, json: false, quiet: false, plain }) };
  };

  test("prints colours and tables", async () => {
    const { written, terminal } = await opened(false);
    terminal.say(terminal.colors.green("done"));
    expect(written).toEqual({ stdout: "\u001b[32mdone\u001b[39m\n", stderr: "" });
    expect(terminal.table(["App"], [["atlas"]])).toMatch(/│.*atlas.*│/);
  });

  test("prints plain lines and no progress when plain output is set, as for CI or NO_COLOR", async () => {
    const { written, terminal } = await opened(true);
    terminal.say(terminal.colors.green("done"));
    expect(written).toEqual({ stdout: "done\n", stderr: "" });
    expect(terminal.table(["App", "Entries"], [["atlas", 3]])).toBe("atlas\t3");
    expect(terminal.progress()).toBeNull();
  });
});
