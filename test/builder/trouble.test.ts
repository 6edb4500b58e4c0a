/** Builds in trouble: two at once, no permission, a full disk, little memory, a dying database; and their reports. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import {
  changesBetween,
  type Report,
  readChanges,
  readFiles,
  touchProblems,
  treeProblems,
} from "../support/build-problems.ts";
import { type Builder, openBuilder } from "../support/builder.ts";
import { type CommandResult, MAIN, type Place } from "../support/cli.ts";
import { runBuild } from "../support/history.ts";
import { copyEmbedded } from "../support/migrated.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { newPost, POSTS, post, SHOP } from "../support/posts.ts";
import { mountDisk, mountOverlay, NO_DISK, NO_OVERLAY, unlessLacking, unmountDisk } from "../support/root.ts";
import { MEDIA, openStore, type Store } from "../support/site.ts";

const LINUX = process.platform === "linux";
const ROOT = process.getuid?.() === 0;
const DEADLINE = 20_000;
const ONE_SENTENCE = /^[^\n]{20,}\.\n$/;
/** New posts; a post, a filter value and a type removed: files are added, changed and deleted. */
const CHANGES = `${newPost(7)} ${newPost(8)} ${newPost(9)}
DELETE FROM precast.entries WHERE ${post(4)};
UPDATE precast.entries SET data = data || '{"category": "odd"}' WHERE ${POSTS} AND data ->> 'category' = 'even';
DELETE FROM precast.content_types WHERE slug = 'pages';`;

let store: Store;
let place: Place;
let builder: Builder;
let out: string;
const write = (script: string, to = store) => to.database.transaction("write", (session) => session.execute(script));

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`It did not come to this: ${what}.`);
    await sleep(5);
  }
}

async function buildInto(folder: string, from = store) {
  const options = { out: folder, apps: null, full: false, dryRun: false, mediaBaseUrl: MEDIA, now: () => new Date() };
  return runBuild(from.database, options);
}

/** Differences from the tree of a build from scratch. */
async function differences(folder: string, from = store): Promise<string[]> {
  const scratch = join(mkdtempSync(join(from.folder, "scratch-")), "out");
  await buildInto(scratch, from);
  return treeProblems(readFiles(scratch), readFiles(folder), folder);
}

/** Everything below a folder, Precast's own files included: type, bytes and modification time. */
function everything(folder: string): Map<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return new Map(
    paths.map((path) => {
      const { mtimeNs } = statSync(join(folder, path), { bigint: true });
      const isFile = statSync(join(folder, path)).isFile();
      return [path, isFile ? `${mtimeNs} ${readFileSync(join(folder, path), "utf8")}` : "folder"];
    }),
  );
}

beforeAll(async () => {
  builder = await openBuilder();
  ({ store, place } = builder);
});
afterAll(() => builder.close());
beforeEach(async () => {
  out = join(place.folder, "out");
  await builder.reset(SHOP);
});

describe("two builds at once", () => {
  const lock = () => join(out, ".precast", "build.lock");
  let release: () => Promise<unknown> = async () => {};
  afterEach(() => release());

  /** Locks the entries: whoever reads them waits until the lock is released. */
  async function holdEntries(): Promise<void> {
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    await new Promise<void>((locked, failed) => {
      const holding = store.database.transaction("write", async (session) => {
        await session.execute("LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
        locked();
        await ended;
      });
      holding.catch(failed);
      release = () => {
        end();
        return holding;
      };
    });
  }

  async function waiting(): Promise<number> {
    const rows = await store.database.query(
      sql(
        "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      ),
    );
    return Number(rows[0]?.[0]);
  }

  async function startAndHold(): Promise<{ readonly first: Promise<CommandResult>; readonly pid: number }> {
    await holdEntries();
    const first = place.run("build");
    await until("the first build waits for the database", async () => (await waiting()) > 0 && existsSync(lock()));
    return { first, pid: Number.parseInt(readFileSync(lock(), "utf8"), 10) };
  }

  test("the second build waits for the first, or fails and names its process", async () => {
    const { first, pid } = await startAndHold();
    const second = place.run("build");
    // A build that waits does not end before the first one does.
    const ended = await Promise.race([second, sleep(3_000, null, { ref: false })]);
    if (ended !== null) {
      expect([ended.code, ended.stdout]).toEqual([1, ""]);
      expect(ended.stderr).toMatch(ONE_SENTENCE);
      expect(ended.stderr).toContain(String(pid));
    }
    await release();
    expect((await second).code).toBe(ended === null ? 0 : 1);
    expect(await first).toMatchObject({ code: 0, stderr: "" });
    expect(await differences(out)).toEqual([]);
    expect(existsSync(lock())).toBe(false);
  });

  test("the lock of a killed build does not block the next build", async () => {
    const { first, pid } = await startAndHold();
    process.kill(pid, "SIGKILL");
    expect((await first).code).toBe(null);
    expect(existsSync(lock())).toBe(true);
    await release();
    expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
    expect(await differences(out)).toEqual([]);
    expect(existsSync(lock())).toBe(false);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "a build that %s ends removes its stage and leaves the tree as it is",
    async (signal) => {
      await buildInto(out);
      const before = readFiles(out);
      await write(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT type.id, gen_random_uuid(), 'published', '2026-03-01T00:00Z', '{"title": "many", "category": "many"}'
FROM precast.content_types AS type, generate_series(1, 5000)`);
      const build = place.start("build --full");
      await until("files are on the stage", () => existsSync(join(out, ".precast/stage/tree/s-shop/v1/pages/entry")));
      expect((await build.stop(signal)).code).toBe(null);
      expect(existsSync(join(out, ".precast/stage"))).toBe(false);
      expect(existsSync(join(out, ".precast/ready"))).toBe(false);
      expect([...treeProblems(before, readFiles(out), out), ...touchProblems(before, readFiles(out))]).toEqual([]);
    },
  );

  test("the trash of a killed build does not block the next build, which deletes it", async () => {
    await buildInto(out);
    for (const left of ["1", "2"]) mkdirSync(join(out, ".precast/trash", left, "s-shop"), { recursive: true });
    await write(CHANGES);
    expect(await place.run("build --full")).toMatchObject({ code: 0, stderr: "" });
    expect(await differences(out)).toEqual([]);
    expect(existsSync(join(out, ".precast/trash"))).toBe(false);
  });

  test("builds that start together each succeed or name the process that builds, and one succeeds", async () => {
    await buildInto(out);
    await write(CHANGES);
    const ran = await Promise.all([1, 2, 3].map(() => place.run("build")));
    for (const { code, stderr } of ran) {
      if (code === 0) expect(stderr).toBe("");
      else expect([code, stderr]).toEqual([1, expect.stringMatching(/^Another build \(process \d+\) .*\.\n$/)]);
    }
    expect(ran.some(({ code }) => code === 0)).toBe(true);
    expect(await differences(out)).toEqual([]);
  });
});

/** Root may write everywhere; without these capabilities it is bound by permissions like other users. */
const AS_USER = ROOT ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : ["env"];
const NO_USER =
  spawnSync(AS_USER[0] as string, [...AS_USER.slice(1), "true"]).status === 0
    ? null
    : "setpriv cannot drop capabilities here";

describe.skipIf(NO_USER !== null)(
  `a folder that cannot be written${NO_USER === null ? "" : ` (skipped: ${NO_USER})`}`,
  () => {
    const buildAsUser = (folder: string) =>
      place.spawn(AS_USER[0] as string, [...AS_USER.slice(1), process.execPath, MAIN, "build", "--out", folder]);

    function setModes(folder: string, mode: number): void {
      chmodSync(folder, mode);
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (entry.isDirectory()) setModes(join(folder, entry.name), mode);
      }
    }

    test("an embedded database in it is reported as not usable by this user", async () => {
      const data = join(place.folder, "closed-data");
      await copyEmbedded(data);
      chmodSync(join(data, "database"), 0o000);
      const status = [process.execPath, MAIN, "status", "--data-dir", data];
      const { code, stderr } = await place.spawn(AS_USER[0] as string, [...AS_USER.slice(1), ...status], {
        DATABASE_URL: "",
      });
      chmodSync(join(data, "database"), 0o700);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^The embedded .* cannot be used by this user\. .*\n$/),
      ]);
    });

    test("serve refuses a tree that it may not read, and does not take it for missing", async () => {
      await buildInto(out);
      chmodSync(out, 0o000);
      const serve = [process.execPath, MAIN, "serve", "--port", "0", "--out", out];
      const { code, stdout, stderr } = await place.spawn(AS_USER[0] as string, [...AS_USER.slice(1), ...serve]);
      chmodSync(out, 0o755);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`Permission denied for ${join(out, ".precast")}.`);
    });

    test("serve refuses a folder for its ledger in which it may not write", async () => {
      const data = mkdtempSync(join(place.folder, "data-"));
      const ledger = join(data, "ledger");
      mkdirSync(ledger);
      chmodSync(ledger, 0o555);
      const serve = [process.execPath, MAIN, "serve", "--port", "0", "--data-dir", data];
      const { code, stdout, stderr } = await place.spawn(AS_USER[0] as string, [...AS_USER.slice(1), ...serve]);
      expect([code, stdout, stderr]).toEqual([1, "", expect.stringMatching(`Permission denied for ${ledger}.`)]);
    });

    test("a first build fails with one sentence and writes nothing", async () => {
      const parent = mkdtempSync(join(place.folder, "closed-"));
      chmodSync(parent, 0o555);
      const { code, stdout, stderr } = await buildAsUser(join(parent, "out"));
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(ONE_SENTENCE);
      expect(stderr).toContain(parent);
      expect(readdirSync(parent)).toEqual([]);
    });

    test.each([
      ["the whole folder is read-only", ["."]],
      ["the folder of an app is read-only", ["s-shop"]],
      ["the folder .precast is read-only", [".precast"]],
    ])("a failed build leaves the old tree as it is, and the next one makes it exact: %s", async (_, closed) => {
      await buildInto(out);
      await write(CHANGES);
      const before = readFiles(out);
      for (const path of closed) setModes(join(out, path), 0o555);
      const { code, stdout, stderr } = await buildAsUser(out);
      for (const path of closed) setModes(join(out, path), 0o755);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(ONE_SENTENCE);
      expect([...treeProblems(before, readFiles(out), out), ...touchProblems(before, readFiles(out))]).toEqual([]);
      expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
      expect(await differences(out)).toEqual([]);
      const named = new Set(readChanges(out)?.changes.map((change) => change.file));
      const real = changesBetween(before, readFiles(out), ["shop"]);
      const unnamed = real.map((change) => change.file).filter((path) => !named.has(path));
      expect(unnamed.map((path) => `changes.json does not name ${path}`)).toEqual([]);
    });
  },
);

describe.skipIf(NO_DISK !== null)(unlessLacking(NO_DISK, "a full disk"), () => {
  let disk: string;
  beforeEach(() => {
    disk = mkdtempSync(join(place.folder, "disk-"));
    out = join(disk, "out");
  });
  afterEach(() => unmountDisk(disk));

  const PAGE = 4_096;
  /** Fills the disk until only this many pages are free. */
  function fillBytes(free: number): void {
    const block = Buffer.alloc(PAGE, 1);
    const filler = join(disk, "filler");
    writeFileSync(filler, "");
    fillUntilFull(() => writeFileSync(filler, block, { flag: "a" }));
    const size = statSync(filler).size;
    writeFileSync(filler, Buffer.alloc(Math.max(0, Math.floor(size / PAGE) - free) * PAGE, 1));
  }

  /** Creates files until only this many more can be created. */
  function fillFiles(free: number): void {
    mkdirSync(join(disk, "fillers"));
    let count = 0;
    fillUntilFull(() => writeFileSync(join(disk, "fillers", String(++count)), ""));
    for (let file = 1; file <= free; file++) rmSync(join(disk, "fillers", String(file)));
  }

  function fillUntilFull(fill: () => void): void {
    try {
      for (;;) fill();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  test("the stage of a killed build is removed before the next build needs its room", async () => {
    mountDisk(disk, "size=2m");
    await buildInto(out);
    await write(CHANGES);
    mkdirSync(join(out, ".precast/stage/tree"), { recursive: true });
    fillBytes(8);
    renameSync(join(disk, "filler"), join(out, ".precast/stage/tree/filler"));
    expect(await place.run(`build --out ${out}`)).toMatchObject({ code: 0, stderr: "" });
    expect(await differences(out)).toEqual([]);
  });

  test("an embedded database on it is reported as intact, and opens again when there is room", async () => {
    mountDisk(disk, "size=160m");
    const data = join(disk, "data");
    await copyEmbedded(data);
    const own = { DATABASE_URL: "", PRECAST_DATA_DIR: data };
    const demo = fileURLToPath(new URL("../../cli/demo", import.meta.url));
    expect(await place.run(`import ${demo} --quiet`, own)).toMatchObject({ code: 0, stderr: "" });
    fillBytes(16);
    const { code, stdout, stderr } = await place.run("status", own);
    expect([code, stdout]).toEqual([1, ""]);
    // Whether it can be opened depends on what it has still to write.
    expect(stderr).toMatch(
      / cannot be (opened|written to) because its disk is full\. The existing data is intact\. Free .*\n$/,
    );
    rmSync(join(disk, "filler"));
    const again = await place.run("status", own);
    expect([again.code, again.stderr]).toEqual([0, ""]);
  });

  const amounts = [0, 1, 3, 8, 14, 20, 26, 34, 42];
  test.each([
    ["bytes", "size=2m", fillBytes],
    ["files", "size=64m,nr_inodes=600", fillFiles],
  ] as const)(
    "a build without room for all %s leaves the old tree as it is, and succeeds when there is room",
    async (_, options, fill) => {
      mountDisk(disk, options);
      const problems: string[] = [];
      let failed = 0;
      for (const free of amounts) {
        for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true });
        await write("DELETE FROM precast.apps");
        await write(SHOP);
        await buildInto(out);
        await write(CHANGES);
        const before = readFiles(out);
        fill(free);
        const { code, stdout, stderr } = await place.run(`build --out ${out}`);
        const note = (problem: string) => problems.push(`with ${free} free: ${problem}`);
        if (code === 0) for (const problem of await differences(out)) note(problem);
        else {
          failed++;
          if (code !== 1 || stdout !== "" || !/^The disk is full\.[^\n]*\n$/.test(stderr))
            note(`exit ${code}: ${stdout}${stderr}`);
          for (const problem of treeProblems(before, readFiles(out), out))
            note(`the old tree is not intact: ${problem}`);
        }
        for (const name of ["filler", "fillers"]) rmSync(join(disk, name), { recursive: true, force: true });
        const again = await place.run(`build --out ${out}`);
        if (again.code !== 0 || again.stderr !== "") note(`with room again: exit ${again.code}: ${again.stderr}`);
        for (const problem of await differences(out)) note(`with room again: ${problem}`);
      }
      expect(problems).toEqual([]);
      expect(failed).toBeGreaterThan(3);
    },
    120_000,
  );
});

describe.skipIf(NO_DISK !== null)(unlessLacking(NO_DISK, "the folder of an app on another disk"), () => {
  let disk: string;
  afterEach(() => unmountDisk(disk));

  function openDisk(folder: string): void {
    disk = folder;
    mkdirSync(disk, { recursive: true });
    mountDisk(disk, "size=8m");
  }

  test.each([
    ["reached through a symbolic link", () => "other-disk"],
    ["mounted in the tree", () => "out/s-shop"],
  ])("%s is built, and is exact after every change", async (_, diskFolder) => {
    openDisk(join(place.folder, diskFolder()));
    const app = join(out, "s-shop");
    mkdirSync(out, { recursive: true });
    if (disk !== app) symlinkSync(disk, app);
    for (const change of ["", CHANGES, `DELETE FROM precast.entries WHERE ${post(1)}`]) {
      await write(change);
      const before = readFiles(app);
      expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
      const scratch = join(mkdtempSync(join(store.folder, "scratch-")), "out");
      await buildInto(scratch);
      const after = readFiles(app);
      expect(treeProblems(readFiles(join(scratch, "s-shop")), after, app)).toEqual([]);
      expect(touchProblems(before, after)).toEqual([]);
    }
    await write("DELETE FROM precast.apps");
    expect(await place.run("build")).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(disk)).toEqual([]);
  });
});

describe("a symbolic link in the tree", () => {
  const FOLDERS = ["", "_schemas", "posts", "posts/page", "posts/entry", "posts/sort", "posts/filter"];
  const places = [...FOLDERS, "posts/filter/category", "posts/page/1.json"];

  /** Moves a part of the tree out of it, and leaves a link to it in its place. */
  function moveBehindLink(part: string): string {
    const [inside, outside] = [
      join(out, "s-shop/v1", part),
      join(mkdtempSync(join(place.folder, "outside-")), "moved"),
    ];
    renameSync(inside, outside);
    symlinkSync(outside, inside);
    return outside;
  }

  const linksIn = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isSymbolicLink());

  describe.each(places)("in the place of s-shop/v1/%s", (part) => {
    test.each([
      ["build", ""],
      ["build", CHANGES],
      ["build --full", ""],
      ["build --full", CHANGES],
    ])("%s replaces it, and touches nothing behind it", async (line, change) => {
      await buildInto(out);
      const outside = moveBehindLink(part);
      const before = statSync(outside).isFile() ? readFileSync(outside) : everything(outside);
      await write(change);
      expect(await place.call(line)).toMatchObject({ code: 0, stderr: "" });
      expect(linksIn(out)).toEqual([]);
      expect(await differences(out)).toEqual([]);
      expect(statSync(outside).isFile() ? readFileSync(outside) : everything(outside)).toEqual(before);
    });
  });

  test.each(["stage", "ready", "trash"])(
    "in the place of .precast/%s is removed, and nothing behind it",
    async (name) => {
      await buildInto(out);
      const outside = mkdtempSync(join(place.folder, "outside-"));
      mkdirSync(join(outside, "tree/s-shop/v1/posts"), { recursive: true });
      writeFileSync(join(outside, "tree/s-shop/v1/posts/mine"), "");
      writeFileSync(join(outside, "changes.json"), "");
      const before = everything(outside);
      symlinkSync(outside, join(out, ".precast", name));
      await write(CHANGES);
      expect(await place.call("build")).toMatchObject({ code: 0, stderr: "" });
      expect(linksIn(out)).toEqual([]);
      expect(await differences(out)).toEqual([]);
      expect(everything(outside)).toEqual(before);
    },
  );
});

test.skipIf(NO_OVERLAY !== null)(
  unlessLacking(NO_OVERLAY, "a container builds, although a build that died has left its stage in the image"),
  async () => {
    const disk = join(place.folder, "container");
    mkdirSync(disk);
    const folder = mountOverlay(disk, (image) => {
      mkdirSync(join(image, "out/.precast/stage/tree/s-shop"), { recursive: true });
      writeFileSync(join(image, "out/.precast/stage/tree/s-shop/half"), "{");
    });
    try {
      const ran = await place.run(`build --out ${join(folder, "out")}`);
      expect(ran).toMatchObject({ code: 0, stderr: "" });
      expect(readdirSync(join(folder, "out/.precast")).sort()).toEqual(["changes.json", "history.json", "s-shop.json"]);
    } finally {
      unmountDisk(folder);
      unmountDisk(disk);
    }
  },
);

test.each([
  {
    what: "a type with 200 MB in 200 entries",
    heap: 250,
    fields: "('body', 1, 'rich_text', false)",
    lists: "per_page = 20",
    data: "jsonb_build_object('body', repeat('0123456789', 100000))",
    entries: 200,
    stdout: /^shop: wrote 218 files, .* 200\.1 MB /,
  },
  {
    what: "a type whose 50 entries of 100 KB stand in 30 filters each",
    heap: 100,
    fields: "('body', 1, 'text', false), ('tags', 2, 'select', true)",
    lists: "per_page = 100, filterable_fields = '{tags}'",
    data: `jsonb_build_object('body', repeat('0123456789', 10000),
  'tags', (SELECT jsonb_agg('tag' || tag) FROM generate_series(1, 30) AS tag))`,
    entries: 50,
    stdout: /^shop: wrote 89 files, .* 19\d\.\d MB /,
  },
])("$what is built with a heap of $heap MB", async ({ heap, fields, lists, data, entries, stdout }) => {
  await builder.reset(`INSERT INTO precast.apps (key) VALUES ('shop');
INSERT INTO precast.content_types (app_id, slug) SELECT id, 'books' FROM precast.apps;
INSERT INTO precast.fields (content_type_id, name, position, type, multiple)
SELECT id, field.* FROM precast.content_types, (VALUES ${fields}) AS field;
UPDATE precast.content_types SET ${lists};
INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT type.id, gen_random_uuid(), 'published', '2026-01-01T00:00Z', ${data}
FROM precast.content_types AS type, generate_series(1, ${entries});`);
  const ran = await place.spawn(process.execPath, [`--max-old-space-size=${heap}`, MAIN, "build"]);
  expect(ran).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(stdout) });
});

describe("a tree that would be too large", () => {
  /** Entries of 1 MB with so many tags: each tag has a page with it. */
  const books = (
    entries: number,
    tags: number,
  ) => `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT type.id, gen_random_uuid(), 'published', '2026-01-01T00:00Z', jsonb_build_object('body', repeat('0123456789', 100000),
  'tags', (SELECT jsonb_agg('tag' || tag) FROM generate_series(1, ${tags}) AS tag))
FROM precast.content_types AS type, generate_series(1, ${entries}) WHERE slug = 'books'`;

  const refusal = (gigabytes: string, tags: string) =>
    new RegExp(
      `^The tree would have about ${gigabytes} GB, more than --max-size \\(PRECAST_MAX_SIZE\\) allows, which is 1\\.0 GB\\. Nothing was written\\. .* GB of it are filters of shop: books by tags${tags}\\. .*\\n$`,
    );

  beforeEach(async () => {
    await write(`INSERT INTO precast.content_types (app_id, slug) SELECT id, 'books' FROM precast.apps;
INSERT INTO precast.fields (content_type_id, name, position, type, multiple)
SELECT id, field.* FROM precast.content_types, (VALUES ('body', 1, 'text', false), ('tags', 2, 'select', true)) AS field
WHERE slug = 'books';
UPDATE precast.content_types SET per_page = 20, filterable_fields = '{tags}' WHERE slug = 'books'`);
  });

  test("is refused with the field to blame before anything is written, in a full build and after an edit", async () => {
    await buildInto(out);
    const before = everything(out);
    await write(books(3, 1_000));
    for (const line of ["build --max-size 1", "build --max-size 1 --full"]) {
      const { code, stdout, stderr } = await place.run(line);
      expect([line, code, stdout]).toEqual([line, 1, ""]);
      expect(stderr).toMatch(refusal("3\\.[0-9]", line.includes("--full") ? " \\(1,000 values, .* 1\\.0 MB\\)" : ""));
    }
    expect(everything(out)).toEqual(before);
    await write(
      `DELETE FROM precast.entries WHERE content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'books')`,
    );
    expect(await place.run("build --max-size 1")).toMatchObject({ code: 0, stderr: "" });
  });

  test("is built if only its first pages are small enough", async () => {
    await write("UPDATE precast.content_types SET per_page = 1 WHERE slug = 'books'");
    await write(books(30, 50));
    expect(await place.run("build --max-size 1 --full")).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("a database that dies while a build reads it", () => {
  let server: TestServer;
  let own: Store;
  beforeAll(async () => {
    server = await startPostgres();
    own = await openStore("postgres", {}, server.url("postgres"));
  });
  afterAll(async () => {
    // The server may be down, so its database cannot be dropped: only local resources are released.
    await own.database.close();
    rmSync(own.folder, { recursive: true, force: true });
    await server.remove();
  });

  test("leaves the old tree as it is, and the next build makes the exact one", async () => {
    await write(SHOP, own);
    await write(
      `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT type.id, gen_random_uuid(), 'published', '2026-01-01T00:00Z', jsonb_build_object('title', n::text, 'category', (n % 50)::text)
FROM precast.content_types AS type, generate_series(1, 3000) AS n WHERE slug = 'pages'`,
      own,
    );
    await buildInto(out, own);
    await write(
      "UPDATE precast.entries SET data = data || jsonb_build_object('title', (data ->> 'title') || ' edited')",
      own,
    );
    const before = readFiles(out);
    const had = readdirSync(out, { recursive: true }).length;
    const building = place.run("build", { DATABASE_URL: own.url ?? "" });
    // After the lock, the build writes the first files of the new tree, or of the stage.
    await until("the build writes", () => {
      const files = readdirSync(out, { recursive: true, encoding: "utf8" });
      return files.length > had + 3 || files.some((path) => path.endsWith(".tmp"));
    });
    await server.kill();
    const { code, stdout, stderr } = await building;
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^The database did not answer [^\n]*\.\n$/);
    expect(treeProblems(before, readFiles(out), out)).toEqual([]);
    await server.start();
    expect(await place.run("build", { DATABASE_URL: own.url ?? "" })).toMatchObject({ code: 0, stderr: "" });
    expect(await differences(out, own)).toEqual([]);
  });

  test("may lose commits that a build has seen, and hides no later ones that get their transaction ids", async () => {
    await write("DELETE FROM precast.apps", own);
    await write(SHOP, own);
    // An asynchronous commit reaches the disk after this delay: here long enough to be lost.
    await own.database.execute("ALTER SYSTEM SET wal_writer_delay = '2s'");
    await own.database.execute("SELECT pg_reload_conf()");
    await buildInto(out, own);
    const title = (text: string) => `data = data || '{"title": "${text}"}'`;
    await write(
      `SET LOCAL synchronous_commit = off; UPDATE precast.entries SET ${title("lost")} WHERE ${post(3)}`,
      own,
    );
    await buildInto(out, own);
    await server.kill();
    await server.start();
    // This transaction may get the id of the lost one.
    await write(`UPDATE precast.entries SET ${title("kept")} WHERE ${post(5)}`, own);
    await buildInto(out, own);
    expect(await differences(out, own)).toEqual([]);
  });
});

describe("what build and status report", () => {
  /** `write` and `delete`, by file. */
  function listed(stdout: string): string[] {
    const lines = [...stdout.matchAll(/^(\w+) shop (\S+\.json)$/gm)];
    return lines.map(([, verb, path]) => `${/^(delete|gone)/.test(verb ?? "") ? "delete" : "write"} ${path}`).sort();
  }

  test.each(["build --dry-run", "build --full --dry-run"])(
    "%s lists what the build then does, and changes nothing",
    async (line) => {
      await buildInto(out);
      await write(CHANGES);
      const [before, all] = [readFiles(out), everything(out)];
      const { code, stdout, stderr } = await place.run(line);
      const promised = await place.json<{ apps: Report[] }>(line);
      expect([code, stderr]).toEqual([0, ""]);
      expect(everything(out)).toEqual(all);
      const done = await place.json<{ apps: Report[] }>(line.replace(" --dry-run", ""));
      const real = changesBetween(before, readFiles(out), ["shop"]);
      expect(listed(stdout)).toEqual(
        real
          .map(({ change, file }) => `${change === "gone" ? "delete" : "write"} ${file.replace("s-shop/v1/", "")}`)
          .sort(),
      );
      const counts = ({ apps }: { apps: Report[] }) => apps.map(({ seconds: _, ...rest }) => rest);
      expect(counts(promised)).toEqual(counts(done));
      expect(real.length).toBeGreaterThan(20);
    },
  );

  test("the seconds of all apps add up to the time until the last file is in place", async () => {
    await write(`INSERT INTO precast.apps (key) VALUES ('other');`);
    const options = { out, apps: null, full: false, dryRun: false, mediaBaseUrl: MEDIA };
    // The clock advances by one minute when files are put in place, and not before.
    const now = () => new Date(existsSync(join(out, "s-other")) ? 60_000 : 0);
    const [other, shop] = await runBuild(store.database, { ...options, now });
    expect([other?.key, shop?.key]).toEqual(["other", "shop"]);
    expect((other?.seconds ?? 0) + (shop?.seconds ?? 0)).toBeCloseTo(60);
    expect(shop?.seconds).toBeGreaterThan(other?.seconds ?? 0);
    // No more digits than the clock has.
    for (const report of [other, shop]) expect(String(report?.seconds)).toMatch(/^\d+(\.\d{1,3})?$/);
  });

  test("status reports how many entries were changed and removed since the build", async () => {
    await buildInto(out);
    const tree = async () => (await place.json<{ apps: { tree: object }[] }>("status")).apps[0]?.tree;
    expect(await tree()).toMatchObject({ changed: 0, removed: 0, current: true });
    await write(`UPDATE precast.entries SET data = data || '{"title": "edited"}' WHERE ${POSTS} AND data ->> 'category' = 'even';
${newPost(7)} DELETE FROM precast.entries WHERE ${post(1)};`);
    expect(await tree()).toMatchObject({ changed: 4, removed: 1, current: false });
    const { stdout } = await place.run("status");
    expect(stdout).toMatch(/\b4 entries changed\b/);
    expect(stdout).toMatch(/\b1 (entry )?(removed|deleted|gone)\b/);
    await buildInto(out);
    expect(await tree()).toMatchObject({ changed: 0, removed: 0, current: true });
  });

  test.skipIf(!LINUX)(
    "the progress bar shows its final total from the start, and its value never decreases",
    async () => {
      await write(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
SELECT type.id, gen_random_uuid(), 'published', timestamptz '2026-01-01T00:00Z' + n * interval '1 s',
  jsonb_build_object('title', n::text, 'category', (n % 300)::text)
FROM precast.content_types AS type, generate_series(1, 1500) AS n`);
      const first = await watchBar();
      expect(new Set(first.map(({ total }) => total))).toEqual(new Set([readFiles(out).size]));
      expectSteady(first);
      const before = readFiles(out);
      await write(
        `UPDATE precast.entries SET data = data || '{"category": "1"}' WHERE ${POSTS} AND data ->> 'category' < '2'`,
      );
      const second = await watchBar();
      expectSteady(second);
      const written = changesBetween(before, readFiles(out), ["shop"]).filter(({ change }) => change !== "gone").length;
      expect(second[0]?.total).toBeGreaterThanOrEqual(written);
      expect(second[0]?.total).toBeLessThan(readFiles(out).size);
    },
  );

  /** Every state of the bar that a terminal receives, in order. */
  async function watchBar(): Promise<{ value: number; total: number }[]> {
    const { code, stdout } = await place.spawn(
      "script",
      ["-qec", `"${process.execPath}" "${MAIN}" build`, "/dev/null"],
      { TERM: "xterm" },
    );
    expect([code, stdout]).toEqual([0, expect.stringContaining("files")]);
    const pictures = [...stdout.matchAll(/(\d+)\/(\d+) files/g)];
    return pictures.map(([, value, total]) => ({ value: Number(value), total: Number(total) }));
  }

  function expectSteady(pictures: readonly { value: number; total: number }[]): void {
    expect(pictures.length).toBeGreaterThan(0);
    expect(new Set(pictures.map(({ total }) => total)).size).toBe(1);
    expect(pictures.filter(({ value, total }) => value > total)).toEqual([]);
    expect(pictures.map(({ value }) => value)).toEqual(pictures.map(({ value }) => value).sort((a, b) => a - b));
  }
});
