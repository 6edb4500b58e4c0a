/** The ledger counts every counted request once, at any load, while servers, the database or the disk fail. */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CountedRequest, JournalLost, openJournal } from "../../server/ledger/journal.ts";
import { type Ledger, type LedgerOptions, openLedger } from "../../server/ledger/ledger.ts";
import { type Query, sql } from "../../shared/sql/query.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { SHOP } from "../support/posts.ts";
import { rowsOf } from "../support/replica-set.ts";
import { mountDisk, NO_DISK, unlessLacking, unmountDisk } from "../support/root.ts";
import { openApiServer, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const DAY = "2026-01-20";
const now = () => new Date(`${DAY}T23:59:59.999Z`);

type Options = Partial<LedgerOptions> & { readonly errors?: unknown[] };

function open(store: Store, folder: string, { errors = [], ...options }: Options = {}): Promise<Ledger> {
  return openLedger(store.database, {
    folder: join(store.folder, folder),
    now,
    onError: (error) => void errors.push(error),
    ...options,
  });
}

function count(app: string, shape = "list", status = 200): CountedRequest {
  return { app, shape, status, saving: "" };
}

function line(app: string, more = {}): string {
  return `${JSON.stringify({ ...count(app), day: DAY, count: 1, ...more })}\n`;
}

/** The path of a journal that another process has left in its own folder, which it makes. */
async function strangersJournal(folder: string): Promise<string> {
  await mkdir(join(folder, "1-01234567"), { recursive: true });
  return join(folder, "1-01234567", `${randomUUID()}.ndjson`);
}

/** Paths of the journals in the ledger's folder, within that. */
async function journalsIn(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ndjson"));
}

async function usage(store: Store): Promise<unknown[]> {
  return store.database.query(
    sql(
      "SELECT app_key, day::text, shape, status::text, count::text FROM precast.usage ORDER BY app_key, shape, status",
    ),
  );
}

/** The number of batches that wait for a lock in the database. */
async function batchesThatWait(store: Store): Promise<number> {
  const waiting =
    "SELECT 1::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%precast.usage_batches%'";
  return (await store.database.query(sql(waiting))).length;
}

describe("the ledger", () => {
  let server: TestServer;
  let store: Store;

  beforeAll(async () => {
    server = await startPostgres();
    store = await openStore("postgres", {}, server.url("postgres"));
  });
  beforeEach(() => store.database.execute("DELETE FROM precast.usage; DELETE FROM precast.usage_batches"));
  afterAll(async () => {
    await store.close();
    await server.remove();
  });

  test("adds up 5,000 concurrent counts by app, shape and status, and accepts none after it is closed", async () => {
    const ledger = await open(store, "crowd");
    const counts = Array.from({ length: 5_000 }, (_, index) =>
      ledger.count({
        app: index % 5 === 0 ? "a" : "b",
        shape: "list",
        status: index % 2 === 0 ? 200 : 400,
        saving: "",
      }),
    );
    // It is told to close while these are being written.
    await ledger.close();
    expect(new Set(await Promise.all(counts))).toEqual(new Set([true]));
    // A count after the end belongs to a request whose connection was closed: nobody receives its answer.
    expect(await ledger.count({ app: "a", shape: "list", status: 200, saving: "" })).toBe(false);
    expect(ledger.backlog()).toEqual({ requests: 0, seconds: 0 });
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "500"],
      ["a", DAY, "list", "400", "500"],
      ["b", DAY, "list", "200", "2000"],
      ["b", DAY, "list", "400", "2000"],
    ]);
    expect(await readdir(join(store.folder, "crowd"))).toEqual([]);
  });

  test("keeps counts on disk while the database is down, and sends them once after the next start", async () => {
    const ledger = await open(store, "outage");
    await server.stop("immediate");
    expect(await ledger.count(count("a", "search", 503))).toBe(true);
    expect(ledger.backlog()).toMatchObject({ requests: 1 });
    await ledger.close();
    expect(await readdir(join(store.folder, "outage"))).toHaveLength(1);

    await server.start();
    for (const _ of ["first", "second"]) await (await open(store, "outage")).close();
    expect(await usage(store)).toEqual([["a", DAY, "search", "503", "1"]]);
    expect(await readdir(join(store.folder, "outage"))).toEqual([]);
  });

  test.each([
    ["may only be read", allowWrites, /read-only transaction/],
    ["lacks the table", allowTable, /relation "precast.usage" does not exist/],
  ])(
    "keeps counts on disk while the database %s, reports the fault once, and sends each count once afterwards",
    async (_, allow, why) => {
      const errors: unknown[] = [];
      const folder = randomUUID();
      let ended = 0;
      const query = (asked: Query) => store.database.query(asked).finally(() => ended++);
      const ledger = await open({ ...store, database: { ...store.database, query } }, folder, { errors });
      await allow(false);
      store.database.renewConnections();
      for (const app of ["a", "b", "a"]) {
        expect(await ledger.count(count(app))).toBe(true);
        const before = ended;
        // One query is the batch; a removal of old batches may come before it.
        await until("the database to refuse twice more", () => ended >= before + 2);
      }
      expect(ledger.backlog()).toMatchObject({ requests: 3 });
      expect(errors.map(String)).toEqual([
        expect.stringMatching(/The counts in .* stay there and are sent again later/),
      ]);
      expect(errors.map(String)).toEqual([expect.stringMatching(why)]);
      // One journal was refused; the other has what was counted since.
      expect(await journalsIn(join(store.folder, folder))).toHaveLength(2);

      await allow(true);
      await until("all to be sent", () => ledger.backlog().requests === 0);
      await ledger.close();
      expect(await usage(store)).toEqual([
        ["a", DAY, "list", "200", "2"],
        ["b", DAY, "list", "200", "1"],
      ]);
      expect(errors).toHaveLength(1);
      expect(await readdir(join(store.folder, folder))).toEqual([]);
    },
  );

  const nameOfStore = () => new URL(store.url as string).pathname.slice(1);

  /** Applies to connections that are opened from now on. */
  async function allowWrites(allowed: boolean): Promise<void> {
    const setting = `default_transaction_read_only = ${!allowed}`;
    await rowsOf(server.url("postgres"), `ALTER DATABASE "${nameOfStore()}" SET ${setting}`);
  }

  async function allowTable(allowed: boolean): Promise<void> {
    const [from, to] = allowed ? ["put_away", "usage"] : ["usage", "put_away"];
    await rowsOf(store.url as string, `ALTER TABLE precast.${from} RENAME TO ${to}`);
  }

  test("sends the journals of a dead process when it starts, and those outside the folders of processes", async () => {
    const folder = join(store.folder, "orphan");
    await writeFile(await strangersJournal(folder), line("a"));
    for (const name of ["0123456789abcdef-1-01234567.", ""])
      await writeFile(join(folder, `${name}${randomUUID()}.ndjson`), line("b"));
    const ledger = await open(store, "orphan");
    await until("the journals to be sent", async () => (await journalsIn(folder)).length === 0);
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "1"],
      ["b", DAY, "list", "200", "2"],
    ]);
    await ledger.close();
    expect(await readdir(folder)).toEqual([]);
  });

  test("does not take the journals of a live server", async () => {
    await server.stop("immediate");
    const stranger = await open(store, "neighbours");
    await stranger.count(count("a"));
    const before = await journalsIn(join(store.folder, "neighbours"));
    const ledger = await open(store, "neighbours");
    expect(ledger.backlog().requests).toBe(0);
    await ledger.close();
    expect(await journalsIn(join(store.folder, "neighbours"))).toEqual(before);
    await server.start();
    await stranger.close();
    expect(await usage(store)).toEqual([["a", DAY, "list", "200", "1"]]);
  });

  test("takes the journals of a process in another container soon after that one's lock has expired", async () => {
    const folder = join(store.folder, "container");
    const journal = await strangersJournal(folder);
    await writeFile(journal, line("a"));
    const lock = join(dirname(journal), "lock");
    await writeFile(lock, "1 2 elsewhere\n");
    const ledger = await open(store, "container", { heartbeatInterval: 100 });
    expect(await journalsIn(folder)).toEqual([relative(folder, journal)]);
    const expired = new Date(Date.now() - 60_000);
    await utimes(lock, expired, expired);
    await until("the journal to be sent", async () => (await usage(store)).length === 1);
    await ledger.close();
    expect(await readdir(folder)).toEqual([]);
  });

  test("loses no count and repeats none when other servers take its journals because it seemed dead", async () => {
    const folder = join(store.folder, "silent");
    const errors: unknown[] = [];
    const silent = await open(store, "silent", { heartbeatInterval: 3_600_000, errors });
    const answers = { yes: 0, no: 0 };
    let over = false;
    /** Removes the locks, as if their processes had been dead for long, and starts a server. */
    async function steal(): Promise<void> {
      while (!over) {
        for (const file of await readdir(folder, { recursive: true }))
          if (basename(file) === "lock") await rm(join(folder, file), { force: true });
        await (await open(store, "silent")).close();
      }
    }
    const stealing = steal();
    for (let turn = 0; errors.length < 5; turn++) {
      expect(turn).toBeLessThan(100_000);
      if (await silent.count(count("a"))) answers.yes++;
      else answers.no++;
    }
    over = true;
    await stealing;
    await silent.close();
    await (await open(store, "silent")).close();
    // A count fails only when its journal is taken at the very moment when it is written.
    expect(answers.no).toBeLessThan(5);
    const [row] = (await usage(store)) as string[][];
    const counted = Number(row?.[4]);
    expect(counted).toBeGreaterThanOrEqual(answers.yes);
    expect(counted).toBeLessThanOrEqual(answers.yes + answers.no);
    expect(await readdir(folder)).toEqual([]);
  });

  test("counts the next request although another server has taken its journal, and reports that once", async () => {
    const folder = join(store.folder, "taken");
    const errors: unknown[] = [];
    const ledger = await open(store, "taken", { errors });
    expect(await ledger.count(count("a"))).toBe(true);
    const [file = ""] = await journalsIn(folder);
    await rename(join(folder, file), await strangersJournal(folder));
    expect(await ledger.count(count("b"))).toBe(true);
    expect(errors.map(String)).toEqual([expect.stringMatching(/^JournalLost: .* can no longer be used as a journal/)]);
    await (await open(store, "taken")).close();
    await until("both to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect(await readdir(folder)).toEqual([]);
  });

  test("loses no count when it takes back one of its own journals from a server that has died", async () => {
    const folder = join(store.folder, "returned");
    const ledger = await open(store, "returned", { heartbeatInterval: 10 });
    await store.database.transaction("write", async (session) => {
      await session.query(sql("LOCK TABLE precast.usage IN EXCLUSIVE MODE"));
      expect(await ledger.count(count("a"))).toBe(true);
      const [file = ""] = await journalsIn(folder);
      // A server that no longer exists has taken the journal.
      await rename(join(folder, file), join(dirname(await strangersJournal(folder)), basename(file)));
      await until("it to be back", async () => (await journalsIn(folder)).includes(file));
      await until("the batch to wait", async () => (await batchesThatWait(store)) === 1);
      expect(await ledger.count(count("b"))).toBe(true);
    });
    await ledger.close();
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "1"],
      ["b", DAY, "list", "200", "1"],
    ]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("sets a journal with broken lines aside, counts its valid lines, and reports it once", async () => {
    const folder = join(store.folder, "broken");
    const broken = await strangersJournal(folder);
    await writeFile(
      broken,
      `${line("a")}{"app":"a","day\n${line("a", { count: 2 })}\0\0\n${line("a", { status: "200" })}${line("a", { day: "0000-01-20" })}${line("a").slice(0, -9)}`,
    );
    await writeFile(await strangersJournal(folder), line("b"));
    const errors: unknown[] = [];
    const ledger = await open(store, "broken", { heartbeatInterval: 10, errors });
    await until("both to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "3"],
      ["b", DAY, "list", "200", "1"],
    ]);
    expect(await readdir(folder)).toEqual([`${basename(broken)}.broken`]);
    expect(errors.map(String)).toEqual([expect.stringMatching(/^Error: 4 lines of .*\.broken cannot be read/)]);
  });

  test("sends other batches while the database refuses one, and sends that one once it is accepted", async () => {
    await store.database.execute("ALTER TABLE precast.usage ADD CONSTRAINT picky CHECK (app_key <> 'bad')");
    const folder = join(store.folder, "refused");
    await writeFile(await strangersJournal(folder), line("bad"));
    const errors: unknown[] = [];
    const ledger = await open(store, "refused", { heartbeatInterval: 10, errors });
    await until("the batch to be refused", () => errors.length > 0);
    await ledger.count(count("good"));
    await until("the other to be sent", async () => (await usage(store)).length === 1);
    await store.database.execute("ALTER TABLE precast.usage DROP CONSTRAINT picky");
    await until("both to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect(errors.map(String)).toEqual([expect.stringMatching(/cannot be sent .* are sent again later: .*picky/)]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("reports once that the database accepts no counts, and once more when that happens again", async () => {
    const errors: unknown[] = [];
    const ledger = await open(store, "twice", { errors, heartbeatInterval: 10 });
    for (const times of [1, 2]) {
      await store.database.execute("ALTER TABLE precast.usage RENAME TO hidden");
      await ledger.count(count("a"));
      await until("a report", () => errors.length === times);
      await store.database.execute("ALTER TABLE precast.hidden RENAME TO usage");
      await until("the count to be sent", () => ledger.backlog().requests === 0);
    }
    await ledger.close();
    expect(errors.map(String)).toEqual(Array(2).fill(expect.stringContaining("twice cannot be sent to the database")));
    expect(await usage(store)).toEqual([["a", DAY, "list", "200", "2"]]);
  });

  test("starts despite an unreadable journal, adopts those that it can, and reports each failure once", async () => {
    const folder = join(store.folder, "untakable");
    const errors: unknown[] = [];
    await makeUnreadable(await strangersJournal(folder));
    const ledger = await open(store, "untakable", { heartbeatInterval: 10, errors });
    await ledger.count(count("a"));
    const [own = ""] = await journalsIn(folder);
    const untakable = await strangersJournal(folder);
    // A file cannot be renamed to the name of a folder, so this journal cannot be adopted.
    await mkdir(join(folder, dirname(own), basename(untakable)));
    await writeFile(untakable, line("b"));
    await writeFile(await strangersJournal(folder), line("c"));
    await until("the other to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect((await usage(store)).map((row) => (row as string[])[0])).toEqual(["a", "c"]);
    expect(errors.map(String).sort()).toEqual([
      expect.stringMatching(/EISDIR.*rename/),
      expect.stringMatching(/ELOOP.*open/),
      expect.stringMatching(/cannot be sent.*ELOOP/),
    ]);
  });

  /** Makes a symbolic link to itself, wherever it is moved: reading it fails with ELOOP. */
  async function makeUnreadable(path: string): Promise<void> {
    await symlink(basename(path), path);
  }

  test("does not fail when two servers add to the same rows in opposite orders", async () => {
    const errors: unknown[] = [];
    const apps = ["a", "b", "c", "d", "e"];
    const first = await open(store, "both", { errors });
    await Promise.all(apps.map((app) => first.count(count(app))));
    await first.close();

    const ledgers = await Promise.all([open(store, "both", { errors }), open(store, "both", { errors })]);
    await store.database.transaction("write", async (session) => {
      await session.query(sql("UPDATE precast.usage SET count = count WHERE app_key = 'c'"));
      const orders = [apps, [...apps].reverse()];
      await Promise.all(
        ledgers.flatMap((ledger, index) => (orders[index] ?? []).map((app) => ledger.count(count(app)))),
      );
      await until("both to wait", async () => (await batchesThatWait(store)) === 2);
    });
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    expect(errors).toEqual([]);
    expect((await usage(store)).map((row) => (row as string[])[4])).toEqual(["3", "3", "3", "3", "3"]);
  });

  test("sends counts that arrive while a batch takes longer than the interval between batches", async () => {
    const ledger = await open(store, "slow");
    await store.database.transaction("write", async (session) => {
      await session.query(sql("LOCK TABLE precast.usage_batches IN EXCLUSIVE MODE"));
      await ledger.count(count("a"));
      await until("the batch to wait", async () => (await batchesThatWait(store)) === 1);
      await ledger.count(count("b"));
      // The next batch is due a second later, and has to become due while the first still waits.
      await sleep(1_200);
    });
    await until("both to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
  });

  test("forgets batches a day after their journals were removed, and no others", async () => {
    await store.database.execute(`INSERT INTO precast.usage_batches (id, removed_at) VALUES
      ('${randomUUID()}', now() - interval '25 hours'), ('${randomUUID()}', now() - interval '23 hours'), ('${randomUUID()}', NULL)`);
    const left = () => store.database.query(sql("SELECT id::text FROM precast.usage_batches"));
    const ledger = await open(store, "forgetful", { heartbeatInterval: 10 });
    await until("the old one to be forgotten", async () => (await left()).length === 2);
    for (const turn of [1, 2, 3]) {
      await ledger.count(count("a"));
      await until("the batch to be sent", async () => (await left()).length === 2 + turn);
      if (turn !== 2) continue;
      // The first batch is marked by now. If later ones marked it again, it would never be a day old.
      await store.database.execute(
        "UPDATE precast.usage_batches SET removed_at = now() - interval '2 hours' WHERE removed_at > now() - interval '1 hour'",
      );
    }
    await ledger.close();
    const removed = sql(
      "SELECT count(*)::text FROM precast.usage_batches WHERE removed_at > now() - interval '1 hour'",
    );
    expect(await store.database.query(removed)).toEqual([["1"]]);
  });

  test("begins another journal when one is full while the database is down, and loses no count", async () => {
    const ledger = await open(store, "full");
    await server.stop("immediate");
    const countAll = async () => {
      const counts = Array.from({ length: 2_500 }, (_, index) => ledger.count(count("a", `${index}`.padEnd(500, "x"))));
      expect(new Set(await Promise.all(counts))).toEqual(new Set([true]));
    };
    await countAll();
    await countAll();
    expect(ledger.backlog()).toMatchObject({ requests: 5_000 });
    expect(await journalsIn(join(store.folder, "full"))).toHaveLength(2);
    await ledger.close();

    await server.start();
    await (await open(store, "full")).close();
    const sums = (await usage(store)).map((row) => (row as string[])[4]);
    expect(sums).toEqual(Array(2_500).fill("2"));
  });

  test("refuses the counts of a write during which another server takes the journal", async () => {
    const path = await strangersJournal(join(store.folder, "renamed"));
    const journal = await openJournal(path, "process");
    await journal.append(line("a"));
    await rename(path, `${path}-taken`);
    await expect(journal.append(line("b"))).rejects.toThrow(JournalLost);
    await journal.close();
    expect(await readFile(`${path}-taken`, "utf8")).toBe(line("a"));
  });

  test.each(["process", "power"] as const)(
    "counts nothing while its folder is missing, and resumes when the folder is back (durability: %s)",
    async (durability) => {
      const folder = join(store.folder, `lost-${durability}`);
      const errors: unknown[] = [];
      const ledger = await open(store, `lost-${durability}`, { durability, errors });
      await rename(folder, `${folder}-aside`);
      await writeFile(folder, "");
      expect([await ledger.count(count("a")), await ledger.count(count("a"))]).toEqual([false, false]);
      const told = `Error: ${folder} cannot store counts, and counted requests are answered with 503 until it can: `;
      expect(errors.map(String)).toEqual([expect.stringContaining(told)]);
      await rm(folder);
      await rename(`${folder}-aside`, folder);
      expect(await ledger.count(count("a"))).toBe(true);
      await ledger.close();
      expect(await usage(store)).toEqual([["a", DAY, "list", "200", "1"]]);
    },
  );

  test.skipIf(NO_DISK !== null)(
    unlessLacking(NO_DISK, "counts no request that it refuses on a full disk, and counts again when there is room"),
    async () => {
      const disk = join(store.folder, "disk");
      await mkdir(disk);
      mountDisk(disk, "size=64k");
      try {
        const errors: unknown[] = [];
        const ledger = await open(store, "disk", { errors });
        expect(await ledger.count(count("a"))).toBe(true);
        const filler = join(disk, "filler");
        await writeFile(filler, Buffer.alloc(60_000)).catch(() => {});
        let counted = 1;
        for (let turn = 0; errors.length === 0; turn++) {
          expect(turn).toBeLessThan(1_000);
          const all = Array.from({ length: 50 }, (_, index) => ledger.count(count(`a${index}`)));
          counted += (await Promise.all(all)).filter((one) => one).length;
        }
        await rm(filler);
        expect(await ledger.count(count("a"))).toBe(true);
        await ledger.close();
        const sums = (await usage(store)).map((row) => Number((row as string[])[4]));
        expect(sums.reduce((sum, one) => sum + one, 0)).toBe(counted + 1);
        expect(errors.map(String)).toEqual([
          expect.stringMatching(/disk cannot store counts, .*: .*(ENOSPC|could not be written completely)/),
        ]);
      } finally {
        unmountDisk(disk);
      }
    },
  );

  test("refuses counted requests with 503 while it cannot record them, and does not affect free ones", async () => {
    await store.database.execute(SHOP);
    const api = await openApiServer(store);
    const folder = join(store.folder, "ledger");
    const get = (target: string) => api.get(`/api/v1/posts${target}`, { appKey: "shop" });
    await rename(folder, `${folder}-aside`);
    await writeFile(folder, "");
    const refused = await get("?per_page=1");
    expect([refused.status, refused.json.error.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
    expect(refused.headers).toMatchObject({ "retry-after": "1", "cache-control": "no-store" });
    expect(refused.headers).toMatchObject({ "x-request-counted": "false", "cache-status": "precast; fwd=bypass" });
    expect((await get("?page=2")).status).toBe(200);
    const warningOf = async (target: string) => (await get(target)).headers["x-request-warning"];
    for (const field of ["title", "slug"])
      expect(await warningOf(`?per_page=1&filter[${field}][like]=x`)).toContain(`filter[${field}][like]`);
    expect(await warningOf("?per_page=1")).toBeUndefined();
    await rm(folder);
    await rename(`${folder}-aside`, folder);
    expect((await get("?per_page=2")).status).toBe(200);
    await api.close();
    const rows = await store.database.query(sql("SELECT shape, saving, count::text FROM precast.usage"));
    expect(rows).toEqual([["list", "per_page=2", "1"]]);
    expect(api.errors).toHaveLength(1);
  });

  test("records the type and the names of the fields that a request uses, and no other text of clients", async () => {
    await store.database.execute("DELETE FROM precast.usage");
    const api = await openApiServer(store);
    for (const target of [
      "posts?per_page=1",
      "posts?per_page=1&filter[title]=secret&sort=-published_at&filter[nonsense]=secret",
      "posts?sort=-title&filter[title][in]=a,b&fields=title",
      "posts/search?q=secret&sort=published_at",
      "posts/abcdef00-0000-4000-8000-000000000001?populate=title,nonsense",
      "nonsense?per_page=1&filter[title]=secret",
    ])
      await api.get(`/api/v1/${target}`, { appKey: "shop" });
    await api.close();
    const rows = await store.database.query(
      sql(`SELECT shape, type, fields, sum(count)::text FROM precast.usage GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`),
    );
    expect(rows).toEqual([
      ["list", "", "", "1"],
      ["list", "posts", "", "1"],
      ["list", "posts", "published_at,title", "1"],
      ["list", "posts", "title", "1"],
      ["populate", "posts", "title", "1"],
      ["search", "posts", "published_at", "1"],
    ]);
  });

  test("counts what is beyond 200 combinations of types and fields of an app together, and loses none", async () => {
    await store.database.execute("DELETE FROM precast.usage");
    const ledger = await open(store, "names");
    const counts = Array.from({ length: 3_000 }, (_, index) =>
      ledger.count({ ...count("a"), type: "posts", fields: `f${index % 300}` }),
    );
    await Promise.all([...counts, ledger.count({ ...count("b"), type: "posts", fields: "f299" })]);
    await ledger.close();
    const rows = await store.database.query(
      sql("SELECT app_key, type, fields, sum(count)::text FROM precast.usage GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"),
    );
    expect(rows).toHaveLength(202);
    expect(rows[0]).toEqual(["a", "(other)", "(other)", "1000"]);
    expect(rows.at(-1)).toEqual(["b", "posts", "f299", "1"]);
    expect(rows.reduce((sum, row) => sum + Number(row[3]), 0)).toBe(3_001);
  });

  test("reads journals that an earlier checkout has written, without types and fields", async () => {
    await store.database.execute("DELETE FROM precast.usage");
    const folder = join(store.folder, "earlier", "1-abcdef01");
    await mkdir(folder, { recursive: true });
    const line = { app: "a", day: DAY, shape: "list", status: 200, saving: "", count: 7 };
    await writeFile(join(folder, "abcdef00-0000-4000-8000-000000000001.ndjson"), `${JSON.stringify(line)}\n`);
    const ledger = await open(store, "earlier");
    await ledger.close();
    expect(await usage(store)).toEqual([["a", DAY, "list", "200", "7"]]);
  });
});
