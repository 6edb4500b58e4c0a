/** The log of `precast serve`: one line per request, request ids that link answers to lines, and errors with their causes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { beginningOfKey, chooseRequestId, printTarget } from "../../server/http/observe.ts";
import { openLog, openLogSink } from "../../server/log.ts";
import {
  holdPort,
  MAIN,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  smallApp,
  UNREACHABLE_URL,
} from "../support/cli.ts";
import { ask, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

type Line = Readonly<Record<string, unknown>>;

const FREE = "/api/v1/authors";
const LOGGED = { PRECAST_LOG_LEVEL: "info" };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** One key for each kind of folder name in the tree: `s-`, `x-` and `h-`. */
const KEYS = ["lowercase-secret-1", "MixedCaseSecret2", `long-${"secret".repeat(15)}`];

let store: Store;
let place: Place;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  for (const key of KEYS) await place.import(smallApp(key, ["Ada"]));
  await place.build();
});
afterEach(() => place.quit());
afterAll(async () => {
  await place.close();
  await store.close();
});

/** Every line on standard error is JSON. */
function linesOf({ stderr }: { stderr: string }): Line[] {
  return stderr
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

describe("a request", () => {
  test("is logged as one line of JSON with its target, its outcome and its duration", async () => {
    const server = await place.serve("", LOGGED);
    const free = await server.get(FREE, { appKey: KEYS[0] as string });
    const counted = await server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
    await server.get(FREE, { method: "HEAD", appKey: KEYS[0] as string });
    await server.get("/nowhere");
    const ran = await server.stop();
    const common = { level: "info", time: expect.stringMatching(/^\d{4}-.*Z$/), pid: server.pid, client: "127.0.0.1" };
    const took = { ms: expect.any(Number) };
    expect(linesOf(ran)).toEqual([
      {
        ...common,
        ...took,
        id: free.headers["x-request-id"],
        app: "lowe…",
        method: "GET",
        target: FREE,
        status: 200,
        shape: "page",
        counted: false,
        source: "tree",
        bytes: Buffer.byteLength(free.text),
      },
      {
        ...common,
        ...took,
        id: counted.headers["x-request-id"],
        app: "Sh…",
        method: "GET",
        target: "/api/v1/posts?per_page=1",
        status: 200,
        shape: "list",
        counted: true,
        source: "live",
        bytes: Buffer.byteLength(counted.text),
      },
      expect.objectContaining({ method: "HEAD", status: 200, shape: "page", bytes: 0 }),
      expect.objectContaining({ target: "/nowhere", status: 404, shape: null, counted: false, source: "none" }),
    ]);
    expect(linesOf(ran)[3]).not.toHaveProperty("app");
  });

  test("is logged while the server runs, not only when it stops", async () => {
    const server = await place.serve("", LOGGED);
    await server.get(FREE, { appKey: SHOP, headers: { "X-Request-Id": "look-for-me" } });
    await server.printed(/look-for-me/);
    await server.stop();
  });

  test("is answered although nobody reads the log", async () => {
    const child = spawn(process.execPath, [MAIN, "serve", "--port", "0", "--log-level", "info"], {
      cwd: place.folder,
      env: { DATABASE_URL: store.url ?? "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      const [printed] = await once(child.stdout, "data");
      const url = /http:\S+/.exec(String(printed))?.[0] ?? "";
      // More than the pipe and the buffer of its reader hold.
      for (let number = 0; number < 600; number++) {
        expect((await ask(url, `${FREE}?x=${"x".repeat(900)}`, { appKey: KEYS[0] as string })).status).toBe(200);
      }
    } finally {
      child.kill("SIGTERM");
    }
    expect((await once(child, "exit"))[0]).toBe(0);
  });

  test("is in the log when the server stops, even if it is one of 300 concurrent requests", async () => {
    const server = await place.serve("", LOGGED);
    const ids = Array.from({ length: 300 }, (_, number) => `request-${number}`);
    await Promise.all(ids.map((id) => server.get(FREE, { appKey: SHOP, headers: { "X-Request-Id": id } })));
    expect(linesOf(await server.stop()).map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
  });
});

describe("the client of a request", () => {
  const CHAIN = "6.6.6.6, 203.0.113.9, 10.1.2.3";
  /** What a server with these trusted proxies logs of a request with these headers. */
  async function logged(options: string, headers: Record<string, string | string[]>): Promise<Line> {
    const server = await place.serve(options, LOGGED);
    await server.get(FREE, { appKey: SHOP, headers });
    return linesOf(await server.stop())[0] as Line;
  }

  test("is the address of the connection, whatever X-Forwarded-For says, without a trusted proxy", async () => {
    for (const options of ["", "--trusted-proxy 10.0.0.0/8 ::1"]) {
      const line = await logged(options, { "X-Forwarded-For": CHAIN });
      expect(line).toMatchObject({ client: "127.0.0.1" });
      expect(line).not.toHaveProperty("forwarded_for");
    }
  });

  test.each([
    ["--trusted-proxy 127.0.0.1", CHAIN, "10.1.2.3"],
    ["--trusted-proxy 127.0.0.0/8 10.0.0.0/8", CHAIN, "203.0.113.9"],
    ["--trusted-proxy 127.0.0.1 10.1.2.3", "203.0.113.9:4711, 10.1.2.3", "203.0.113.9"],
    ["--trusted-proxy 127.0.0.1 2001:db8::/32", "2001:0:1::9, [2001:db8::1]:443", "2001:0:1::9"],
    ["--trusted-proxy 127.0.0.1 10.0.0.0/8", "::ffff:203.0.113.9, ::ffff:10.1.2.3", "203.0.113.9"],
    ["--trusted-proxy 127.0.0.1", "10.1.2.3, unknown", "127.0.0.1"],
    ["--trusted-proxy 127.0.0.0/8 10.0.0.0/8", "10.9.9.9, 10.1.2.3", "10.9.9.9"],
  ])("is, with %s and X-Forwarded-For: %s, %s", async (options, forwarded, client) => {
    const line = await logged(options, { "X-Forwarded-For": forwarded });
    expect([line.client, line.forwarded_for]).toEqual([client, forwarded]);
  });

  test("is also told by User-Agent and Referer, of which at most 256 printable characters are shown", async () => {
    const headers = { "User-Agent": "Shop/1.0 (x\u00e9\u0080)", Referer: `https://shop.example/${"x".repeat(1_000)}` };
    expect(await logged("", headers)).toMatchObject({
      user_agent: "Shop/1.0 (x%E9%80)",
      referer: `https://shop.example/${"x".repeat(235)}…`,
    });
  });
});

describe("a request id", () => {
  test("is taken from the request or generated, and is in every answer, refusals included", async () => {
    const server = await place.serve();
    const ask = async (target: string, method: string, appKey: string | undefined, given?: string) => {
      const headers: Record<string, string> = given === undefined ? {} : { "X-Request-Id": given };
      const got = await server.get(target, { method, headers, ...(appKey === undefined ? {} : { appKey }) });
      return got.headers["x-request-id"] ?? "";
    };
    const requests = [
      [FREE, "GET", SHOP],
      [FREE, "HEAD", SHOP],
      ["/api/v1/posts/search?q=one", "GET", SHOP],
      ["/api/v1/posts?sort=", "GET", SHOP],
      ["/api/v1/posts?page=0", "GET", SHOP],
      [FREE, "OPTIONS", undefined],
      [FREE, "POST", SHOP],
      [FREE, "GET", undefined],
      [FREE, "GET", "stranger"],
      ["/nowhere", "GET", undefined],
    ] as const;
    const made = [];
    for (const [target, method, appKey] of requests) {
      expect(await ask(target, method, appKey, "A-z0.9_~:/+=@")).toBe("A-z0.9_~:/+=@");
      made.push(await ask(target, method, appKey));
    }
    for (const id of made) expect(id).toMatch(UUID);
    expect(new Set(made).size).toBe(requests.length);
    await server.stop();
  });

  test("that is too long or has other characters is replaced by a generated one", () => {
    const longest = "a".repeat(128);
    for (const good of ["a", longest, "00-4bf92f3577b34da6-01", "https://x/y?".slice(0, -1)])
      expect(chooseRequestId(good)).toBe(good);
    for (const bad of ["", `${longest}a`, "two words", "a,b", 'quo"te', "ünicode", "x\ty", "x;y", "<b>"])
      expect(chooseRequestId(bad)).toMatch(UUID);
    expect(chooseRequestId(undefined)).toMatch(UUID);
  });
});

describe("a target", () => {
  test.each([
    ["/api/v1/posts?filter%5Btitle%5D=T20%20x", "/api/v1/posts?filter%5Btitle%5D=T20%20x"],
    ["/api/v1/\u009b\u00e9", "/api/v1/%9B%E9"],
  ])("%j is logged as %j", (target, shown) => {
    expect(printTarget(target)).toBe(shown);
  });

  test("is truncated after 1,024 characters", () => {
    expect(printTarget(`/${"x".repeat(9_000)}`)).toMatch(/^\/x{1023}…$/);
  });
});

describe("an app key", () => {
  test.each([
    ["abcdefghij", "abcd…"],
    ["abcdefgh", "abcd…"],
    ["atlas", "at…"],
    ["a", "…"],
    ["", "…"],
    ["a\u009bb\u001bcdef", "a?b?…"],
  ])("%j is logged as %j", (key, shown) => {
    expect(beginningOfKey(key)).toBe(shown);
  });

  test("shows only its beginning in the line of each request, even of a malformed one, and failures show their causes", async () => {
    const server = await place.serve("--log-level trace");
    for (const appKey of KEYS) await abuse(server, appKey);
    await breakThings(server);
    const { stderr } = await server.stop();
    const lines = linesOf({ stderr });
    for (const key of KEYS) {
      expect(lines.filter(({ app }) => app === key)).toEqual([]);
      expect(lines.filter(({ app }) => app === beginningOfKey(key)).length).toBeGreaterThan(10);
    }
    // Each failure is logged with its cause.
    expect(lines.filter(({ level }) => level === "error").length).toBeGreaterThanOrEqual(2 * KEYS.length);
    expect(stderr).toContain("ELOOP");
    expect(stderr).toContain("no room for");
  });

  /** Sends the key in every part of a request where a client might put it. */
  async function abuse(server: RunningServer, appKey: string): Promise<void> {
    const encoded = [...appKey].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    const targets = [
      FREE,
      `${FREE}?per_page=1`,
      `${FREE}/search?q=${appKey}`,
      `${FREE}?filter[name]=${appKey}&sort=${encoded}`,
      `/${appKey}/v1/authors`,
      `/api/v1/${appKey}`,
      `/api/v1/${encoded}`,
      `/api/v1/%${appKey}`,
      `/api/v1/authors?x-app-key=${appKey}`,
      `//${appKey}\\..\\${appKey}`,
      `${FREE}?${appKey}`,
    ];
    for (const target of targets) {
      await server.get(target, { appKey });
      await server.get(target, { appKey, method: "POST", headers: { "X-Request-Id": `mine-${appKey}` } });
      await server.get(target, { headers: { "X-App-Key": [appKey, appKey] } });
    }
    await server.get(`${FREE}?app_key=${appKey}&api%5Fkey=${encoded}`);
    await malformed(server, `GET /${appKey} HTTP/9.9\r\nX-App-Key: ${appKey}\r\n\r\n`);
    await malformed(server, `${appKey}\r\n\r\n`);
  }

  /** Causes errors that quote the key: files that cannot be read in folders named by it, and errors of the database. */
  async function breakThings(server: RunningServer): Promise<void> {
    const out = join(place.folder, "out");
    const folders = ["s-lowercase-secret-1", `x-${Buffer.from(KEYS[1] ?? "").toString("hex")}`];
    for (const folder of folders) {
      renameSync(join(out, folder), join(out, `${folder}.away`));
      symlinkSync(folder, join(out, folder));
    }
    await store.database.execute(`CREATE FUNCTION precast.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no room for %', NEW.app_key USING DETAIL = NEW.app_key, HINT = NEW.app_key; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON precast.usage FOR EACH ROW EXECUTE FUNCTION precast.refuse()`);
    for (const appKey of KEYS) await server.get(`${FREE}?per_page=2`, { appKey });
    await server.printed(/no room for/);
    await store.database.execute("DROP FUNCTION precast.refuse CASCADE");
    for (const appKey of KEYS.slice(0, 2)) expect((await server.get(FREE, { appKey })).status).toBe(500);
    await store.database.execute("ALTER TABLE precast.entries RENAME TO elsewhere");
    // A request not sent before: a kept answer would be validated and sent without reading the entries.
    for (const appKey of KEYS) expect((await server.get(`${FREE}?per_page=3`, { appKey })).status).toBe(500);
    await store.database.execute("ALTER TABLE precast.elsewhere RENAME TO entries");
    for (const folder of folders) {
      rmSync(join(out, folder));
      renameSync(join(out, `${folder}.away`), join(out, folder));
    }
  }

  /** Sends malformed HTTP, and waits until the connection is closed. */
  function malformed({ url }: RunningServer, text: string): Promise<void> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.end(text));
      socket.on("error", () => {});
      socket.on("close", () => resolve());
      socket.resume();
    });
  }
});

test("an error whose message ends with that of its cause is logged with it once", async () => {
  const file = join(place.folder, "causes.log");
  const descriptor = openSync(file, "w");
  const log = await openLog({ level: "info", descriptor, shared: false, readable: false, colors: false });
  const refused = new Error("connect ECONNREFUSED");
  const unavailable = new Error("connect ECONNREFUSED", { cause: refused });
  log.error(new Error("The counts are sent again later: connect ECONNREFUSED", { cause: unavailable }));
  log.error(new Error("The counts are sent again later", { cause: refused }));
  await log.close();
  const messages = linesOf({ stderr: readFileSync(file, "utf8") }).map(({ err }) => (err as Error).message);
  expect(messages).toEqual(Array(2).fill("The counts are sent again later: connect ECONNREFUSED"));
});

describe("the log level", () => {
  const levelsOf = (lines: readonly Line[]) => [...new Set(lines.map(({ level }) => level))];
  test.each([
    ["", ["warn", "info"]],
    ["--log-level info", ["warn", "info"]],
    ["--log-level warn", ["warn"]],
    ["--quiet", ["warn"]],
    ["--quiet --log-level info", ["warn", "info"]],
    ["--log-level error", []],
    ["--log-level silent", []],
  ])("with the options %j, the lines have the levels %j", async (line, levels) => {
    const remote = openPlace({ DATABASE_URL: UNREACHABLE_URL });
    try {
      const server = await remote.serve(line, { PRECAST_LOG_LEVEL: "" });
      expect((await server.get("/nowhere")).headers["x-request-id"]).toMatch(UUID);
      const ran = await server.stop();
      expect([ran.code, levelsOf(linesOf(ran))]).toEqual([0, levels]);
      expect(ran.stdout).toContain(`Precast serves ${server.url}\n`);
    } finally {
      await remote.close();
    }
  });

  test("is refused when it is unknown, and the error lists the known ones", async () => {
    const { code, stderr } = await place.run("serve --log-level loud");
    expect(code).toBe(1);
    expect(stderr).toBe("--log-level must be one of trace, debug, info, warn, error, fatal, silent\n");
  });
});

describe("on a full disk", () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });

  /** Runs `serve` in a shell, after the command `log`, which redirects standard error. */
  async function serveInto(log: string): Promise<{ url: string; stop: () => Promise<number | null> }> {
    const command = `${log}; exec "${process.execPath}" "${MAIN}" serve --port 0`;
    const child = spawn("sh", ["-c", command], {
      cwd: place.folder,
      env: { DATABASE_URL: store.url ?? "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    const [printed] = await once(child.stdout, "data");
    return {
      url: /http:\S+/.exec(String(printed))?.[0] ?? "",
      stop: async () => {
        const exited = once(child, "exit");
        child.kill("SIGTERM");
        return (await exited)[0] as number | null;
      },
    };
  }

  const asks = (url: string, id: string) => ask(url, FREE, { appKey: SHOP, headers: { "X-Request-Id": id } });

  test("requests are answered, and the server exits with 0 on SIGTERM", async () => {
    const server = await serveInto("exec 2>/dev/full");
    for (let turn = 0; turn < 200; turn++) expect((await asks(server.url, `turn-${turn}`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test("no line of the log is lost or torn once there is room again", async () => {
    const log = join(place.folder, "log");
    // The limit on file size makes the system write the part of a line that fits, and refuse the rest.
    const room = 8_192;
    const server = await serveInto(`ulimit -f ${room / 512}; exec 2>>"${log}"`);
    const ids = Array.from({ length: 50 }, (_, number) => `request-${number}.`);
    for (const id of ids) expect((await asks(server.url, id)).status).toBe(200);
    await until("the log to be full", () => statSync(log).size === room);
    const before = readFileSync(log, "utf8");
    truncateSync(log);
    await until("the last line", () => readFileSync(log, "utf8").includes(ids.at(-1) ?? ""));
    expect(await server.stop()).toBe(0);
    const lines = linesOf({ stderr: before + readFileSync(log, "utf8") });
    expect(lines.map(({ id }) => id)).toEqual(ids);
  });

  test("a server that cannot start exits with code 1", async () => {
    const [gone, held] = [await holdPort(), await holdPort()];
    await gone.release();
    const url = `DATABASE_URL=postgres://nobody@127.0.0.1:${gone.port}/none`;
    const command = `exec 2>/dev/full; ${url} exec "${process.execPath}" "${MAIN}" serve --port ${held.port}`;
    const { code } = await place.spawn("sh", ["-c", command]);
    await held.release();
    expect(code).toBe(1);
  });

  test("lines beyond the buffer limit are dropped and counted", async () => {
    // Never closed, because a sink writes as long as the process lives.
    const descriptor = openSync("/dev/full", "w");
    const sink = openLogSink(descriptor, false);
    const [line, lines] = [`${"x".repeat(1_023)}\n`, 10_000];
    for (let number = 0; number < lines; number++) sink.write(line);
    await sink.close();
    expect(sink.dropped()).toBeGreaterThan(1_000);
    expect(sink.dropped()).toBeLessThan(lines);
  });
});

describe("on a terminal", () => {
  const ESCAPE = String.fromCharCode(27);

  /** `args` make `script` run a server at `url` in a terminal, until `stop` is called. */
  async function prepare() {
    const file = join(place.folder, "stop");
    rmSync(file, { force: true });
    const held = await holdPort();
    await held.release();
    const serve = `"${process.execPath}" "${MAIN}" serve --port ${held.port}`;
    const command = `${serve} & pid=$!; while [ ! -e stop ]; do sleep 0.05; done; kill $pid; wait $pid`;
    return {
      args: ["-qec", command, "/dev/null"],
      url: `http://127.0.0.1:${held.port}`,
      stop: () => writeFileSync(file, ""),
    };
  }

  test.each([
    ["in colour", {}, true],
    ["without colour where NO_COLOR is set", { NO_COLOR: "1" }, false],
  ])("a request is logged as a readable sentence, %s", async (_, env, colored) => {
    const { args, url, stop } = await prepare();
    const ended = place.spawn("script", args, { TERM: "xterm", ...env });
    const reads = () => ask(url, FREE, { appKey: KEYS[0] as string, headers: { "X-Request-Id": "mine" } });
    await until("the server to answer", async () => (await reads().catch(() => null))?.status === 200);
    stop();
    const { code, stdout } = await ended;
    expect([code, stdout.includes(ESCAPE)]).toEqual([0, colored]);
    const plain = stdout.replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, "g"), "");
    expect(plain).toMatch(
      /^\[\d\d:\d\d:\d\d\] INFO: GET \/api\/v1\/authors 200 [\d.]+ ms \d+ bytes page free tree .*"id":"mine"/m,
    );
    expect(plain).toContain("Stopping");
    expect(plain).toContain('"app":"lowe…"');
  });

  test("an error that quotes control characters shows them as escapes, in its message, causes and stack", async () => {
    const file = join(place.folder, "errors.log");
    const descriptor = openSync(file, "w");
    const log = await openLog({ level: "info", descriptor, shared: false, readable: true, colors: false });
    const [clear, red] = [`${ESCAPE}[2J`, "\u009b31m"];
    log.error(new Error(`no entry ${clear}`, { cause: new Error(`named ${red}`) }));
    log.warn(`The database says ${clear}`);
    await log.close();
    const shown = readFileSync(file, "utf8");
    expect(shown).toContain("no entry \\u001b[2J");
    expect(shown).toContain("The database says \\u001b[2J");
    expect(shown).toContain("named \\u009b31m");
    expect(shown).not.toMatch(/[^\P{Cc}\n\t]/u);
  });

  test("a server keeps answering while the terminal is paused, and shows the whole log when it resumes", async () => {
    const { args, url, stop } = await prepare();
    const env = { ...process.env, DATABASE_URL: store.url ?? "", PRECAST_LOG_LEVEL: "info", TERM: "xterm" };
    const terminal = spawn("script", args, {
      cwd: place.folder,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let shown = "";
    terminal.stdout.on("data", (text) => {
      shown += String(text);
    });
    const exited = once(terminal, "exit");
    const asks = (id: string) => {
      const headers = { "X-Request-Id": id };
      return ask(url, `${FREE}?x=${"x".repeat(900)}`, { appKey: SHOP, headers });
    };
    await until("the server to answer", async () => (await asks("first").catch(() => null))?.status === 200);
    try {
      terminal.kill("SIGSTOP");
      // More than a terminal buffers while nobody reads it.
      for (let number = 0; number < 100; number++) expect((await asks(`request-${number}.`)).status).toBe(200);
    } finally {
      terminal.kill("SIGCONT");
      stop();
    }
    expect((await exited)[0]).toBe(0);
    expect([...shown.matchAll(/request-(\d+)\./g)].map(([, number]) => Number(number))).toEqual([...Array(100).keys()]);
  }, 60_000);
});
