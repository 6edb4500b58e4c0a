/** `precast serve --workers`: several processes on one port, and what clients notice when some of them die. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants as system } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  holdPort,
  MAIN,
  NODE_ARGUMENTS,
  openEmbeddedPlace,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  shopWithout,
  UNREACHABLE_URL,
} from "../support/cli.ts";
import { readExposition } from "../support/exposition.ts";
import { childrenOf, NAMESPACE, NO_NAMESPACE, unlessLacking } from "../support/root.ts";
import { ask, ENGINES, type Engine, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";
import { openWire } from "../support/wire.ts";

const asShop = { appKey: SHOP };
const FREE = "/api/v1/posts";
const COUNTED = "/api/v1/posts?per_page=1";
const ROUNDS = 12;

function isThere(pid: number): boolean {
  return signal(pid, 0);
}

/** Whether there is such a process, which then gets the signal: one may end between being listed and being signalled. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

function printedBy(output: Readable): () => string {
  let printed = "";
  output.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  return () => printed;
}

/** A named pipe: the "pipes" of node:child_process are pairs of sockets. */
function openPipe(path: string): { readonly input: number; readonly output: number } {
  execFileSync("mkfifo", [path]);
  const output = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { input: openSync(path, constants.O_WRONLY), output };
}

describe.each(ENGINES)("workers on %s", (engine: Engine) => {
  let store: Store | null = null;
  let place: Place;

  beforeAll(async () => {
    store = engine === "postgres" ? await openStore("postgres") : null;
    place = store?.url ? openPlace({ DATABASE_URL: store.url }) : await openEmbeddedPlace();
    await place.import(shop());
    await place.build();
  });
  afterEach(() => place.quit());
  afterAll(async () => {
    await place.close();
    await store?.close();
  });

  const usage = async () => (await place.json<{ readonly total: number }>("usage")).total;

  test("give the same answers as one process, count each request once, and exit with 0", async () => {
    const alone = await place.serve();
    const free = await alone.get(FREE, asShop);
    const counted = await alone.get(COUNTED, asShop);
    expect((await alone.stop()).code).toBe(0);
    const before = await usage();

    const server = await place.serve("--workers 3");
    expect(childrenOf(server).length).toBe(3);
    const got = await Promise.all(Array.from({ length: 60 }, (_, at) => server.get(at % 2 ? FREE : COUNTED, asShop)));
    for (const [at, { status, text }] of got.entries()) {
      expect([status, text]).toEqual([200, at % 2 ? free.text : counted.text]);
    }
    const { code, stdout, stderr } = await server.stop();
    expect([code, stderr, stdout.match(/Precast serves/g)?.length]).toEqual([0, "", 1]);
    await expect(server.get(FREE, asShop)).rejects.toThrow(/ECONNREFUSED/);
    expect((await usage()) - before).toBe(30);
  });

  test("a killed worker loses only its open requests and is replaced", async () => {
    const server = await place.serve("--workers 3");
    const expected = (await server.get(FREE, asShop)).text;
    const workers = childrenOf(server);
    const load = startLoad(server, 24);
    await until("some load", () => load.done() > 100);
    const [victim = 0] = workers;
    process.kill(victim, "SIGKILL");
    await until("its end", () => !childrenOf(server).includes(victim));
    const gone = performance.now();
    const during = load.done();
    await until("its replacement", () => childrenOf(server).length === 3);
    await until("more load", () => load.done() > during + 300);
    const texts = await load.stop();
    // Only requests sent before the worker was gone may fail, and each client has at most one open request.
    expect(load.failures().filter((asked) => asked > gone)).toEqual([]);
    expect(load.failures().length).toBeLessThanOrEqual(24);
    expect([...texts]).toEqual([expected]);
    const now = childrenOf(server);
    expect(now).not.toContain(victim);
    expect(now.filter((pid) => workers.includes(pid)).length).toBe(2);
    const { code, stderr } = await server.stop();
    expect(code).toBe(0);
    expect(JSON.parse(stderr)).toMatchObject({ msg: `Server process ${victim} ended (SIGKILL) and is replaced.` });
  });

  test("workers that are all killed at once are replaced on the same port", async () => {
    const server = await place.serve("--workers 2");
    for (const pid of childrenOf(server)) process.kill(pid, "SIGKILL");
    await until("an answer", async () => (await server.get(COUNTED, asShop).catch(() => null))?.status === 200);
    await until("two workers", () => childrenOf(server).length === 2);
    expect((await server.stop()).code).toBe(0);
  });

  test("requests for metrics during the start do not make the server print its URL before it answers", async () => {
    const held = [await holdPort(), await holdPort()];
    const [port, admin] = held.map(({ port }) => port);
    for (const { release } of held) await release();
    const server = place.start(`serve --workers 2 --port ${port} --admin-port ${admin}`);
    // Repeated, so that one arrives as soon as the admin port answers.
    const asking = setInterval(() => void fetch(`http://127.0.0.1:${admin}/metrics`).catch(() => {}), 10);
    await server.printed(/Precast serves/).finally(() => clearInterval(asking));
    expect(server.output().stdout).toContain(`Precast serves http://127.0.0.1:${port}\n`);
    expect((await ask(`http://127.0.0.1:${port}`, FREE, asShop)).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });

  test("metrics are the sums of the workers that run", async () => {
    const server = await place.serve("--workers 2 --admin-port 0");
    await server.printed(/Health and metrics: \S+\n/);
    const [, admin] = /Health and metrics: (\S+)/.exec(server.output().stdout) ?? [];
    await Promise.all(Array.from({ length: 40 }, () => server.get(FREE, asShop)));
    const families = readExposition(await (await fetch(`${admin}/metrics`)).text());
    const samples = families.get("precast_requests_total")?.samples ?? [];
    expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(40);
    expect((await server.stop()).code).toBe(0);
  });

  test("no log line of a worker is lost or broken when the reader is slow", async () => {
    const args = [MAIN, "serve", "--workers", "3", "--port", "0", "--json", "--quiet", "--log-level", "info"];
    const env = { PATH: process.env.PATH ?? "", ...(store?.url ? { DATABASE_URL: store.url } : {}) };
    const log = openPipe(join(place.folder, `log-${engine}`));
    const server = spawn(process.execPath, args, { cwd: place.folder, env, stdio: ["ignore", "pipe", log.input] });
    closeSync(log.input);
    const [told] = (await once(server.stdout as Readable, "data")) as [Buffer];
    const { url } = JSON.parse(String(told)) as { readonly url: string };
    // Nobody reads yet, and a pipe holds only some hundred lines.
    for (let round = 0; round < ROUNDS; round++)
      await Promise.all(Array.from({ length: 100 }, () => ask(url, FREE, asShop)));
    const text = readText(new Socket({ fd: log.output }));
    server.kill();
    const lines = (await text).split("\n").slice(0, -1);
    const asked = lines.map((line) => JSON.parse(line) as { readonly target?: string; readonly pid: number });
    expect(asked.filter(({ target }) => target === FREE).length).toBe(100 * ROUNDS);
    expect(new Set(asked.map(({ pid }) => pid)).size).toBeGreaterThan(1);
  });

  test("a build of serve --watch shows in the answers of all workers", async () => {
    const server = await place.serve("--workers 2 --watch");
    const { text } = await server.get(FREE, asShop);
    await place.import(shopWithout(1));
    const all = () => Promise.all(Array.from({ length: 10 }, () => server.get(FREE, asShop)));
    await until("the change", async () => (await all()).every((got) => got.status === 200 && got.text !== text));
    await place.import(shop());
    await until("what was before", async () => (await all()).every((got) => got.text === text));
    expect((await server.stop()).code).toBe(0);
  });

  test("a port in use is reported once, and the server exits with 1", async () => {
    const held = await holdPort();
    try {
      const { code, stdout, stderr } = await place.run(`serve --workers 3 --port ${held.port}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^[^\n]*port[^\n]*in use[^\n]*--port[^\n]*\n$/);
    } finally {
      await held.release();
    }
  });

  /** Starts clients that each send one request after the other, on connections of their own. */
  function startLoad(server: RunningServer, clients: number) {
    const texts = new Set<string>();
    let done = 0;
    /** When each failed request was sent. */
    const failures: number[] = [];
    let stopped = false;
    const ends = Array.from({ length: clients }, async () => {
      while (!stopped) {
        const asked = performance.now();
        const got = await server.get(FREE, asShop).catch(() => null);
        if (got === null) failures.push(asked);
        else {
          done++;
          texts.add(got.text);
        }
      }
    });
    const stop = async () => {
      stopped = true;
      await Promise.all(ends);
      return texts;
    };
    return { done: () => done, failures: () => failures, stop };
  }
});

describe("workers and signals", () => {
  let place: Place;
  beforeAll(async () => {
    place = await openEmbeddedPlace();
    await place.import(shop());
    await place.build();
  });
  afterEach(() => place.quit());
  afterAll(() => place.close());

  test("no request is lost when a service manager signals every process", async () => {
    const server = await place.serve("--workers 2");
    const wires = await Promise.all(Array.from({ length: 8 }, () => openWire(server.url)));
    for (const wire of wires) wire.send(`GET ${COUNTED} HTTP/1.1\r\nHost: x\r\nX-App-Key: ${SHOP}\r\n\r\n`.repeat(20));
    await Promise.all(wires.map((wire) => wire.answers(1)));
    for (const name of ["SIGINT", "SIGTERM", "SIGTERM"] as const) {
      for (const pid of childrenOf(server)) signal(pid, name);
    }
    const stopped = server.stop();
    const answers = await Promise.all(wires.map((wire) => wire.answers(20)));
    expect(answers.flat().every(({ status }) => status === 200)).toBe(true);
    expect((await stopped).code).toBe(0);
  });

  test("SIGINT to every process during the start ends the server, and no worker is replaced", async () => {
    const held = join(place.folder, "held");
    writeFileSync(held, "");
    const hold = join(place.folder, "hold.cjs");
    writeFileSync(
      hold,
      `if (require('node:cluster').isWorker && require('node:fs').existsSync('${held}'))
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`,
    );
    const server = place.start("serve --workers 3 --port 0", { NODE_OPTIONS: `--require ${hold}` });
    await until("three workers", () => childrenOf(server).length === 3);
    // A replacement would come up now, and the server would print its URL.
    rmSync(held);
    for (const pid of [server.pid, ...childrenOf(server)]) signal(pid, "SIGINT");
    expect(await server.end()).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test("a second signal ends the server and its workers at once", async () => {
    const server = await place.serve("--workers 2 --drain 3600");
    const workers = childrenOf(server);
    // Suspended workers cannot end by themselves, so the server waits for them.
    for (const pid of workers) process.kill(pid, "SIGSTOP");
    const stopped = server.stop("SIGTERM");
    await server.printed(/Stopping/);
    process.kill(server.pid, "SIGINT");
    await until("the end of the server", () => !workers.some((pid) => childrenOf(server).includes(pid)));
    for (const pid of workers) process.kill(pid, "SIGCONT");
    expect((await stopped).code).toBe(null);
    await until("their end", () => !workers.some(isThere));
  });

  // The system spares the first process of a PID namespace what signals do by default.
  test.skipIf(NO_NAMESPACE !== null)(
    unlessLacking(NO_NAMESPACE, "a second signal ends the server also where it is the first process of a container"),
    async () => {
      const [program, ...words] = [...NAMESPACE, "--kill-child"];
      const serve = ["serve", "--database-url", UNREACHABLE_URL, "--workers", "2", "--drain", "3600", "--port", "0"];
      const namespace = spawn(program, [...words, process.execPath, ...NODE_ARGUMENTS, ...serve], {
        cwd: place.folder,
        stdio: ["ignore", "pipe", "ignore"],
      });
      onTestFinished(() => void namespace.kill("SIGKILL"));
      const ended = once(namespace, "exit");
      const printed = printedBy(namespace.stdout);
      await until("its URL", () => printed().includes("Precast serves"));
      const [server = 0] = childrenOf({ pid: namespace.pid as number });
      for (const pid of childrenOf({ pid: server })) process.kill(pid, "SIGSTOP");
      process.kill(server, "SIGTERM");
      await until("it to stop", () => printed().includes("Stopping"));
      process.kill(server, "SIGTERM");
      expect(await ended).toEqual([128 + system.signals.SIGTERM, null]);
    },
  );

  test("workers end when their server is killed", async () => {
    const server = await place.serve("--workers 2");
    const workers = childrenOf(server);
    expect(workers.length).toBe(2);
    await server.stop("SIGKILL");
    await until("their end", () => !workers.some(isThere));
  });

  test("workers end without an error when their server is killed before they have stopped", async () => {
    const hold = join(place.folder, "until-orphaned.cjs");
    writeFileSync(
      hold,
      `const { ppid } = process;
      if (require('node:cluster').isWorker) process.on('SIGTERM', () => {
        while (process.ppid === ppid) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      });`,
    );
    const server = await place.serve("--workers 2", { NODE_OPTIONS: `--require ${hold}` });
    const workers = childrenOf(server);
    for (const pid of workers) process.kill(pid, "SIGTERM");
    expect((await server.stop("SIGKILL")).stderr).toBe("");
    await until("their end", () => !workers.some(isThere));
  });

  test("a worker that alone gets SIGTERM is replaced", async () => {
    const server = await place.serve("--workers 2");
    const [first = 0, second] = childrenOf(server);
    process.kill(first, "SIGTERM");
    await until("another", () => childrenOf(server).length === 2 && !childrenOf(server).includes(first));
    expect(childrenOf(server)).toContain(second);
    expect((await server.stop()).code).toBe(0);
  });

  test("a server whose workers all exit during the start gives up, says so, and exits with 1", async () => {
    const crash = join(place.folder, "crash.cjs");
    writeFileSync(crash, "if (require('node:cluster').isWorker) process.exit(7);");
    const { code, stdout, stderr } = await place.run("serve --workers 2", { NODE_OPTIONS: `--require ${crash}` });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.trimEnd().split("\n").at(-1)).toMatch(/^No server process could be started: .*exit code 7.*\.$/);
    expect(existsSync(join(place.folder, ".precast", "database.lock"))).toBe(false);
  });

  describe("while the system starts no further process", () => {
    const node = () => join(place.folder, "node");
    beforeEach(() => symlinkSync(process.execPath, node()));
    afterEach(() => rmSync(node(), { force: true }));

    /** A server of which one worker has been killed, and the first try to replace it has failed. */
    async function serveWithout(): Promise<RunningServer> {
      const preload = join(place.folder, "preload.cjs");
      writeFileSync(preload, `process.execPath = ${JSON.stringify(node())};`);
      const server = await place.serve("--workers 2", { NODE_OPTIONS: `--require ${preload}` });
      rmSync(node());
      process.kill(childrenOf(server)[0] ?? 0, "SIGKILL");
      await server.printed(/A server process could not be started \(spawn \S+ ENOENT\)/);
      return server;
    }

    test("a killed worker is replaced as soon as the system does again", async () => {
      const server = await serveWithout();
      symlinkSync(process.execPath, node());
      await until("its replacement", () => childrenOf(server).length === 2);
      expect((await server.stop()).code).toBe(0);
    });

    test("a server that has lost a worker stops as usual", async () => {
      const server = await serveWithout();
      expect((await server.get(COUNTED, asShop)).status).toBe(200);
      expect((await server.stop()).code).toBe(0);
    });
  });

  test("--workers 0 is refused", async () => {
    const { code, stderr } = await place.run("serve --workers 0");
    expect([code, stderr]).toEqual([1, "--workers must be a whole number from 1 to 256\n"]);
  });
});
