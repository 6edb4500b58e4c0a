/** The ledger counts every counted request once, at any load, while servers, the database or the disk fail. */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
    machine: "test",
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

/** The name of a journal from another machine: whether its owner lives cannot be checked by process id. */
function strangersName(): string {
  return `0123456789abcdef-1-01234567.${randomUUID()}.ndjson`;
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
      expect(await readdir(join(store.folder, folder))).toHaveLength(2);

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

  test("sends an abandoned journal of a server on another machine while it runs", async () => {
    const ledger = await open(store, "orphan", { heartbeatInterval: 10 });
    await writeFile(join(store.folder, "orphan", strangersName()), line("a"));
    await until("the journal to be sent", async () => (await usage(store)).length === 1);
    expect(await usage(store)).toEqual([["a", DAY, "list", "200", "1"]]);
    await ledger.close();
  });

  test("does not take the journals of a live server on another machine", async () => {
    await server.stop("immediate");
    const stranger = await open(store, "neighbours", {
      machine: "elsewhere",
      heartbeatInterval: 10,
      now: () => new Date(),
    });
    const ledger = await open(store, "neighbours", { heartbeatInterval: 30 });
    await stranger.count(count("a"));
    const before = await readdir(join(store.folder, "neighbours"));
    const looks = 40;
    const gone: string[] = [];
    for (let look = 0; look < looks; look++) {
      const files = await readdir(join(store.folder, "neighbours"));
      gone.push(...before.filter((file) => !files.includes(file)));
      await sleep(30);
    }
    expect(gone).toEqual([]);
    await server.start();
    await Promise.all([stranger.close(), ledger.close()]);
    expect(await usage(store)).toEqual([["a", expect.any(String), "list", "200", "1"]]);
  });

  test("loses no count and repeats none when another server takes its journals because it seemed dead", async () => {
    const errors: unknown[] = [];
    const silent = await open(store, "silent", { machine: "elsewhere", heartbeatInterval: 3_600_000, errors });
    const thief = await open(store, "silent", { heartbeatInterval: 2 });
    const answers = { yes: 0, no: 0 };
    const taken = () => errors.length;
    for (let turn = 0; taken() < 5; turn++) {
      expect(turn).toBeLessThan(1_000);
      if (await silent.count(count("a"))) answers.yes++;
      else answers.no++;
      // A pause that is long enough to seem dead.
      await sleep(turn % 3 === 0 ? 60 : 0);
    }
    await silent.close();
    await thief.close();
    // A count fails only when its journal is taken at the very moment when it is written.
    expect(answers.no).toBeLessThan(5);
    const [row] = (await usage(store)) as string[][];
    const counted = Number(row?.[4]);
    expect(counted).toBeGreaterThanOrEqual(answers.yes);
    expect(counted).toBeLessThanOrEqual(answers.yes + answers.no);
    expect(await readdir(join(store.folder, "silent"))).toEqual([]);
  });

  test("counts the next request although another server has taken its journal, and reports that once", async () => {
    const folder = join(store.folder, "taken");
    const errors: unknown[] = [];
    const ledger = await open(store, "taken", { heartbeatInterval: 10, errors });
    expect(await ledger.count(count("a"))).toBe(true);
    const [file = ""] = await readdir(folder);
    await rename(join(folder, file), join(folder, strangersName()));
    expect(await ledger.count(count("b"))).toBe(true);
    expect(errors.map(String)).toEqual([expect.stringMatching(/^JournalLost: .* can no longer be used as a journal/)]);
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
      const [file = ""] = await readdir(folder);
      // The new name says that a server which no longer exists has taken the journal.
      await rename(join(folder, file), join(folder, file.replace(/-\d+-[0-9a-f]{8}\./, "-4194305-01234567.")));
      await until("it to be back", async () => (await readdir(folder)).includes(file));
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
    await mkdir(folder);
    const broken = strangersName();
    await writeFile(
      join(folder, broken),
      `${line("a")}{"app":"a","day\n${line("a", { count: 2 })}\0\0\n${line("a", { status: "200" })}${line("a", { day: "0000-01-20" })}${line("a").slice(0, -9)}`,
    );
    await writeFile(join(folder, strangersName()), line("b"));
    const errors: unknown[] = [];
    const ledger = await open(store, "broken", { heartbeatInterval: 10, errors });
    await until("both to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "3"],
      ["b", DAY, "list", "200", "1"],
    ]);
    const id = broken.slice(broken.indexOf("."));
    expect(await readdir(folder)).toEqual([expect.stringMatching(new RegExp(`${id}\\.broken$`))]);
    expect(errors.map(String)).toEqual([expect.stringMatching(/^Error: 4 lines of .*\.broken cannot be read/)]);
  });

  test("sends other batches while the database refuses one, and sends that one once it is accepted", async () => {
    await store.database.execute("ALTER TABLE precast.usage ADD CONSTRAINT picky CHECK (app_key <> 'bad')");
    const folder = join(store.folder, "refused");
    await mkdir(folder);
    await writeFile(join(folder, strangersName()), line("bad"));
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
    await mkdir(folder);
    const errors: unknown[] = [];
    await makeUnreadable(join(folder, strangersName()));
    const ledger = await open(store, "untakable", { heartbeatInterval: 10, errors });
    await ledger.count(count("a"));
    const [own = ""] = (await readdir(folder)).filter((file) => !file.startsWith("0123456789abcdef"));
    const untakable = strangersName();
    // A file cannot be renamed to the name of a folder, so this journal cannot be adopted.
    await mkdir(join(folder, own.replace(/\..*\.ndjson$/, untakable.slice(untakable.indexOf(".")))));
    await writeFile(join(folder, untakable), line("b"));
    await writeFile(join(folder, strangersName()), line("c"));
    await until("the other to be sent", async () => (await usage(store)).length === 2);
    await ledger.close();
    expect((await usage(store)).map((row) => (row as string[])[0])).toEqual(["a", "c"]);
    expect(errors.map(String).sort()).toEqual([
      expect.stringMatching(/EISDIR.*rename/),
      expect.stringMatching(/ELOOP.*stat/),
    ]);
  });

  test("adopts other journals when it cannot update the timestamp of its own, and reports that once", async () => {
    await server.stop("immediate");
    const folder = join(store.folder, "untouchable");
    const errors: unknown[] = [];
    const ledger = await open(store, "untouchable", { heartbeatInterval: 10, errors });
    await ledger.count(count("a"));
    await until("it to wait for the database", () => errors.length > 0);
    const [own = ""] = await readdir(folder);
    await makeUnreadable(join(folder, own));
    const other = strangersName();
    await writeFile(join(folder, other), line("b"));
    await until("the other to be adopted", async () => !(await readdir(folder)).includes(other));
    await server.start();
    await until("it to be sent", async () => (await usage(store)).length === 1);
    await ledger.close();
    expect(errors.map(String).filter((error) => /utime/.test(error))).toEqual([expect.stringMatching(/ELOOP/)]);
  });

  /** Replaces the file by a symbolic link to itself, which fails with ELOOP. The path exists at every moment. */
  async function makeUnreadable(path: string): Promise<void> {
    await symlink(path, `${path}.link`);
    await rename(`${path}.link`, path);
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
    expect(await readdir(join(store.folder, "full"))).toHaveLength(2);
    await ledger.close();

    await server.start();
    await (await open(store, "full")).close();
    const sums = (await usage(store)).map((row) => (row as string[])[4]);
    expect(sums).toEqual(Array(2_500).fill("2"));
  });

  test("refuses the counts of a write during which another server takes the journal", async () => {
    const path = join(store.folder, "renamed", strangersName());
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
});
