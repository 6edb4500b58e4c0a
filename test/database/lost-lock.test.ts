/**
 * A process is suspended, for example with its container, until a process in another container counts it as dead and
 * takes its lock. When the first one resumes it notices that, and what the other has written stays.
 */
import { readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { readFiles, treeProblems } from "../support/build-problems.ts";
import { type Builder, openBuilder } from "../support/builder.ts";
import {
  type CommandResult,
  NODE_ARGUMENTS,
  openEmbeddedPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  shopWithout,
} from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { newPost, SHOP as POSTS } from "../support/posts.ts";
import { NAMESPACE, NO_NAMESPACE, unlessLacking } from "../support/root.ts";
import { until } from "../support/until.ts";

const stat = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8");

async function stop(pid: number, lock: string): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("it to stand still", () => / T /.test(stat(pid)));
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(lock, longAgo, longAgo);
}

const goOn = (pid: number) => process.kill(pid, "SIGCONT");

/** Runs a command in a PID namespace of its own, as in another container. */
function remote(place: Place, line: string): Promise<CommandResult> {
  const [program, ...words] = NAMESPACE;
  return place.spawn(program, [...words, process.execPath, ...NODE_ARGUMENTS, ...line.split(" ")]);
}

describe.skipIf(NO_NAMESPACE !== null)(unlessLacking(NO_NAMESPACE, "a process stopped until its lock expires"), () => {
  describe("a server on the embedded database", () => {
    let place: Place;
    let server: RunningServer;
    let data: string;
    let lock: string;
    beforeEach(async () => {
      place = await openEmbeddedPlace();
      data = join(place.folder, ".precast");
      lock = join(data, "database.lock");
      await place.import(shop());
      await writeBundle(join(place.folder, "bundle"), shopWithout(1));
      server = await place.serve();
      expect((await list()).json.meta.total).toBe(3);
    });
    afterEach(() => place.close());

    const list = () => server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
    const posts = async () => {
      const { apps } = await place.json<{ apps: { types: { entries: number }[] }[] }>("status");
      return apps[0]?.types[0]?.entries;
    };

    test("answers what another process has written meanwhile, and still records counted requests", async () => {
      await stop(server.pid, lock);
      expect(await remote(place, "import bundle --quiet")).toMatchObject({ code: 0, stderr: "" });
      goOn(server.pid);
      expect((await list()).json.meta.total).toBe(2);
      expect((await server.stop()).code).toBe(0);
      expect(await posts()).toBe(2);
      // One request from before the stop and one from after it.
      expect((await place.json<{ total: number }>("usage")).total).toBe(2);
    });

    test("does not commit a transaction during which it was stopped", async () => {
      const guest = await openGuest();
      const writing = guest.transaction("write", async (session) => {
        await session.query(sql("DELETE FROM precast.entries"));
        await stop(server.pid, lock);
        expect(await remote(place, "import bundle --quiet")).toMatchObject({ code: 0, stderr: "" });
        goOn(server.pid);
      });
      await expect(writing).rejects.toThrow(/ was taken over by another process .* Run the command again\.$/);
      await guest.close();
      expect((await list()).json.meta.total).toBe(2);
      expect((await server.stop()).code).toBe(0);
      expect(await posts()).toBe(2);
    });

    test("refuses live requests while another process holds the lock, and takes it again when it is free", async () => {
      await stop(server.pid, lock);
      writeFileSync(lock, "1 - elsewhere\n");
      goOn(server.pid);
      const guest = await openGuest();
      await expect(guest.query(sql("SELECT 1::text"))).rejects.toThrow(
        / was taken over by process 1 on another machine /,
      );
      expect(await list()).toMatchObject({ status: 503 });
      rmSync(lock);
      await until("it to answer", async () => (await list()).status === 200);
      expect(await guest.query(sql("SELECT 1::text"))).toEqual([["1"]]);
      await guest.close();
      expect((await server.stop()).code).toBe(0);
    });

    function openGuest(): Promise<Database> {
      return openDatabase({ url: null, dataDir: data, queryTimeout: null, connections: 1 });
    }
  });

  describe("a build", () => {
    let builder: Builder;
    beforeAll(async () => {
      builder = await openBuilder();
    });
    afterAll(() => builder.close());

    test("fails and leaves the tree unchanged when another build has taken its lock", async () => {
      const { place, write, store } = builder;
      const out = join(place.folder, "out");
      await builder.reset(POSTS);
      expect(await place.run("build")).toMatchObject({ code: 0 });
      await write(newPost(7));
      const first = await store.database.transaction("write", async (session) => {
        await session.execute("LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
        const started = place.start("build");
        await until("it to wait for the database", async () => (await waiting(store.database)) !== "0");
        await stop(started.pid, join(out, ".precast/build.lock"));
        return started;
      });
      expect(await remote(place, "build")).toMatchObject({ code: 0, stderr: "" });
      const built = readFiles(out);
      goOn(first.pid);
      expect(await first.end()).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^Another build has taken over this tree .*Build again.*\n$/),
      });
      expect(treeProblems(built, readFiles(out), out)).toEqual([]);
      expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
    });

    async function waiting(database: Database): Promise<string | null | undefined> {
      const where = "datname = current_database() AND wait_event_type = 'Lock'";
      return (await database.query(sql(`SELECT count(*)::text FROM pg_stat_activity WHERE ${where}`)))[0]?.[0];
    }
  });
});
