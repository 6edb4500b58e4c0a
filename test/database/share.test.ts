/**
 * One embedded database used by several processes: the one that has it open and shares it is the host, the others are
 * its guests.
 */
import { lchownSync, mkdirSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { findSocket, joinDatabase } from "../../shared/database/embedded/share.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { LockedError } from "../../shared/lock.ts";
import { sql } from "../../shared/sql/query.ts";
import { until } from "../support/until.ts";

const options = (dataDir: string, share: boolean) => ({
  url: null,
  dataDir,
  queryTimeout: null,
  connections: 1,
  share,
});

let folder: string;

// One folder for all tests: creating a database takes seconds.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "precast-share-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function count(database: Database): Promise<string | null | undefined> {
  return (await database.query(sql("SELECT count(*)::text FROM public.notes")))[0]?.[0];
}

describe("an embedded database that is open and shared", () => {
  let host: Database;
  let guest: Database;

  beforeAll(async () => {
    host = await openDatabase(options(folder, true));
    await host.execute("CREATE TABLE public.notes (text text)");
    guest = await openDatabase(options(folder, false));
  });
  afterAll(async () => {
    await guest.close();
    await host.close();
  });

  test.skipIf(process.platform === "win32")("is closed to other users of the machine", () => {
    expect(statSync(join(folder, "database")).mode & 0o777).toBe(0o700);
  });

  test("lets a guest read and write", async () => {
    await guest.query(sql("INSERT INTO public.notes VALUES ($1)", ["from the guest, with a line\nbreak and 'quotes'"]));
    expect(await host.query(sql("SELECT text FROM public.notes"))).toEqual([
      ["from the guest, with a line\nbreak and 'quotes'"],
    ]);
    await guest.execute("DELETE FROM public.notes; DELETE FROM public.notes");
    expect(await count(guest)).toBe("0");
  });

  test("keeps what a guest's transaction commits, and rolls back one that fails", async () => {
    await guest.transaction("write", (session) => session.query(sql("INSERT INTO public.notes VALUES ('kept')")));
    const failing = guest.transaction("write", async (session) => {
      await session.query(sql("INSERT INTO public.notes VALUES ('lost')"));
      throw new Error("the guest changed its mind");
    });
    await expect(failing).rejects.toThrow("the guest changed its mind");
    expect(await host.query(sql("SELECT text FROM public.notes"))).toEqual([["kept"]]);
    await host.execute("DELETE FROM public.notes");
  });

  test("reports SQL errors to a guest with their codes", async () => {
    await expect(guest.query(sql("SELECT * FROM nowhere"))).rejects.toMatchObject({ code: "42P01" });
    const reading = guest.transaction("read", (session) => session.query(sql("INSERT INTO public.notes VALUES ('x')")));
    await expect(reading).rejects.toMatchObject({ code: "25006" });
  });

  test("rolls back a transaction when its guest closes in the middle of it", async () => {
    const leaving = await openDatabase(options(folder, false));
    const left = leaving.transaction("write", async (session) => {
      await session.query(sql("INSERT INTO public.notes VALUES ('half')"));
      await leaving.close();
      await session.query(sql("SELECT 1"));
    });
    await expect(left).rejects.toBeInstanceOf(DatabaseFault);
    expect(await count(host)).toBe("0");
  });

  test("runs transactions of host and guest one after another", async () => {
    const add = (database: Database) =>
      database.transaction("write", async (session) => {
        const rows = await session.query(sql("SELECT count(*)::text FROM public.notes"));
        await session.query(sql("INSERT INTO public.notes VALUES ($1)", [rows[0]?.[0] as string]));
      });
    await Promise.all([host, guest, host, guest, guest, host].map(add));
    const rows = await host.query(sql("SELECT text FROM public.notes ORDER BY text"));
    expect(rows.flat()).toEqual(["0", "1", "2", "3", "4", "5"]);
  });
});

describe("a guest that opens the embedded database to share it", () => {
  test("becomes the host when its host has closed, and serves another guest", async () => {
    const host = await openDatabase(options(folder, true));
    await host.execute("DROP TABLE IF EXISTS public.notes; CREATE TABLE public.notes (text text)");
    const heir = await openDatabase(options(folder, true));
    const second = await openDatabase(options(folder, true));
    await heir.query(sql("INSERT INTO public.notes VALUES ('before')"));
    await host.close();
    // Both try to open it: one becomes the host, and the other its guest.
    const counts = await Promise.all([heir, second].map(untilAnswered));
    expect(counts).toEqual(["1", "1"]);
    await second.query(sql("INSERT INTO public.notes VALUES ('after')"));
    expect(await count(heir)).toBe("2");
    await second.close();
    await heir.close();
  });

  test("is still notified of changes when its host has closed", async () => {
    const host = await openDatabase(options(folder, true));
    const heir = await openDatabase(options(folder, true));
    let heard = 0;
    const stop = await heir.listen(() => heard++);
    await host.execute("NOTIFY precast");
    await until("the host's change to be heard", () => heard === 1);
    await host.close();
    // Notified at the loss and when it listens again: in between, notifications may have been missed.
    await until("it to listen again", () => heard >= 3);
    const before = heard;
    await heir.execute("NOTIFY precast");
    await until("its own change to be heard", () => heard > before);
    await stop();
    await heir.close();
  });

  async function untilAnswered(database: Database): Promise<string | null | undefined> {
    let answer: string | null | undefined;
    await until("the database to be there", async () => {
      answer = await count(database).catch((error) => {
        if (error instanceof DatabaseFault && error.reason === "unavailable") return undefined;
        throw error;
      });
      return answer !== undefined;
    });
    return answer;
  }
});

describe("opening an embedded database without sharing it", () => {
  test("waits while another owner is about to close it", async () => {
    const owner = await openDatabase(options(folder, false));
    const next = openDatabase(options(folder, false));
    await owner.query(sql("SELECT pg_sleep(2)::text"));
    await owner.close();
    await (await next).close();
  });

  test("fails with LockedError while another owner keeps it open", async () => {
    const owner = await openDatabase(options(folder, false));
    await expect(openDatabase(options(folder, false))).rejects.toBeInstanceOf(LockedError);
    await owner.close();
    const next = await openDatabase(options(folder, false));
    await next.close();
  });

  test("makes a guest whose queries fail as unavailable once its host has closed", async () => {
    const host = await openDatabase(options(folder, true));
    const guest = await openDatabase(options(folder, false));
    await host.close();
    await expect(guest.query(sql("SELECT 1"))).rejects.toMatchObject({ reason: "unavailable" });
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "a socket in the temporary folder counts only if no other user of the machine has put it there (only root can try)",
  async () => {
    const dataDir = join(folder, "x".repeat(100));
    mkdirSync(dataDir);
    const address = findSocket(dataDir);
    expect(address).not.toContain(folder);
    const host = createServer((socket) => void socket.resume());
    await new Promise<void>((resolve) => void host.listen(address, resolve));
    const guest = await joinDatabase(dataDir);
    await guest?.close();
    lchownSync(address, 65_534, 65_534);
    expect([guest === null, await joinDatabase(dataDir)]).toEqual([false, null]);
    await new Promise((resolve) => host.close(resolve));
  },
);
