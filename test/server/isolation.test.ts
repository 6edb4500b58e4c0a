/**
 * Checks that no app shows another app's content or unpublished content. Two apps with the same types, fields and ids
 * hold marker words that only one of them may show, and others, in drafts and an unpublished type, that none may show.
 * Every endpoint, every parameter and every file of the tree is searched for them.
 */
import { cp, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { segment } from "../../shared/api/address.ts";
import { sql } from "../../shared/sql/query.ts";
import { smallApp } from "../support/cli.ts";
import { entry, field, libraryId } from "../support/library.ts";
import type { Bundle, BundleEntry, BundleType } from "../support/model-bundle.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";

/** Keys that a case-insensitive file system takes for the same name. */
const APPS = ["twin", "Twin"] as const;
type AppKey = (typeof APPS)[number];

/** Marker words: those that an app shows, and those that none may show. Each is one search word and a file name. */
const SHOWN: Record<AppKey, string> = { twin: "openalpha", Twin: "openbeta" };
const DRAFTS: Record<AppKey, string> = { twin: "draftalpha", Twin: "draftbeta" };
const UNPUBLISHED: Record<AppKey, string> = { twin: "hiddenalpha", Twin: "hiddenbeta" };
const LEAVER = "leaverword";

/** Posts 1 and 2 are published in both apps, 3 and 4 are drafts, 5 is in `Twin` only, 6 in `twin` until unpublished. */
const [FIRST, SECOND, DRAFT, WITHDRAWN, ONLY, LEAVING] = [1, 2, 3, 4, 5, 6].map(libraryId) as [
  string,
  string,
  string,
  string,
  string,
  string,
];

function bundleOf(key: AppKey): Bundle {
  const other = key === "twin" ? [] : [post(5, SHOWN[key], 50)];
  const leaver = key === "twin" ? [post(6, LEAVER, 60)] : [];
  return {
    app: { key, name: key },
    types: [typeOf("posts", true), typeOf("secrets", false), typeOf("pages", true)],
    entries: {
      posts: [
        { ...post(1, SHOWN[key], 10), published_at: "2026-01-01T00:00:00Z" },
        post(2, SHOWN[key], 20),
        { ...post(3, DRAFTS[key], 30), status: "draft", published_at: null },
        { ...post(4, DRAFTS[key], 40), status: "draft" },
        ...other,
        ...leaver,
      ],
      secrets: [post(1, UNPUBLISHED[key], 70), post(6, UNPUBLISHED[key], 80)],
      pages: [post(1, SHOWN[key], 10)],
    },
  };
}

/** An entry with the word in each text field, and with relations to everything that it must not show. */
function post(number: number, word: string, price: number): BundleEntry {
  return entry(number, "2026-01-05T00:00:00Z", {
    title: word,
    category: [word],
    cover: `${word}.png`,
    body: `<p>${word}</p>`,
    price,
    friend_id: number === 1 ? DRAFT : WITHDRAWN,
    secret_id: FIRST,
    foreign_id: ONLY,
    leaver_id: LEAVING,
    related: [FIRST, DRAFT, WITHDRAWN, ONLY, LEAVING],
    secrets: [FIRST, LEAVING],
    extra: { word },
  });
}

function typeOf(slug: string, published: boolean): BundleType {
  const fields = [
    field("title", "text", { searchable: true }),
    field("category", "select", { multiple: true, searchable: true }),
    field("cover", "media"),
    field("body", "rich_text", { searchable: true }),
    field("price", "number"),
    field("friend_id", "relation", { target: "posts" }),
    field("secret_id", "relation", { target: "secrets" }),
    field("foreign_id", "relation", { target: "posts" }),
    field("leaver_id", "relation", { target: "posts" }),
    field("related", "relation", { target: "posts", multiple: true }),
    field("secrets", "relation", { target: "secrets", multiple: true }),
    field("extra", "json"),
  ];
  const filterable_fields = ["title", "category", "cover", "price", "friend_id", "related", "published_at"];
  const sortable_fields = ["title", "cover", "price"];
  const name = published ? slug : `${slug} hiddenname`;
  return { slug, name, description: "", icon: "", published, per_page: 2, fields, filterable_fields, sortable_fields };
}

function forbiddenTo(key: AppKey): string[] {
  const other = key === "twin" ? "Twin" : "twin";
  const foreign = key === "twin" ? [] : [LEAVER];
  return [SHOWN[other], DRAFTS.twin, DRAFTS.Twin, UNPUBLISHED.twin, UNPUBLISHED.Twin, "hiddenname", ...foreign];
}

const ALL_POPULATED = "friend_id,secret_id,foreign_id,leaver_id,related,secrets";

/** Requests without a marker word: the catalog, and schemas, lists and entries of every type and id. */
function targets(): string[] {
  const types = ["posts", "pages", "secrets", "posts/", "_schemas/posts", "_schemas/secrets", "_schemas"];
  const ids = [FIRST, SECOND, DRAFT, WITHDRAWN, ONLY, LEAVING];
  const sorts = ["title", "cover", "price", "published_at", "created_at", "updated_at"].flatMap((name) => [
    name,
    `-${name}`,
  ]);
  const lists = ["posts", "pages", "secrets"].flatMap((type) => [
    ...sorts.map((sort) => `${type}?sort=${sort}`),
    ...sorts.map((sort) => `${type}?sort=${sort}&per_page=100`),
    ...["1", "2", "3", "4"].map((page) => `${type}?page=${page}`),
    `${type}?per_page=100&fields=title,category,cover,body,price,related,extra`,
    ...["10", "20", "30", "40", "50", "60", "70"].map((price) => `${type}?filter[price]=${price}`),
    `${type}?filter[price][gte]=0&per_page=100`,
    `${type}?filter[price][nin]=10&per_page=100`,
    ...ids.map((id) => `${type}?filter[related]=${id}`),
    ...ids.map((id) => `${type}?filter[friend_id][neq]=${id}&per_page=100`),
    ...ids.flatMap((id) => [`${type}/${id}`, `${type}/${id}?populate=${ALL_POPULATED}`]),
  ]);
  return [...types, ...lists].map((target) => `/api/v1/${target}`);
}

/** Requests that contain a marker word: its echo in their answers must not be mistaken for content. */
function wordTargets(word: string): string[] {
  return ["posts", "pages", "secrets"].flatMap((type) =>
    [
      `?filter[title]=${word}`,
      `?filter[title][contains]=${word}`,
      `?filter[title][starts_with]=${word.slice(0, -1)}`,
      `?filter[title][in]=x,${word}`,
      `?filter[category]=${word}`,
      `?filter[category][contains]=${word}`,
      `?filter[cover]=${word}.png`,
      `/search?q=${word}`,
      `/search?q=${word.slice(0, -1)}`,
      `/search?q=${word}&filter[title]=${word}&sort=title`,
      `/search?q=${word}&fields=title,body,extra&per_page=100`,
    ].map((query) => `/api/v1/${type}${query}`),
  );
}

let store: Store;
let tree: ApiServer;
let live: ApiServer;
const apiOf = (site: string): ApiServer => (site === "the tree" ? tree : live);

beforeAll(async () => {
  store = await openStore("postgres");
  await loadBundles(store, APPS.map(bundleOf));
  await buildSite(store);
  tree = await openApiServer(store);
  live = await openApiServer(store, join(store.folder, "nowhere"));
});

afterAll(async () => {
  const errors = [...tree.errors, ...live.errors];
  await tree.close();
  await live.close();
  await store.close();
  expect(errors).toEqual([]);
});

function shownBy(got: ReceivedAnswer): string {
  if (got.json?.meta?.query === undefined) return got.text;
  return JSON.stringify(got.json.data);
}

/** Published posts of each app: 1, 2 and one that the other app lacks. */
const TOTAL = 3;

describe.each(["the tree", "the database"])("answers from %s", (site) => {
  describe.each(APPS)("for the app %s", (appKey) => {
    const get = (target: string) => apiOf(site).get(target, { appKey });
    const list = async (query: string) => (await get(`/api/v1/posts${query}`)).json;

    test("no answer shows a word of the other app, a draft or an unpublished type", async () => {
      let own = 0;
      for (const target of targets()) {
        const text = shownBy(await get(target));
        for (const word of forbiddenTo(appKey)) expect(text, target).not.toContain(word);
        if (text.includes(SHOWN[appKey])) own++;
      }
      expect(own).toBeGreaterThan(60);
    });

    test("no answer shows a forbidden word to a request that contains one", async () => {
      for (const word of forbiddenTo(appKey)) {
        for (const target of wordTargets(word)) {
          const got = await get(target);
          const items = JSON.stringify(got.json.data ?? got.json.error.message);
          for (const other of forbiddenTo(appKey)) expect(items, target).not.toContain(other);
        }
      }
    });

    test("a request for a forbidden word gets the same answer as one for a word that no app has", async () => {
      for (const word of forbiddenTo(appKey)) {
        const strange = "q".repeat(word.length);
        for (const [index, target] of wordTargets(word).entries()) {
          if (!target.includes(word)) continue;
          const [got, nothing] = await Promise.all([get(target), get(wordTargets(strange)[index] as string)]);
          expect(got.status, target).toBe(nothing.status);
          expect(got.text.replaceAll(word, strange), target).toBe(nothing.text);
        }
      }
    });

    test("every filter and search for the app's own word finds entries", async () => {
      for (const target of wordTargets(SHOWN[appKey]).filter((one) => one.startsWith("/api/v1/posts"))) {
        expect((await get(target)).json.meta.total, target).toBeGreaterThan(0);
      }
    });

    test("entry_count and meta.total count published entries of this app only", async () => {
      const { data } = (await get("/api/v1/_schemas")).json;
      const counts = data.map((item: { slug: string; entry_count: number }) => [item.slug, item.entry_count]);
      expect(counts).toEqual([
        ["pages", 1],
        ["posts", TOTAL],
      ]);
      for (const query of ["", "?sort=price", "?per_page=1", "?filter[price][gte]=0", "?filter[title][neq]=x"]) {
        expect((await list(query)).meta.total, query).toBe(TOTAL);
      }
    });

    test("a sorted list holds published entries of this app only", async () => {
      const { data } = await list("?sort=-price&fields=price&per_page=100");
      expect(data.map((item: { price: number }) => item.price)).toEqual(
        appKey === "twin" ? [60, 20, 10] : [50, 20, 10],
      );
    });

    test("no draft is found by its id or by a filter on its price or relation", async () => {
      for (const id of [DRAFT, WITHDRAWN]) {
        for (const query of ["", "?populate=related"]) {
          const got = await get(`/api/v1/posts/${id}${query}`);
          expect([got.status, got.json.error.code]).toEqual([404, "ENTRY_NOT_FOUND"]);
        }
      }
      for (const price of [30, 40]) {
        expect((await list(`?filter[price]=${price}`)).meta.total).toBe(0);
        expect((await list(`?filter[price][in]=${price}`)).meta.total).toBe(0);
      }
      // Both drafts have this friend as well, and are not counted.
      expect((await list(`?filter[friend_id]=${WITHDRAWN}`)).meta.total).toBe(TOTAL - 1);
    });

    test("requests to an unpublished type get CONTENT_TYPE_NOT_FOUND, without its field names", async () => {
      for (const path of [
        "_schemas/secrets",
        "secrets",
        "secrets?per_page=1",
        `secrets/${FIRST}`,
        "secrets/search?q=hidden",
      ]) {
        const got = await get(`/api/v1/${path}`);
        expect([got.status, got.json.error.code], path).toEqual([404, "CONTENT_TYPE_NOT_FOUND"]);
      }
      const { message } = (await get("/api/v1/secrets?filter[nope]=x")).json.error;
      expect(message).not.toContain("price");
    });

    test("an id that both apps have gets this app's own entry", async () => {
      for (const id of [FIRST, SECOND]) {
        expect((await get(`/api/v1/posts/${id}`)).json.data.title).toBe(SHOWN[appKey]);
      }
      const only = await get(`/api/v1/posts/${ONLY}`);
      expect(only.status).toBe(appKey === "twin" ? 404 : 200);
    });

    test("populate expands only entries that are published in this app", async () => {
      const { data } = (await get(`/api/v1/posts/${FIRST}?populate=${ALL_POPULATED}`)).json;
      expect([data.friend_id, data.secret_id, data.secrets]).toEqual([null, null, []]);
      expect(data.foreign_id?.title).toBe(appKey === "twin" ? undefined : SHOWN.Twin);
      expect(data.leaver_id?.title).toBe(appKey === "twin" ? LEAVER : undefined);
      const related = data.related.map((item: { id: string }) => item.id);
      expect(related).toEqual(appKey === "twin" ? [FIRST, LEAVING] : [FIRST, ONLY]);
    });

    test("a request with the ETag of the other app gets 200, not 304", async () => {
      const other = appKey === "twin" ? "Twin" : "twin";
      for (const target of ["/api/v1/posts", `/api/v1/posts/${FIRST}`, "/api/v1/posts?per_page=1"]) {
        const { etag } = (await apiOf(site).get(target, { appKey: other })).headers;
        const got = await apiOf(site).get(target, { appKey, headers: { "If-None-Match": etag as string } });
        expect(got.status, target).toBe(200);
      }
    });
  });
});

type File = { readonly name: string; readonly text: string };

/** All files of a folder, with their names relative to it. */
async function filesOf(folder: string): Promise<File[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  return Promise.all(
    names.map(async (path) => ({ name: path.slice(folder.length), text: await readFile(path, "utf8") })),
  );
}

/** The files of an app: its part of the tree, and its build state. */
async function filesOfApp(out: string, appKey: AppKey): Promise<File[]> {
  const state = (await filesOf(join(out, ".precast"))).filter(({ name }) => name === `/${segment(appKey)}.json`);
  return [...(await filesOf(join(out, segment(appKey)))), ...state];
}

/** Whether a file has the word in its text or name, as it is or in hexadecimal. */
function holds({ name, text }: File, word: string): boolean {
  const hexadecimal = Buffer.from(word).toString("hex");
  return [name, text].some((one) => one.includes(word) || one.includes(hexadecimal));
}

describe("the files of the tree", () => {
  test.each(APPS)("contain no word, in text or name, that the app %s must not show", async (appKey) => {
    const files = await filesOfApp(join(store.folder, "out"), appKey);
    expect(files.length).toBeGreaterThan(40);
    for (const word of forbiddenTo(appKey)) {
      expect(files.filter((file) => holds(file, word)).map(({ name }) => name)).toEqual([]);
    }
    expect(files.filter((file) => holds(file, SHOWN[appKey])).length).toBeGreaterThan(20);
  });

  test("contain no word of a draft or an unpublished type, in any folder", async () => {
    const files = await filesOf(join(store.folder, "out"));
    for (const word of [...Object.values(DRAFTS), ...Object.values(UNPUBLISHED), "hiddenname"]) {
      expect(files.filter((file) => holds(file, word)).map(({ name }) => name)).toEqual([]);
    }
  });

  test.each(APPS)("of the app %s include none for a draft or an unpublished type", async (appKey) => {
    const names = (await filesOfApp(join(store.folder, "out"), appKey)).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith("/v1/secrets") || name.includes("_schemas/secrets"))).toEqual([]);
    expect(names.filter((name) => name.includes("/entry/")).sort()).toEqual(
      [
        `pages/entry/${FIRST}`,
        ...[FIRST, SECOND, appKey === "twin" ? LEAVING : ONLY].map((id) => `posts/entry/${id}`),
      ].map((name) => `/v1/${name}.json`),
    );
    expect(names.filter((name) => /filter\/price\/s-(30|40|70|80)/.test(name))).toEqual([]);
  });
});

describe("the tree of another app that was moved into the place of an app's", () => {
  const [folder, state] = [segment("twin"), `.precast/${segment("twin")}.json`];
  const [other, otherState] = [segment("other"), `.precast/${segment("other")}.json`];
  const twinState = `.precast/${segment("Twin")}.json`;

  beforeAll(() => loadBundles(store, [smallApp("other", ["Ada"])]));

  test.each([
    ["its folder", [[other, folder]]],
    [
      "its folder and its state",
      [
        [other, folder],
        [otherState, state],
      ],
    ],
    [
      "folder and state of an app with the same types",
      [
        [segment("Twin"), folder],
        [twinState, state],
      ],
    ],
  ])("is no tree, and the log says so once: %s", async (_, moves) => {
    const out = join(store.folder, `moved-${moves.flat().join("-").replaceAll("/", "-")}`);
    await buildSite(store, out);
    const api = await openApiServer(store, out);
    const get = (path: string) => api.get(`/api/v1/${path}`, { appKey: "twin" });
    const paths = ["_schemas", "posts", "authors", `posts/${FIRST}`, "posts?sort=title"];
    const before = await Promise.all(paths.map(get));
    expect(api.warnings).toEqual([]);
    for (const [from, to] of moves as [string, string][]) {
      await rm(join(out, to), { recursive: true });
      await rename(join(out, from), join(out, to));
    }
    // A build would end with this list: the server looks at what it knows.
    await rename(join(out, ".precast/changes.json"), join(out, ".precast/changes"));
    await cp(join(out, ".precast/changes"), join(out, ".precast/changes.json"));
    for (const [index, path] of paths.entries()) expect((await get(path)).text, path).toBe(before[index]?.text);
    expect(api.warnings).toEqual([expect.stringContaining("those of another app")]);
    await buildSite(store, out);
    for (const [index, path] of paths.entries()) expect((await get(path)).text, path).toBe(before[index]?.text);
    expect((await get("posts")).headers["cache-status"]).toBe("precast; hit");
    await api.close();
  });
});

/** Runs last: it changes the content. */
describe("unpublishing", () => {
  const get = (api: ApiServer, target: string) => api.get(`/api/v1/${target}`, { appKey: "twin" });
  const COUNTED = [
    "posts?per_page=100",
    "posts?per_page=100&fields=title,body",
    "posts?sort=-price&per_page=100",
    `posts?filter[title]=${LEAVER}&per_page=5`,
    "posts?filter[price][gte]=60",
    `posts?filter[title][contains]=${LEAVER}`,
    "posts/search?q=leaver",
    `posts/${FIRST}?populate=leaver_id,related`,
    `posts/${LEAVING}?populate=friend_id`,
  ];
  const FREE = [
    "posts",
    "posts?page=2",
    `posts?filter[title]=${LEAVER}`,
    "posts?filter[price]=60",
    "posts?sort=-price",
    `posts/${LEAVING}`,
  ];

  async function withdraw(): Promise<void> {
    const where = "content_type_id IN (SELECT id FROM precast.content_types WHERE slug = 'posts')";
    await store.database.query(
      sql(`UPDATE precast.entries SET status = 'draft' WHERE ${where} AND id = $1::uuid`, [LEAVING]),
    );
  }

  test("an unpublished entry disappears from live answers at once, and from the tree with the next build", async () => {
    for (const target of COUNTED) expect(shownBy(await get(tree, target)), target).toContain(LEAVER);
    await withdraw();

    for (const target of COUNTED) expect(shownBy(await get(tree, target)), target).not.toContain(LEAVER);
    for (const target of [...COUNTED, ...FREE]) expect(shownBy(await get(live, target)), target).not.toContain(LEAVER);
    expect((await get(tree, `posts/${LEAVING}?populate=friend_id`)).json.error.code).toBe("ENTRY_NOT_FOUND");
    expect((await get(tree, "posts?per_page=100")).json.meta.total).toBe(2);
    expect((await get(tree, `posts/${FIRST}?populate=leaver_id`)).json.data.leaver_id).toBeNull();
    expect((await get(tree, `posts/${LEAVING}`)).json.data.title).toBe(LEAVER);

    await buildSite(store);
    for (const target of FREE) expect(shownBy(await get(tree, target)), target).not.toContain(LEAVER);
    expect((await get(tree, `posts/${LEAVING}`)).json.error.code).toBe("ENTRY_NOT_FOUND");
    expect((await get(tree, "_schemas")).json.data[1].entry_count).toBe(2);
    // `changes.json` lists what a CDN has to purge, so it names the entry. It is not for clients.
    const files = (await filesOf(join(store.folder, "out"))).filter(({ name }) => !name.endsWith("/changes.json"));
    expect(files.filter((file) => holds(file, LEAVER)).map(({ name }) => name)).toEqual([]);
    expect(files.filter(({ name }) => name.includes(`entry/${LEAVING}`)).map(({ name }) => name)).toEqual([]);
  });

  const OF_A_TYPE = [
    "posts?per_page=1",
    "posts?fields=title",
    "posts?filter[price][gt]=0",
    "posts?filter[title]=x&sort=title",
    "posts?sort=title&page=1",
    "posts/search?q=open",
    `posts/${FIRST}?populate=friend_id`,
    `posts/${FIRST}?populate=nothing`,
    `posts/${LEAVING}?populate=friend_id`,
  ];

  describe("an unpublished type", () => {
    beforeAll(async () => {
      await cp(join(store.folder, "out"), join(store.folder, "before"), { recursive: true });
      await store.database.query(sql("UPDATE precast.content_types SET published = false WHERE slug = 'posts'"));
    });

    test.each(OF_A_TYPE)("gets 404 in live answers at once, although the tree still has it: %s", async (target) => {
      const got = await get(tree, target);
      expect([got.status, got.json.error?.code]).toEqual([404, "CONTENT_TYPE_NOT_FOUND"]);
      expect(got.headers["x-request-counted"]).toBe("true");
      expect(got.headers["cache-control"]).toBe("no-store");
    });

    test("is no longer populated in entries of other types", async () => {
      const { data } = (await get(tree, `pages/${FIRST}?populate=leaver_id,related`)).json;
      expect([data.leaver_id, data.related]).toEqual([null, []]);
    });

    test("stays in the tree until the next build removes it", async () => {
      expect((await get(tree, "posts")).json.meta.total).toBe(2);
      expect((await get(live, "posts")).json.error.code).toBe("CONTENT_TYPE_NOT_FOUND");
      await buildSite(store);
      for (const target of ["posts", "_schemas/posts", `posts/${FIRST}`, ...OF_A_TYPE]) {
        expect((await get(tree, target)).json.error.code, target).toBe("CONTENT_TYPE_NOT_FOUND");
      }
      const slugs = (await get(tree, "_schemas")).json.data.map((item: { slug: string }) => item.slug);
      expect(slugs).toEqual(["pages"]);
      const files = await filesOf(join(store.folder, "out"));
      expect(files.filter(({ name }) => name.includes("/posts"))).toEqual([]);
      expect((await filesOf(join(store.folder, "before"))).some(({ name }) => name.includes("/posts"))).toBe(true);
    });
  });
});
