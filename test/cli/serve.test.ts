/** `precast serve` as a process: its start, its shutdown, builds while it runs, and what `usage` and `status` report. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  holdPort,
  idOf,
  MAIN,
  openEmbeddedPlace,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  shopWith,
  shopWithout,
  smallApp,
} from "../support/cli.ts";
import { ask, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";
import { openWire } from "../support/wire.ts";

type Usage = {
  readonly total: number;
  readonly rows: readonly { app: string; day: string; shape: string; status: number; count: number }[];
};
type Status = {
  readonly apps: readonly {
    readonly key: string;
    readonly name: string;
    readonly types: readonly unknown[];
    readonly tree: { readonly built_at: string; readonly files: number; readonly changed: number } | null;
  }[];
};

const asShop = { appKey: SHOP };
const COUNTED = "/api/v1/posts?per_page=1";
const FREE = "/api/v1/posts";

let store: Store;
let place: Place;
let client: Client;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  client = new Client({ connectionString: store.url ?? "" });
  await client.connect();
  await place.import(shop());
  await place.build();
});
afterEach(async () => {
  await client.query("ROLLBACK");
  await place.quit();
});
afterAll(async () => {
  await place.close();
  await client.end();
  await store.close();
});

test("an admin port or host that cannot be used is refused, with --admin-port or --admin-host as the remedy", async () => {
  const { port, release } = await holdPort();
  for (const [options, fault, remedy] of [
    [`--admin-port ${port}`, `port ${port} is in use`, "Choose another with --admin-port"],
    [`--media-port ${port}`, `media port ${port} is in use`, "Choose another with --media-port"],
    ["--admin-port 0 --admin-host 192.0.2.1", "address 192.0.2.1", "Give one of its own addresses with --admin-host"],
    [
      "--admin-port 0 --admin-host nowhere.invalid",
      "name nowhere.invalid",
      "Give a name or address of this machine with --admin-host",
    ],
  ] as const) {
    const { code, stderr } = await place.run(`serve --port 0 --log-level error ${options}`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(new RegExp(`^[^\n]*${remedy}[^\n]*\n$`))]);
    expect(stderr).toContain(fault);
  }
  await release();
});

test("a role without the right to write counts is refused, and accepted after the GRANT that the refusal names", async () => {
  const role = `server_${Math.random().toString(36).slice(2)}`;
  await client.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA precast TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${role}`);
  const url = new URL(store.url ?? "");
  url.username = role;
  const asRole = { DATABASE_URL: url.href };
  const { code, stderr } = await place.run("serve --port 0", asRole);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/ lacks INSERT on precast\.usage, UPDATE on precast\.usage, /),
  ]);
  await client.query(/GRANT [^.]* ON precast\.usage, precast\.usage_batches TO \w+/.exec(stderr)?.[0] as string);
  const server = await place.serve("", asRole);
  expect((await server.get(COUNTED, asShop)).status).toBe(200);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: "" });
  await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

test.each([
  ["is a full disk", ":", "/dev/full"],
  ["is a pipe that is full and that nobody reads", "exec 3<>unread; head -c 65536 /dev/zero >&3", "unread"],
])("a server whose output %s answers, and exits with 0 on SIGTERM", async (_, prepare, output) => {
  const { port, release } = await holdPort();
  await release();
  const serve = `"$0" "$1" serve --port ${port} >${output} 2>&1`;
  const script = `rm -f unread end; mkfifo unread end; ${prepare}; ${serve} & read _ <end; kill -TERM $!; wait $!`;
  const ended = place.spawn("sh", ["-c", script, process.execPath, MAIN]);
  const answers = () => ask(`http://127.0.0.1:${port}`, FREE, asShop).then(({ status }) => status === 200);
  await until("it to answer", () => answers().catch(() => false));
  writeFileSync(join(place.folder, "end"), "now\n");
  expect((await ended).code).toBe(0);
});

describe("serve at its start", () => {
  test("prints its URL once it answers there", async () => {
    const server = await place.serve();
    expect(server.output().stdout).toContain(`Precast serves ${server.url}`);
    expect((await server.get(FREE, asShop)).status).toBe(200);
    expect((await server.stop()).stderr).toBe("");
  });

  test("with --json, prints only the URL, as JSON, on standard output", async () => {
    const server = await place.serve("--json");
    const { code, stdout } = await server.stop();
    expect([code, JSON.parse(stdout)]).toEqual([0, { url: server.url }]);
  });

  test.each(["postgres", "embedded"])("reports that the port is in use, and exits with 1 (%s)", async (engine) => {
    const held = await holdPort();
    const remote = engine === "postgres" ? openPlace({ DATABASE_URL: store.url ?? "" }) : await openEmbeddedPlace();
    try {
      const { code, stdout, stderr } = await remote.run(`serve --port ${held.port}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^[^\n]*port[^\n]*in use[^\n]*--port[^\n]*\n$/);
    } finally {
      await remote.close();
      await held.release();
    }
  });

  test("without a tree, answers live with the same bytes as the tree", async () => {
    const server = await place.serve("--out nowhere");
    await server.printed(/^No tree in nowhere: all requests are answered live, from the database\.$/m);
    const { status, headers, text } = await server.get(FREE, asShop);
    expect([status, headers["cache-status"]]).toEqual([200, "precast; fwd=miss"]);
    await server.stop();
    const withTree = await place.serve();
    const built = await withTree.get(FREE, asShop);
    expect([built.headers["cache-status"], built.text]).toEqual(["precast; hit", text]);
    await withTree.stop();
  });

  test("answers live when the state file of the tree is empty", async () => {
    await place.build("broken");
    writeFileSync(join(place.folder, "broken", ".precast", "x-53686f70.json"), "");
    const server = await place.serve("--out broken");
    const { status, headers } = await server.get(FREE, asShop);
    expect([status, headers["cache-status"]]).toEqual([200, "precast; fwd=miss"]);
    expect((await server.stop()).code).toBe(0);
  });

  test("starts without its database, says so, answers free requests, and a search with 503", async () => {
    const held = await holdPort();
    await held.release();
    const away = { DATABASE_URL: `postgres://nobody@127.0.0.1:${held.port}/none` };
    const server = await place.serve("", away);
    await server.printed(/The database does not answer/);
    expect((await server.get(FREE, asShop)).status).toBe(200);
    const { status, headers, json } = await server.get("/api/v1/posts/search?q=one", asShop);
    expect([status, json.error.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
    expect(headers["retry-after"]).toMatch(/^\d+$/);
    expect((await server.stop()).code).toBe(0);
    await forget();
  });
});

/** Has a server send the counts that are still in journals, then deletes all counts. */
async function forget(): Promise<void> {
  const server = await place.serve();
  await server.stop();
  await store.database.execute("DELETE FROM precast.usage");
}

describe("serve at its shutdown", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s ends the server with exit code 0", async (signal) => {
    const server = await place.serve();
    await server.get(FREE, asShop);
    await server.get(COUNTED, asShop);
    const { code, stderr } = await server.stop(signal);
    expect([code, stderr]).toEqual([0, ""]);
    await expect(server.get(FREE, asShop)).rejects.toThrow(/ECONNREFUSED/);
  });

  test("exits with 0 on SIGTERM right after it has printed its URL", async () => {
    for (let round = 0; round < 5; round++) expect((await (await place.serve()).stop()).code).toBe(0);
  });

  test("answers an open request first, and no further one on its connection", async () => {
    const server = await place.serve();
    const { connection, slow } = await holdRequest(server);
    const stopped = server.stop();
    await server.printed(/Stopping/);
    await client.query("COMMIT");
    expect(await slow).toMatch(/^HTTP\/1.1 200 /);
    expect(await connection.ask(FREE)).toBe("");
    expect((await stopped).code).toBe(0);
  });

  test("answers all pipelined requests, the last one with `Connection: close`", async () => {
    const server = await place.serve();
    const wire = await openWire(server.url);
    await client.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    wire.send(`GET ${COUNTED} HTTP/1.1\r\nHost: x\r\nX-App-Key: ${SHOP}\r\n\r\n`.repeat(3));
    await queryThatWaits();
    const stopped = server.stop();
    await server.printed(/Stopping/);
    await client.query("COMMIT");
    const answers = await wire.answers(3);
    expect(answers.map(({ status, headers }) => [status, headers.connection])).toEqual([
      [200, "keep-alive"],
      [200, "keep-alive"],
      [200, "close"],
    ]);
    expect((await stopped).code).toBe(0);
  });

  test("cuts off open requests when the time of --drain is over, and still exits with 0", async () => {
    const server = await place.serve("--drain 0");
    const { slow } = await holdRequest(server);
    const stopped = server.stop();
    expect(await slow).toBe("");
    await client.query("COMMIT");
    expect((await stopped).code).toBe(0);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "a second signal, %s, ends the server at once and cuts off open requests",
    async (signal) => {
      const server = await place.serve();
      const { slow } = await holdRequest(server);
      void server.stop("SIGTERM");
      await server.printed(/Stopping/);
      expect((await server.stop(signal)).code).toBe(null);
      expect(await slow).toBe("");
    },
  );

  test("of a terminal that is closed, which may send SIGHUP twice, answers an open request first", async () => {
    const server = await place.serve();
    const { slow } = await holdRequest(server);
    void server.stop("SIGHUP");
    await server.printed(/Stopping/);
    const stopped = server.stop("SIGHUP");
    await client.query("COMMIT");
    expect(await slow).toMatch(/^HTTP\/1.1 200 /);
    expect((await stopped).code).toBe(0);
  });

  test("closes an idle keep-alive connection", async () => {
    const server = await place.serve();
    const connection = await openConnection(server);
    expect(await connection.ask(FREE)).toMatch(/^HTTP\/1.1 200 /);
    await closesAtTheEnd(server, connection);
  });

  test("closes a connection that has sent no request", async () => {
    const server = await place.serve();
    const connection = await openConnection(server);
    await server.get(FREE, asShop);
    await closesAtTheEnd(server, connection);
  });

  /** If the connection were still open, its request would be answered and the exit delayed. */
  async function closesAtTheEnd(server: RunningServer, connection: Connection): Promise<void> {
    const stopped = server.stop();
    await server.printed(/Stopping/);
    expect(await connection.ask(FREE)).toBe("");
    expect((await stopped).code).toBe(0);
  }

  /** Sends a request whose query waits until the transaction of `client` ends. */
  async function holdRequest(server: RunningServer): Promise<{ connection: Connection; slow: Promise<string> }> {
    const connection = await openConnection(server);
    await client.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    const slow = connection.ask(COUNTED);
    await queryThatWaits();
    return { connection, slow };
  }

  /** Resolves when a query of the server waits for a lock. */
  async function queryThatWaits(): Promise<void> {
    const waits = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'precast' AND wait_event_type = 'Lock'
      AND datname = current_database()`;
    for (;;) if ((await client.query(waits)).rowCount) return;
  }

  type Connection = { readonly ask: (target: string) => Promise<string> };

  /** A keep-alive connection. `ask` gives the response, or an empty text when the server closes the connection. */
  async function openConnection(server: RunningServer): Promise<Connection> {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname).setEncoding("utf8");
    socket.on("error", () => {});
    await once(socket, "connect");
    let open = true;
    socket.once("close", () => {
      open = false;
    });
    return {
      ask: (target) =>
        new Promise((resolve) => {
          let text = "";
          const done = () => {
            socket.removeAllListeners("data");
            resolve(text);
          };
          if (!open) return done();
          socket.once("close", done);
          socket.on("data", (chunk: string) => {
            text += chunk;
            if (isWhole(text)) done();
          });
          socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nX-App-Key: ${SHOP}\r\n\r\n`);
        }),
    };
  }

  function isWhole(text: string): boolean {
    const [head = "", body = ""] = text.split("\r\n\r\n");
    const length = /content-length: (\d+)/i.exec(head)?.[1];
    return length !== undefined && Buffer.byteLength(body) >= Number(length);
  }
});

test("a running server answers from a new build at once", async () => {
  const server = await place.serve();
  const before = await server.get(FREE, asShop);
  expect(before.text).toContain('"One"');
  await place.import(shopWithout(1));
  expect((await server.get(FREE, asShop)).text).toBe(before.text);
  await place.build();
  const after = await server.get(FREE, asShop);
  expect(after.text).not.toContain('"One"');
  expect(after.headers.etag).not.toBe(before.headers.etag);
  expect((await server.get(`${FREE}/${idOf(1)}`, asShop)).status).toBe(404);

  await place.import(smallApp("late", ["A"]));
  await place.build();
  expect((await server.get("/api/v1/authors", { appKey: "late" })).json.meta.total).toBe(1);
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'late'");
  await place.build();
  expect((await server.get("/api/v1/authors", { appKey: "late" })).status).toBe(401);
  await place.import(shop());
  await place.build();
  expect((await server.get(FREE, asShop)).text).toBe(before.text);
  await server.stop();
});

describe("counts of requests", () => {
  const usage = (line = "") => place.json<Usage>(`usage ${line}`);
  const counts = ({ rows }: Usage) => {
    const sums = new Map<string, number>();
    for (const { app, shape, status, count } of rows) {
      const key = `${app} ${shape} ${status}`;
      sums.set(key, (sums.get(key) ?? 0) + count);
    }
    return Object.fromEntries(sums);
  };

  beforeAll(async () => {
    await place.import(smallApp("other", ["A"]));
    await place.build();
  });
  beforeEach(() => store.database.execute("DELETE FROM precast.usage"));

  test("are kept by app, day, shape and status, and do not include free requests", async () => {
    const server = await place.serve();
    const first = new Date().toISOString().slice(0, 10);
    await askSome(server);
    const last = new Date().toISOString().slice(0, 10);
    await server.stop();
    const report = await usage();
    expect(counts(report)).toEqual({
      "Shop list 200": 2,
      "Shop list 400": 2,
      "Shop populate 200": 1,
      "Shop populate 404": 1,
      "Shop search 200": 2,
      "other list 200": 1,
    });
    expect(report.total).toBe(9);
    for (const row of report.rows) {
      expect(Object.keys(row)).toEqual(["app", "day", "shape", "status", "saving", "count"]);
      expect([first, last]).toContain(row.day);
    }
  });

  test("tell which requests could have been free", async () => {
    const server = await place.serve();
    for (const target of ["/api/v1/posts?per_page=2", "/api/v1/posts?sort=price&page=1", COUNTED, FREE]) {
      await server.get(target, asShop);
    }
    await server.stop();
    const { rows } = await place.json<{ rows: { saving: string }[] }>("usage");
    expect(rows.map(({ saving }) => saving)).toEqual(["", "page=1", "per_page=2"]);
  });

  test("survive a restart and add up", async () => {
    for (let round = 1; round <= 2; round++) {
      const server = await place.serve();
      await askSome(server);
      await server.stop();
      expect((await usage()).total).toBe(9 * round);
    }
  });

  test("survive SIGKILL: after the next start, each answered request is counted once", async () => {
    const server = await place.serve();
    await askSome(server);
    await server.stop("SIGKILL");
    const next = await place.serve();
    while ((await usage()).total === 0) await next.get(FREE, asShop);
    expect((await usage()).total).toBe(9);
    await next.stop();
    await (await place.serve()).stop();
    expect((await usage()).total).toBe(9);
  });

  test("survive SIGKILL under load: all answered requests are counted, and no more than were sent", async () => {
    const server = await place.serve();
    const load = { sent: 0, answered: 0 };
    const clients = Array.from({ length: 8 }, () => askUntilGone(server, load));
    await Promise.all(clients);
    await (await place.serve()).stop();
    const { total } = await usage();
    expect(load.answered).toBeGreaterThan(100);
    expect(total).toBeGreaterThanOrEqual(load.answered);
    expect(total).toBeLessThanOrEqual(load.sent);
  });

  test("can be filtered by app and by day", async () => {
    await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count) VALUES
      ('Shop', '2026-01-01', 'list', 200, 1), ('Shop', '2026-01-02', 'list', 200, 10),
      ('Shop', '2026-01-02', 'search', 504, 100), ('other', '2026-01-03', 'populate', 404, 1000)`);
    expect((await usage()).total).toBe(1111);
    expect((await usage("--app Shop")).total).toBe(111);
    expect((await usage("--since 2026-01-02")).total).toBe(1110);
    expect((await usage("--until 2026-01-02")).total).toBe(111);
    expect(await usage("--since 2026-01-02 --until 2026-01-02 --app Shop")).toMatchObject({
      total: 110,
      rows: [
        { app: "Shop", day: "2026-01-02", shape: "list", status: 200, saving: "", count: 10 },
        { app: "Shop", day: "2026-01-02", shape: "search", status: 504, saving: "", count: 100 },
      ],
    });
    expect(await usage("--app Shop --since 2026-01-03")).toMatchObject({ total: 0, rows: [] });
  });

  /** Sends nine counted requests, and ten that are not counted. */
  async function askSome(server: RunningServer): Promise<void> {
    const entry = `/api/v1/posts/${idOf(1)}`;
    const counted = [
      COUNTED,
      "/api/v1/posts?sort=price&page=1",
      "/api/v1/posts?filter[nope]=1",
      "/api/v1/posts?per_page=0",
      `${entry}?populate=author_id`,
      `/api/v1/posts/${idOf(9)}?populate=author_id`,
      "/api/v1/posts/search?q=one",
      "/api/v1/posts/search?q=nothing",
    ];
    const free = [FREE, entry, "/api/v1/_schemas", "/api/v1/posts?page=0", "/api/v1/nope", "/api/v1/nope/x", "/nope"];
    for (const target of [...counted, ...free]) {
      const { headers } = await server.get(target, asShop);
      expect([target, headers["x-request-counted"] === "true"]).toEqual([target, counted.includes(target)]);
    }
    await server.get("/api/v1/authors?per_page=1", { appKey: "other" });
    await server.get("/api/v1/authors", { appKey: "other" });
    await server.get(COUNTED, { appKey: "stranger" });
    await server.get(COUNTED);
  }

  /** Sends one request after the other until one fails. The client that gets the 200th answer kills the server. */
  async function askUntilGone(server: RunningServer, load: { sent: number; answered: number }): Promise<void> {
    for (;;) {
      load.sent++;
      const got = await server.get("/api/v1/posts/search?q=one", asShop).catch(() => null);
      if (got === null) return;
      if (got.status === 200) load.answered++;
      if (load.answered === 200) await server.stop("SIGKILL");
    }
  }
});

describe("precast status", () => {
  const status = () => place.json<Status>("status");
  const shopOf = ({ apps }: Status) => apps.find(({ key }) => key === SHOP);

  test("shows apps, types and entries, and when each tree was built", async () => {
    const before = new Date().toISOString();
    await place.run("build --full");
    const found = shopOf(await status());
    expect(found).toEqual({
      key: SHOP,
      name: "Shop",
      types: [
        { slug: "posts", published: true, entries: 3, drafts: 1 },
        { slug: "authors", published: true, entries: 1, drafts: 1 },
        { slug: "secrets", published: false, entries: 1, drafts: 0 },
        { slug: "notes", published: true, entries: 0, drafts: 0 },
      ],
      tree: {
        built_at: expect.any(String),
        files: 46,
        bytes: expect.any(Number),
        sizes: expect.objectContaining({ posts: { files: 26, bytes: expect.any(Number) } }),
        changed: 0,
        removed: 0,
        redefined: [],
        current: true,
      },
    });
    const builtAt = found?.tree?.built_at ?? "";
    expect(before <= builtAt && builtAt <= new Date().toISOString()).toBe(true);
  });

  test("reports an entry that was changed since the build, until the next build", async () => {
    await place.build();
    const builtAt = shopOf(await status())?.tree?.built_at;
    await place.import(
      shopWith((posts) =>
        posts.map((post) => (post.id === idOf(2) ? { ...post, data: { ...post.data, price: 1 } } : post)),
      ),
    );
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 1, built_at: builtAt });
    expect((await place.run("status")).stdout).toMatch(/\b1 (entry|entries)\b.*since/);
    await place.build();
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0 });
    await place.import(shop());
  });

  test("does not report a tree as up to date when an entry was removed since the build", async () => {
    await place.build();
    await place.import(shopWith((posts) => posts.filter((post) => post.id !== idOf(2))));
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, removed: 1, redefined: [], current: false });
    expect((await place.run("status")).stdout).toMatch(/^Shop: .*, 1 entry removed since$/m);
    await place.import(shop());
    await place.build();
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, removed: 0, current: true });
  });

  test("names the types redefined since the build, and ignores changed entries of an unpublished type", async () => {
    await place.build();
    await client.query("UPDATE precast.content_types SET name = 'Articles' WHERE slug = 'posts'");
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, redefined: ["posts"], current: false });
    expect((await place.run("status")).stdout).toMatch(/^Shop: .*, posts redefined since$/m);
    await place.import(shop());
    await client.query(
      "UPDATE precast.entries SET updated_at = now() WHERE content_type_id IN (SELECT id FROM precast.content_types WHERE slug = 'secrets')",
    );
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, redefined: [], current: true });
    expect((await place.run("status")).stdout).toMatch(/^Shop: .*, up to date$/m);
  });

  test.each(["name = 'Store'", "media_base_url = 'https://media.example.com'"])(
    "names the app when its own settings have changed since the build: %s",
    async (change) => {
      await place.build();
      await client.query(`UPDATE precast.apps SET ${change} WHERE key = '${SHOP}'`);
      expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, redefined: [SHOP], current: false });
      await place.build();
      expect(shopOf(await status())?.tree).toMatchObject({ redefined: [], current: true });
      await place.import(shop());
      await place.build();
    },
  );

  test("of a tree whose build the database has no record of, names both another database and a backup as causes", async () => {
    await place.build();
    await client.query("TRUNCATE precast.trees");
    expect(shopOf(await status())?.tree).toMatchObject({ changed: null, removed: null, current: false });
    expect((await place.run("status")).stdout).toMatch(
      /^Shop: .*, built from another database, or from this one before it was restored from a backup$/m,
    );
    await place.build();
    expect(shopOf(await status())?.tree).toMatchObject({ changed: 0, removed: 0, current: true });
  });

  test("without --json, prints a line for each type and one for the tree", async () => {
    await place.build();
    const { stdout } = await place.run("status");
    expect(stdout).toMatch(/^Shop\tposts\tyes\t3\t1\b/m);
    expect(stdout).toMatch(/^Shop\tsecrets\tno\t1\t0\b/m);
    expect(stdout).toMatch(/^Shop\b.*built \d{4}-\d{2}-\d{2}T.*, 46 files, .*up to date$/m);
  });

  test("names a tree whose app was deleted, until the next build", async () => {
    await client.query("INSERT INTO precast.apps (key, name) VALUES ('Brief', 'Brief')");
    await place.build();
    await client.query("DELETE FROM precast.apps WHERE key = 'Brief'");
    expect(await place.json("status")).toMatchObject({ trees_without_app: ["Brief"] });
    expect((await place.run("status")).stdout).toMatch(/^Brief: built, but no app in the database has this key$/m);
    await place.build();
    expect(await place.json("status")).toMatchObject({ trees_without_app: [] });
  });

  test("says that the state of an app's last build cannot be read, until the next build", async () => {
    const state = join(place.folder, "out", ".precast", "x-53686f70.json");
    const before = readFileSync(state);
    writeFileSync(state, "{");
    expect((await place.run("status")).stdout).toMatch(/^Shop: has files, but .*: run `precast build`$/m);
    writeFileSync(state, before);
    expect((await place.run("status")).stdout).toMatch(/^Shop: built /m);
  });

  test("reports an app without a tree as not built", async () => {
    expect(shopOf(await place.json<Status>("status --out nowhere"))?.tree).toBeNull();
    expect((await place.run("status --out nowhere")).stdout).toMatch(/^Shop\b.*not built/m);
  });
});
