/** Incremental builds: whatever happened to the content, the tree is that of a full build, byte for byte. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { readDeltas } from "../../cli/builder/delta.ts";
import { verifyApp } from "../../cli/commands/verify.ts";
import { openDatabase } from "../../cli/database.ts";
import type { App } from "../../shared/api/catalog.ts";
import { readApps } from "../../shared/apps.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { readTreeState, type TreeState } from "../../shared/tree.ts";
import {
  type ChangesFile,
  readChanges,
  readFiles,
  type TreeFiles,
  touchProblems,
  treeProblems,
} from "../support/build-problems.ts";
import { arbitraryHistory, runBuild, startHistoryRun } from "../support/history.ts";
import { dropDatabase } from "../support/postgres.ts";
import { file, idOf, newPost, POSTS, post, SHOP } from "../support/posts.ts";
import { type Engine, openApiServer, openStore, type Store } from "../support/site.ts";

describe.each<{ engine: Engine; runs: number; steps: number }>([
  { engine: "postgres", runs: 8, steps: 20 },
  { engine: "embedded", runs: 2, steps: 8 },
])("on $engine", ({ engine, runs, steps }) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine, { connections: 8 });
  });
  afterAll(() => store.close());

  test("after any sequence of edits and builds, the tree equals that of a full build", async () => {
    const counts = { edits: 0, refused: 0 };
    const property = fc.asyncProperty(arbitraryHistory(engine === "postgres", steps), async ({ start, steps }) => {
      const run = await startHistoryRun(store, start);
      try {
        for (const step of steps) await run.apply(step);
        await run.end();
      } finally {
        await run.quit();
        counts.edits += run.counts.edits;
        counts.refused += run.counts.refused;
      }
    });
    await fc.assert(property, { numRuns: runs });
    // If the database refused most edits, the runs would prove little.
    expect(counts.refused * 2).toBeLessThan(counts.edits);
  }, 300_000);
});

/** More posts than a build checks one by one, with a field of many values, one of few, and one of unique values. */
const LARGE = `INSERT INTO precast.fields (content_type_id, name, position, type)
SELECT id, 'kind', 3, 'select' FROM precast.content_types WHERE slug = 'posts';
UPDATE precast.content_types SET per_page = 100, filterable_fields = '{title,category,kind}' WHERE slug = 'posts';
INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT id, md5(n::text)::uuid, 'published', timestamptz '2026-01-01T00:00Z' + (n % 1100) * interval '1 s',
  jsonb_build_object('number', n, 'title', 'post ' || n, 'category', 'c' || n % 220, 'kind', 'k' || n % 3)
FROM precast.content_types, generate_series(1, 1300) AS n WHERE slug = 'posts';`;

describe("case by case", () => {
  let store: Store;
  let out: string;
  /** Commits the transactions that a failed test has left open. */
  const open: (() => Promise<unknown>)[] = [];
  const write = (script: string) => store.database.transaction("write", (session) => session.execute(script));

  beforeAll(async () => {
    store = await openStore("postgres", { connections: 8 });
  });
  afterAll(() => store.close());
  afterEach(async () => {
    for (const commit of open.splice(0)) await commit();
  });
  beforeEach(async () => {
    await write("DELETE FROM precast.apps");
    await write(SHOP);
    out = join(mkdtempSync(join(store.folder, "case-")), "out");
    await build();
  });

  async function build(full = false, database: Database = store.database) {
    const options = { out, apps: null, full, dryRun: false, mediaBaseUrl: "https://media.test", now: () => new Date() };
    const [report] = await runBuild(database, options);
    if (report === undefined) throw new Error("There is no app.");
    return report;
  }

  /** Builds, and returns the files that changed. The tree must be that of a build from scratch. */
  async function buildExactly(database: Database = store.database) {
    const before = readFiles(out);
    const report = await build(false, database);
    const after = readFiles(out);
    expect(touchProblems(before, after)).toEqual([]);
    await expectExact(database);
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path)?.bytes !== after.get(path)?.bytes,
    );
    return { ...report, paths: changed.sort(), before, after };
  }

  async function expectExact(database: Database = store.database) {
    const { files, state } = await buildAside(database);
    expect(treeProblems(files, readFiles(out), out)).toEqual([]);
    expect(readTreeState(out, "shop")?.sizes).toEqual(state?.sizes);
  }

  /** The files and the state of a build from scratch. */
  async function buildAside(database: Database = store.database) {
    const here = out;
    out = mkdtempSync(join(store.folder, "scratch-"));
    await build(true, database);
    const [files, state] = [readFiles(out), readTreeState(out, "shop")];
    out = here;
    return { files, state };
  }

  /** Opens a transaction that has run the script and stays open until the returned function commits it. */
  async function openWriter(script: string) {
    let commit: () => void = () => {};
    const decided = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let written: () => void = () => {};
    const wrote = new Promise<void>((resolve) => {
      written = resolve;
    });
    const ended = store.database.transaction("write", async (session) => {
      await session.execute(script);
      written();
      await decided;
    });
    await Promise.race([wrote, ended]);
    const close = () => {
      commit();
      return ended;
    };
    open.push(close);
    return close;
  }

  test.each([
    ["a new entry", newPost(7), `posts/entry/${idOf(7)}.json`],
    ["an edit", `UPDATE precast.entries SET data = data || '{"title": "late"}' WHERE ${post(3)}`, "posts/page/2.json"],
    ["a deletion", `DELETE FROM precast.entries WHERE ${post(3)}`, `posts/entry/${idOf(3)}.json`],
    [
      "a transaction with a savepoint",
      `SAVEPOINT a; ${newPost(8)} RELEASE SAVEPOINT a;`,
      `posts/entry/${idOf(8)}.json`,
    ],
    [
      "a change of an entry's id",
      `UPDATE precast.entries SET id = '${idOf(9)}' WHERE ${post(3)}`,
      `posts/entry/${idOf(3)}.json`,
    ],
    [
      "a change of a type's page size",
      "UPDATE precast.content_types SET per_page = 3 WHERE slug = 'posts'",
      "posts/page/1.json",
    ],
    ["the deletion of a type", "DELETE FROM precast.content_types WHERE slug = 'pages'", "_schemas/pages.json"],
  ])("%s that commits after a build is in the next build", async (_, script, path) => {
    const commit = await openWriter(script);
    // A transaction that began later and commits earlier must not hide it.
    await write(`UPDATE precast.entries SET data = data || '{"title": "meanwhile"}' WHERE ${post(1)}`);
    expect((await buildExactly()).paths).not.toContain(file(path));
    expect((await buildExactly()).paths).toEqual([]);
    await commit();
    const { mode, paths } = await buildExactly();
    expect([mode, paths.includes(file(path))]).toEqual(["incremental", true]);
  });

  test("an edit that commits during a build is in the next build", async () => {
    let asked = 0;
    const watched = (session: Session): Session => ({
      ...session,
      query: async (query) => {
        const rows = await session.query(query);
        if (++asked === 3) await write(`${newPost(7)} DELETE FROM precast.entries WHERE ${post(3)};`);
        return rows;
      },
    });
    await write(`UPDATE precast.entries SET data = data || '{"title": "early"}' WHERE ${post(1)}`);
    await build(false, {
      ...store.database,
      transaction: (access, run) => store.database.transaction(access, (session) => run(watched(session))),
    });
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(readFiles(out).has(file(`posts/entry/${idOf(7)}.json`))).toBe(false);
    expect((await buildExactly()).paths).toContain(file(`posts/entry/${idOf(7)}.json`));
  });

  test.each([1, 2, 3, 4, 6])(
    "TRUNCATE after query %i of a build leaves nothing wrong in the tree of the next build",
    async (queries) => {
      let asked = 0;
      const emptied = async () => {
        try {
          await write("SET LOCAL lock_timeout = '100ms'; TRUNCATE precast.entries");
        } catch (error) {
          // The build has read the table, so TRUNCATE does not get its lock.
          if ((error as { code?: string }).code !== "55P03") throw error;
        }
      };
      const watched = (session: Session): Session => ({
        ...session,
        query: async (query) => {
          const rows = await session.query(query);
          if (++asked === queries) await emptied();
          return rows;
        },
      });
      await write(`UPDATE precast.entries SET data = data || '{"title": "early"}' WHERE ${post(1)}`);
      await build(false, {
        ...store.database,
        transaction: (access, run) => store.database.transaction(access, (session) => run(watched(session))),
      });
      await buildExactly();
      await write(newPost(7));
      await buildExactly();
    },
  );

  test("an edit that moves an entry to another filter value rewrites the files of both values", async () => {
    await write(`UPDATE precast.entries SET data = data || '{"category": "odd"}' WHERE ${post(6)}`);
    const { mode, paths } = await buildExactly();
    expect(mode).toBe("incremental");
    expect(paths).toContain(file("posts/filter/category/s-even.json"));
    expect(paths).toContain(file("posts/filter/category/s-odd.json"));
    expect(paths).not.toContain(file("posts/page/2.json"));
  });

  test("the file of a filter value goes with its last entry and comes back with a new one", async () => {
    const set = (value: string) =>
      write(`UPDATE precast.entries SET data = data || '{"category": "${value}"}' WHERE ${post(2)}`);
    await set("rare");
    expect((await buildExactly()).paths).toContain(file("posts/filter/category/s-rare.json"));
    await set("even");
    const { after, paths } = await buildExactly();
    expect(after.has(file("posts/filter/category/s-rare.json"))).toBe(false);
    expect(paths).toContain(file("posts/filter/category/s-even.json"));
    await set("rare");
    expect((await buildExactly()).mode).toBe("incremental");
  });

  test.each([
    ["filterable_fields", "'{category,title}'", "posts/filter/title/x-706f7374732033.json"],
    ["sortable_fields", "'{title,category}'", "posts/sort/category.json"],
    ["default_sort", "'title'", "posts/page/1.json"],
  ])("a change of %s of a type is in the next build", async (setting, value, path) => {
    await write(`UPDATE precast.content_types SET ${setting} = ${value} WHERE slug = 'posts'`);
    const { mode, paths } = await buildExactly();
    expect([mode, paths.includes(file(path))]).toEqual(["incremental", true]);
  });

  test("an edit of rich text alone rewrites the entry's file and no other", async () => {
    await write(`INSERT INTO precast.fields (content_type_id, name, position, type)
SELECT id, 'body', 3, 'rich_text' FROM precast.content_types WHERE slug = 'posts'`);
    await build();
    await write(`UPDATE precast.entries SET data = data || '{"body": "<p>new</p>"}' WHERE ${post(3)}`);
    const { mode, paths } = await buildExactly();
    expect([mode, paths]).toEqual(["incremental", [file(`posts/entry/${idOf(3)}.json`)]]);
  });

  test("all pages are exact when more than a hundred of them move", async () => {
    await write(`UPDATE precast.content_types SET per_page = 1 WHERE slug = 'posts';
INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT id, md5(n::text)::uuid, 'published', timestamptz '2026-03-01T00:00Z' + n * interval '1 s', '{"title": "more"}'
FROM precast.content_types, generate_series(1, 120) AS n WHERE slug = 'posts'`);
    await build();
    for (const change of [`UPDATE precast.entries SET status = 'draft' WHERE ${post(3)}`, newPost(7)]) {
      await write(change);
      const { mode, written, deleted, paths } = await buildExactly();
      const pages = paths.filter((path) => path.startsWith(file("posts/page/")));
      expect([mode, pages.length, written + deleted]).toEqual(["incremental", 126, paths.length]);
    }
  });

  test("an entry that moves between two pages leaves the third page and other entries as they are", async () => {
    await write(`UPDATE precast.entries SET published_at = '2026-01-06T12:00Z' WHERE ${post(4)}`);
    const { mode, paths } = await buildExactly();
    expect(mode).toBe("incremental");
    expect(paths).toContain(file("posts/page/1.json"));
    expect(paths).toContain(file("posts/page/2.json"));
    expect(paths).not.toContain(file("posts/page/3.json"));
    expect(paths.filter((path) => path.includes("/entry/"))).toEqual([file(`posts/entry/${idOf(4)}.json`)]);
  });

  test("a new published_at moves an entry among its ties in the default sort", async () => {
    await write("UPDATE precast.content_types SET default_sort = 'category' WHERE slug = 'posts'");
    await build();
    await write(`UPDATE precast.entries SET published_at = '2026-02-01T00:00Z' WHERE ${post(2)}`);
    const { mode, paths } = await buildExactly();
    expect(mode).toBe("incremental");
    expect(paths).toEqual(expect.arrayContaining([file("posts/page/1.json"), file("posts/page/2.json")]));
  });

  test("the last page is deleted when too few entries remain for it", async () => {
    await write(`DELETE FROM precast.entries WHERE ${POSTS} AND id IN ('${idOf(2)}', '${idOf(5)}')`);
    const { mode, after } = await buildExactly();
    expect([mode, after.has(file("posts/page/2.json")), after.has(file("posts/page/3.json"))]).toEqual([
      "incremental",
      true,
      false,
    ]);
  });

  test("two types with the same definition swap their slugs", async () => {
    await write(`UPDATE precast.content_types SET slug = 'swapping' WHERE slug = 'posts';
UPDATE precast.content_types SET slug = 'posts' WHERE slug = 'pages';
UPDATE precast.content_types SET slug = 'pages' WHERE slug = 'swapping';`);
    const { mode, after } = await buildExactly();
    expect([mode, after.has(file("pages/page/3.json")), after.has(file("posts/page/3.json"))]).toEqual([
      "incremental",
      true,
      false,
    ]);
  });

  test("a type is replaced by another with its slug and definition, but other entries", async () => {
    await write(`DELETE FROM precast.content_types WHERE slug = 'pages';
UPDATE precast.content_types SET slug = 'pages' WHERE slug = 'posts';`);
    expect((await buildExactly()).after.has(file("pages/page/3.json"))).toBe(true);
  });

  test("a type is replaced by one of another app with its slug and definition, but other entries", async () => {
    await write(`INSERT INTO precast.apps (key) VALUES ('other');
UPDATE precast.content_types SET slug = 'posts', app_id = (SELECT id FROM precast.apps WHERE key = 'other') WHERE slug = 'pages';`);
    await build();
    const shop = "(SELECT id FROM precast.apps WHERE key = 'shop')";
    await write(`DELETE FROM precast.content_types WHERE app_id = ${shop};
UPDATE precast.content_types SET app_id = ${shop};`);
    expect((await buildExactly()).after.has(file("posts/page/3.json"))).toBe(false);
  });

  test("entries removed by TRUNCATE are gone from the tree", async () => {
    await write("TRUNCATE precast.entries");
    const { mode, after } = await buildExactly();
    expect([mode, [...after.keys()].filter((path) => path.includes("/entry/"))]).toEqual(["incremental", []]);
  });

  test("an entry deleted while its trigger was off is gone from the tree after precast.keep_anew()", async () => {
    await write(`ALTER TABLE precast.entries DISABLE TRIGGER keep_removal;
DELETE FROM precast.entries WHERE ${post(3)};
ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER keep_removal;
SELECT precast.keep_anew();`);
    const { mode, after } = await buildExactly();
    expect([mode, after.has(file(`posts/entry/${idOf(3)}.json`))]).toEqual(["incremental", false]);
  });

  test.each([
    ["dates each entry that is written", "BEFORE UPDATE", "NEW.updated_at := '2026-05-01T00:00Z'", "posts"],
    ["rewrites the rich text of each entry", "BEFORE UPDATE", `NEW.rich := '{"body": "<p>signed</p>"}'`, "posts"],
    [
      "dates the pages when a post is written",
      "AFTER UPDATE",
      "UPDATE precast.entries SET updated_at = '2026-05-01T00:00Z' WHERE content_type_id <> NEW.content_type_id",
      "pages",
    ],
  ])(
    "what a custom trigger that %s does while slots are filled is in the next build",
    async (_, event, change, slug) => {
      const filter = (name: string) =>
        `UPDATE precast.content_types SET filterable_fields = '{${name}}' WHERE slug = 'posts';`;
      await write(`INSERT INTO precast.fields (content_type_id, name, position, type)
SELECT id, 'body', 9, 'rich_text' FROM precast.content_types WHERE slug = 'posts'`);
      await build();
      await write(`CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${change}; RETURN NEW; END $$;
CREATE TRIGGER touch ${event} ON precast.entries FOR EACH ROW WHEN (NEW.data ->> 'title' LIKE 'posts%')
  EXECUTE FUNCTION public.touch();
${filter("title")}
${filter("category")}
DROP FUNCTION public.touch CASCADE;`);
      expect((await buildExactly()).paths).toContain(file(`${slug}/entry/${idOf(2)}.json`));
    },
  );

  test("builds of another folder hide no change from the next build of this one", async () => {
    const here = out;
    out = join(mkdtempSync(join(store.folder, "case-")), "out");
    await build();
    await write(`DELETE FROM precast.entries WHERE ${post(3)}`);
    await build();
    await build();
    out = here;
    const { mode, paths } = await buildExactly();
    expect([mode, paths.includes(file(`posts/entry/${idOf(3)}.json`))]).toEqual(["incremental", true]);
  });

  test("a folder is built in full when nothing has built it for 90 days", async () => {
    const [here, there] = [out, join(mkdtempSync(join(store.folder, "case-")), "out")];
    const buildIn = async (folder: string) => {
      await write(`UPDATE precast.entries SET updated_at = updated_at + interval '1 day' WHERE ${post(3)}`);
      out = folder;
      return (await build()).mode;
    };
    const passes = (days: number) => write(`UPDATE precast.trees SET built_at = built_at - interval '${days} days'`);
    await buildIn(there);
    await passes(89);
    await buildIn(here);
    await passes(2);
    await buildIn(there);
    expect(await buildIn(here)).toBe("incremental");
    await passes(91);
    await buildIn(there);
    expect(await buildIn(here)).toBe("full");
  });

  test("a folder may be a hundred builds behind, and an app that these leave out even more", async () => {
    const buildElsewhere = (count: number, held = "") => {
      const { tree } = readTreeState(out, "shop") as TreeState;
      return write(
        `SELECT precast.keep_mark('${tree}', gen_random_uuid(), '{${held}}') FROM generate_series(1, ${count})`,
      );
    };
    await buildElsewhere(100);
    expect((await build()).mode).toBe("incremental");
    await buildElsewhere(1);
    expect((await build()).mode).toBe("full");
    await buildElsewhere(150, (readTreeState(out, "shop") as TreeState).mark);
    expect((await build()).mode).toBe("incremental");
  });

  test("a build with nothing to do writes nothing and says so", async () => {
    const { mode, written, deleted, unchanged, paths } = await buildExactly();
    expect({ mode, written, deleted, paths }).toEqual({ mode: "incremental", written: 0, deleted: 0, paths: [] });
    expect(unchanged).toBe(readFiles(out).size);
    expect(readChanges(out)).toMatchObject({ format: 1, changes: [], tags: [], added: 0, changed: 0, gone: 0 });
  });

  test("an app's folder that was removed is built in full, although its state is still there", async () => {
    rmSync(join(out, "s-shop"), { recursive: true });
    const { mode, reason, written, after } = await buildExactly();
    expect([mode, written]).toEqual(["full", after.size]);
    expect(reason).not.toBe("");
  });

  test("an app's removed folder of entries is built again", async () => {
    rmSync(join(out, file("posts/entry")), { recursive: true });
    await write(`UPDATE precast.entries SET data = data || '{"category": "new"}' WHERE ${post(3)}`);
    await buildExactly();
  });

  test("an entry whose file was removed does not stay in the file of its old filter value", async () => {
    rmSync(join(out, file(`posts/entry/${idOf(3)}.json`)));
    await write(`UPDATE precast.entries SET data = data || '{"category": "even"}' WHERE ${post(3)}`);
    await buildExactly();
  });

  // Builds do not fsync the tree, so a power failure may leave files such as these.
  describe.each<[string, (bytes: Buffer) => Buffer | null]>([
    ["missing", () => null],
    ["empty", () => Buffer.alloc(0)],
    ["truncated after its last item", (bytes) => bytes.subarray(0, bytes.lastIndexOf("}]") + 1)],
    ["filled with zeros", (bytes) => Buffer.alloc(bytes.length)],
    ["filled with zeros in the middle", (bytes) => bytes.fill(0, 100, bytes.length - 100)],
    ["a copy of another entry's file", () => readFileSync(join(out, file(`posts/entry/${idOf(1)}.json`)))],
  ])("a file that is %s", (_, damage) => {
    test.each([
      ["is edited", `UPDATE precast.entries SET data = data || '{"title": "new"}' WHERE ${post(3)}`],
      [
        "moves to another filter value",
        `UPDATE precast.entries SET data = data || '{"category": "even"}' WHERE ${post(3)}`,
      ],
      ["becomes a draft again", `UPDATE precast.entries SET status = 'draft' WHERE ${post(3)}`],
      ["is created", newPost(7).replace('"category": "late"', '"category": "odd"')],
    ])("makes no other file wrong when an entry %s", async (_, change) => {
      await write(change);
      const { files: expected } = await buildAside();
      const pristine = mkdtempSync(join(store.folder, "pristine-"));
      cpSync(out, pristine, { recursive: true });
      for (const path of [...readFiles(out).keys()].filter((path) => path.startsWith(file("posts/")))) {
        rmSync(out, { recursive: true });
        cpSync(pristine, out, { recursive: true });
        const bytes = damage(readFileSync(join(out, path)));
        if (bytes === null) rmSync(join(out, path));
        else writeFileSync(join(out, path), bytes);
        const damaged = readFiles(out).get(path)?.bytes;
        await build();
        // A build does not look at files that the edit does not concern.
        const isLeft = readFiles(out).get(path)?.bytes === damaged;
        const others = (files: TreeFiles) => new Map([...files].filter(([other]) => !isLeft || other !== path));
        expect([path, treeProblems(others(expected), others(readFiles(out)), out)]).toEqual([path, []]);
      }
    });
  });

  test.each<[string, string, (page: string) => string, string]>([
    [
      "whose items somebody has put in another order",
      "posts/page/2.json",
      (page) => page.replace(/\[(\{.*\}),(\{.*\})\]/, "[$2,$1]"),
      `UPDATE precast.entries SET data = data || '{"title": "new"}' WHERE ${post(3)}`,
    ],
    [
      "in which somebody has changed the total",
      "posts/page/2.json",
      (page) => page.replace('"total":6', '"total":7'),
      `UPDATE precast.entries SET data = data || '{"title": "new"}' WHERE ${post(3)}`,
    ],
    [
      "that lacks an item",
      "posts/page/2.json",
      (page) => page.replace(/\[(\{.*\}),(\{.*\})\]/, "[$1]"),
      `UPDATE precast.entries SET data = data || '{"title": "new"}' WHERE ${post(3)}`,
    ],
    [
      "that is a copy of the next page",
      "posts/page/1.json",
      () => readFileSync(join(out, file("posts/page/2.json")), "utf8"),
      `DELETE FROM precast.entries WHERE ${post(3)}`,
    ],
    [
      "of a sort in which somebody has changed the total",
      "posts/sort/title.json",
      (page) => page.replace('"total":6', '"total":7'),
      `UPDATE precast.entries SET data = data || '{"title": "new"}' WHERE ${post(3)}`,
    ],
  ])("a page %s leads to a full build that names it", async (_, path, change, script) => {
    const page = join(out, file(path));
    const text = readFileSync(page, "utf8");
    writeFileSync(page, change(text));
    expect(readFileSync(page, "utf8")).not.toBe(text);
    await write(script);
    const { mode, reason } = await buildExactly();
    expect([mode, reason]).toEqual([
      "full",
      expect.stringMatching(/^s-shop\/v1\/posts\/(page|sort).* was changed or removed/),
    ]);
  });

  test("a build with --full is full and says why", async () => {
    const report = await build(true);
    expect(report).toMatchObject({ mode: "full", written: 0, deleted: 0 });
    expect(report.reason).toMatch(/--full/);
    expect((await buildExactly()).mode).toBe("incremental");
  });

  test("the first build of an app is full and says why", async () => {
    await write("INSERT INTO precast.apps (key) VALUES ('another')");
    const report = await build();
    expect(report).toMatchObject({ key: "another", mode: "full" });
    expect(report.reason).not.toBe("");
  });

  test.each([
    ["a state in another format", /"format": \d+/, '"format": 99', "the state of its last build cannot be read"],
    ["a tree of another Precast version", /"version": "[^"]+"/, '"version": "0.0.9"', "it was built by Precast 0.0.9"],
  ])("%s leads to a full build that says why", async (_, part, other, why) => {
    const state = join(out, ".precast", "s-shop.json");
    writeFileSync(state, readFileSync(state, "utf8").replace(part, other));
    await write(`DELETE FROM precast.entries WHERE ${post(3)}`);
    const { mode, reason } = await buildExactly();
    expect([mode, reason]).toEqual(["full", why]);
  });

  test("the same content in another database leads to a full build that says why", async () => {
    const other = await openStore("postgres");
    try {
      await other.database.transaction("write", (session) => session.execute(SHOP));
      await other.database.execute(`DELETE FROM precast.entries WHERE ${post(3)}`);
      const { mode, reason, paths } = await buildExactly(other.database);
      expect([mode, paths.includes(file(`posts/entry/${idOf(3)}.json`))]).toEqual(["full", true]);
      expect(reason).toMatch(/database/);
    } finally {
      await other.close();
    }
  });

  test("a tree built from a database, then from its copy, then from the first again is exact each time", async () => {
    const url = new URL(store.url ?? "");
    const name = url.pathname.slice(1);
    url.pathname = `/${name}_copy`;
    const options = { dataDir: "", queryTimeout: null, connections: 1 };
    const admin = await openDatabase({ ...options, url: inject("postgresUrl") });
    try {
      await admin.execute(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
      await copyDatabase(admin, name);
      await write(`DELETE FROM precast.entries WHERE ${post(3)}`);
      await buildExactly();
      const copy = await openDatabase({ ...options, connections: 4, url: url.href });
      try {
        expect((await buildExactly(copy)).after.has(file(`posts/entry/${idOf(3)}.json`))).toBe(true);
      } finally {
        await copy.close();
      }
      await buildExactly();
    } finally {
      await admin.close();
      await dropDatabase(url.href);
    }
  });

  /** PostgreSQL copies only a database without connections, and terminated ones take a moment to end. */
  async function copyDatabase(admin: Database, name: string): Promise<void> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      try {
        return await admin.execute(`CREATE DATABASE "${name}_copy" TEMPLATE "${name}"`);
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
    }
  }

  test("a large type stays exact, whether few of its entries change or many", async () => {
    await write(LARGE);
    await build();
    const set = (assignment: string, numbers: string) =>
      write(`UPDATE precast.entries SET ${assignment} WHERE ${POSTS} AND (data ->> 'number')::int % ${numbers}`);
    const title = `data = data || jsonb_build_object('title', 'new ' || (data ->> 'title'))`;
    const modes: string[] = [];
    for (const change of [
      () => set(title, "1000 = 7"),
      () => set(title, "20 = 7"),
      () => set(`status = 'draft', data = data || '{"category": "c1"}'`, "400 = 7"),
      () => set("status = 'published', published_at = published_at + interval '1 year'", "400 = 7"),
      () => set(title, "1 = 0"),
    ]) {
      await change();
      const { mode, paths } = await buildExactly();
      modes.push(mode);
      expect(paths).not.toEqual([]);
    }
    expect(new Set(modes)).toEqual(new Set(["incremental"]));
    await store.database.transaction("read", async (session) => {
      const [app] = await readApps(session, { mediaBaseUrl: "https://media.test" });
      if (app !== undefined)
        expect(await verifyApp(session, app, { out, sample: 60 })).toMatchObject({ differences: [] });
    });
  });

  test.each([
    [6, 20],
    [1_000, 100],
    [100_000, 2_000],
  ])(
    "of a type with %d entries, up to %d are updated one by one, and if more have changed, all",
    async (count, most) => {
      const state = { ...(readTreeState(out, "shop") as TreeState), counts: { posts: count } };
      const findDelta = () =>
        store.database.transaction("read", async (session) => {
          const [app] = await readApps(session, { mediaBaseUrl: "https://media.test" });
          const delta = (await readDeltas(session, app as App, state)).get("posts");
          return delta?.kind === "entries" ? delta.ids.length : delta?.kind;
        });
      await write(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT id, md5(n::text)::uuid, 'published', now(), '{}'
FROM precast.content_types, generate_series(1, ${most}) AS n WHERE slug = 'posts'`);
      expect(await findDelta()).toBe(most);
      await write(`DELETE FROM precast.entries WHERE ${POSTS} AND data = '{}'`);
      expect(await findDelta()).toBe(most);
      await write(`DELETE FROM precast.entries WHERE ${post(3)}`);
      expect(await findDelta()).toBe("rebuild");
    },
  );

  test("changes.json has a line for each change, with the request that a CDN has to purge", async () => {
    await write(`UPDATE precast.entries SET data = data || '{"category": "a b/ä"}' WHERE ${post(1)};
DELETE FROM precast.content_types WHERE slug = 'pages';`);
    const { paths, before, after } = await buildExactly();
    const text = readFileSync(join(out, ".precast", "changes.json"), "utf8");
    const { changes, tags, ...rest } = JSON.parse(text) as ChangesFile;
    const lines = text.split("\n").filter((line) => line.includes('"change":'));
    expect(lines.map((line) => JSON.parse(line.replace(/,$/, "")))).toEqual(changes);
    expect([...tags].sort()).toEqual(["shop", "shop/pages", "shop/posts"]);
    expect(changes.map((change) => change.file).sort()).toEqual(paths);
    for (const [change, app, type, request, path] of [
      [
        "added",
        "shop",
        "posts",
        "/api/v1/posts?filter[category]=a%20b%2F%C3%A4",
        "posts/filter/category/x-6120622fc3a4.json",
      ],
      ["changed", "shop", "posts", "/api/v1/posts?page=3", "posts/page/3.json"],
      ["changed", "shop", "posts", `/api/v1/posts/${idOf(1)}`, `posts/entry/${idOf(1)}.json`],
      ["changed", "shop", null, "/api/v1/_schemas", "_schemas.json"],
      ["gone", "shop", "pages", "/api/v1/pages", "pages/page/1.json"],
      ["gone", "shop", "pages", "/api/v1/pages?sort=-title", "pages/sort/-title.json"],
      ["gone", "shop", "pages", "/api/v1/_schemas/pages", "_schemas/pages.json"],
    ]) {
      expect(changes).toContainEqual({ change, app, type, request, file: file(path ?? "") });
    }
    const counted = (change: string) => changes.filter((one) => one.change === change).length;
    expect(rest).toMatchObject({ added: counted("added"), changed: counted("changed"), gone: counted("gone") });
    expect(counted("gone")).toBe([...before.keys()].filter((path) => !after.has(path)).length);
    await expectAnswers(changes);
  });

  async function expectAnswers(changes: ChangesFile["changes"]): Promise<void> {
    const api = await openApiServer(store, out);
    try {
      for (const { change, app, request, file: path } of changes.filter((one) => one.change !== "gone")) {
        const { status, text } = await api.get(request, { appKey: app });
        expect([change, request, status, text]).toEqual([change, request, 200, readFileSync(join(out, path), "utf8")]);
      }
    } finally {
      await api.close();
    }
  }
});
