/** The client as an app uses it: reads, errors, waiting, what is kept, prices that are refused; and its size. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type AnyType,
  ApiError,
  createClient as createTypedClient,
  type Model,
  type Options,
  type Sent,
} from "../../dist/client/client.js";
import { createClient as createTypedDevelopmentClient } from "../../dist/client/development.js";
import { sql } from "../../shared/sql/query.ts";
import { idOf, SHOP, shop } from "../support/cli.ts";
import { GOODS, KEY } from "../support/goods.ts";
import { startPostgres } from "../support/postgres.ts";
import { newPost, SHOP as POSTS_SHOP, post } from "../support/posts.ts";
import { rowsOf } from "../support/replica-set.ts";
import { type ApiServer, buildSite, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";

type Shops = {
  readonly [slug in "posts" | "goods" | "authors" | "price" | "catalog" | "constructor" | "type"]: AnyType;
};
const createClient = createTypedClient<Shops>;
const createDevelopmentClient = createTypedDevelopmentClient<Shops>;

/** What `precast types` would write of the shop's posts. */
const MODEL = {
  posts: {
    per_page: 2,
    default_sort: null,
    filterable_fields: ["category", "tags", "price", "active", "day", "author_id"],
    sortable_fields: ["price"],
    fields: [
      { name: "title", type: "text" },
      { name: "body", type: "rich_text" },
      { name: "category", type: "select" },
      { name: "tags", type: "select" },
      { name: "price", type: "number" },
      { name: "active", type: "boolean" },
      { name: "day", type: "date" },
      { name: "author_id", type: "relation" },
      { name: "cover", type: "media" },
    ],
  },
} satisfies Model;

let store: Store;
let server: ApiServer;

beforeAll(async () => {
  store = await openStore("postgres");
  await loadBundles(store, [shop(), GOODS]);
  await buildSite(store);
  server = await openApiServer(store);
});
afterAll(async () => {
  await server.close();
  expect(server.errors).toEqual([]);
  await store.close();
});
afterEach(() => void vi.restoreAllMocks());

/** A client of the shop, and what it sends: path and query, status. */
function openShop(options: Partial<Options> = {}, create = createClient) {
  const sent: Sent[] = [];
  const onRequest = (one: Sent) => void sent.push(one);
  const api = create({ url: server.url, appKey: SHOP, onRequest, ...options });
  const lines = () => sent.map(({ url, status }) => `${url.slice(server.url.length + "/api/v1".length)} ${status}`);
  return { api, sent, lines };
}

async function errorOf(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe("reads", () => {
  test("lists, with what an app wants to filter, sort, page and see", async () => {
    const { api, lines } = openShop();
    const { data, meta } = await api.posts.list({
      filter: { category: { in: ["News", "Match Report"] }, price: { gte: 0.5, lt: 5_000 }, active: true },
      sort: "-price",
      page: 1,
      perPage: 5,
      fields: ["title", "cover"],
    });
    expect(data).toEqual([
      {
        id: idOf(1),
        title: "One",
        cover: "c 1.png",
        cover_url: expect.stringMatching(/\/Shop\/cms\/media\/c%201\.png$/),
      },
    ]);
    expect(meta).toEqual({ current_page: 1, per_page: 5, total: 1, last_page: 1 });
    expect(lines().at(-1)).toBe(
      "/posts?filter[category][in]=News%2CMatch%20Report&filter[price][gte]=0.5&filter[price][lt]=5000&filter[active]=true&per_page=5&sort=-price&page=1&fields=title%2Ccover 200",
    );
  });

  test("entries, as they are and populated", async () => {
    const { api } = openShop();
    expect(await api.posts.get(idOf(1))).toMatchObject({ title: "One", body: "<p>Hello</p>", author_id: idOf(1) });
    expect(await api.posts.get(idOf(1), { populate: ["author_id"] })).toMatchObject({
      title: "One",
      author_id: { id: idOf(1), name: "Ada" },
    });
  });

  test("searches", async () => {
    const { api } = openShop();
    const { data, meta } = await api.posts.search(" one ");
    expect([data.map(({ title }) => title), meta.query, meta.total]).toEqual([["One"], "one", 1]);
  });

  test("the catalog and schemas", async () => {
    const { api } = openShop();
    expect((await api.catalog()).map(({ slug, entry_count }) => [slug, entry_count])).toEqual([
      ["posts", 3],
      ["authors", 1],
      ["notes", 0],
    ]);
    expect((await api.schema("authors")).fields).toMatchObject([{ name: "name", type: "text", required: true }]);
  });

  test("types whose slug is a name of the client's own", async () => {
    const { api, lines } = openShop();
    for (const slug of ["price", "catalog", "constructor", "type"] as const)
      expect(await errorOf(api.type(slug).list())).toMatchObject({ code: "CONTENT_TYPE_NOT_FOUND" });
    expect(lines()).toEqual(["/price 404", "/catalog 404", "/constructor 404", "/type 404"]);
  });

  test("a list of no values matches nothing, and a value with a comma cannot be in one", async () => {
    const { api } = openShop();
    expect((await api.posts.list({ filter: { category: { in: [] } } })).data).toEqual([]);
    expect((await api.posts.list({ filter: { category: { nin: [] } } })).meta.total).toBe(3);
    await expect(api.posts.list({ filter: { category: { in: ["a,b", "c"] } } })).rejects.toThrow(/comma/);
  });

  test("text of any kind arrives as it is", async () => {
    const { api } = openShop();
    const q = "a+b &=#?%[]/é 😀";
    expect((await api.posts.search(q)).meta.query).toBe(q);
  });

  test.each(["", ".", "search", "x/y", "no-uuid"])("%j is no id of an entry", async (id) => {
    const { api } = openShop();
    expect(await errorOf(api.posts.get(id))).toMatchObject({ status: 404, code: "ENTRY_NOT_FOUND", parameter: null });
  });
});

describe("errors", () => {
  test("say what the API says", async () => {
    const { api } = openShop();
    const error = await errorOf(api.posts.list({ sort: "prize" }));
    expect(error).toMatchObject({
      name: "ApiError",
      status: 400,
      code: "INVALID_SORT",
      parameter: "sort",
      retryAfter: null,
    });
    expect(error.message).toMatch(/Did you mean price\?/);
    expect(await errorOf(openShop({ appKey: "nobody" }).api.posts.list())).toMatchObject({
      status: 401,
      code: "INVALID_APP_KEY",
    });
  });

  test("name the address where something else has answered", async () => {
    const url = await openStandIn(() => ({ status: 502, text: "<h1>Bad Gateway</h1>" }));
    const error = await errorOf(createClient({ url, appKey: SHOP }).posts.list());
    expect(error).toMatchObject({ status: 502, code: "NO_ANSWER", message: `502: ${url}/api/v1/posts` });
  });
});

/** What stands before the API in place of the API. */
async function openStandIn(
  answer: () => { status: number; text: string; headers?: Record<string, string> },
): Promise<string> {
  const standIn = createServer((_, response) => {
    const { status, text, headers } = answer();
    response.writeHead(status, headers).end(text);
  });
  await new Promise<void>((resolve) => standIn.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void standIn.close());
  const address = standIn.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

describe("after a 503 with Retry-After", () => {
  test("a request is repeated until the database is back", async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.remove());
    const own = await openStore("postgres", {}, postgres.url("postgres"));
    await loadBundles(own, [GOODS]);
    const away = await openApiServer(own);
    onTestFinished(async () => {
      await away.close();
      await own.close();
    });
    const name = new URL(own.url as string).pathname.slice(1);
    const allow = (allowed: boolean) =>
      rowsOf(postgres.url("postgres"), `ALTER DATABASE "${name}" ALLOW_CONNECTIONS ${allowed}`);
    await allow(false);
    await rowsOf(
      postgres.url("postgres"),
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`,
    );
    const statuses: number[] = [];
    const onRequest = ({ status }: Sent) => {
      statuses.push(status);
      if (statuses.length === 2) void allow(true);
    };
    const api = createClient({ url: away.url, appKey: KEY, retries: 50, onRequest });
    expect((await api.goods.search("chair")).data).toHaveLength(1);
    expect([statuses.slice(0, 2), statuses.at(-1), new Set(statuses)]).toEqual([[503, 503], 200, new Set([503, 200])]);
  });

  const OVERLOADED = JSON.stringify({ error: { code: "OVERLOADED", message: "Too many." } });

  test.each([
    ["as often as is allowed", "1", { retries: 1 }, 2],
    ["never when that is not wanted", "1", { retries: 0 }, 1],
    ["never when the wait is too long", "3600", {}, 1],
    ["never without a number of seconds", "Wed, 21 Oct 2026 07:28:00 GMT", {}, 1],
  ])("a request is repeated %s", async (_, seconds, options, times) => {
    let asked = 0;
    const url = await openStandIn(() => {
      asked++;
      return { status: 503, text: OVERLOADED, headers: { "Retry-After": seconds } };
    });
    const error = await errorOf(createClient({ url, appKey: SHOP, ...options }).posts.list());
    expect(error).toMatchObject({ status: 503, code: "OVERLOADED", retryAfter: Number(seconds) || null });
    expect(asked).toBe(times);
  });

  test("the wait ends when the request is aborted", async () => {
    const url = await openStandIn(() => ({ status: 503, text: OVERLOADED, headers: { "Retry-After": "10" } }));
    const controller = new AbortController();
    const statuses: number[] = [];
    const onRequest = ({ status }: Sent) => {
      statuses.push(status);
      controller.abort();
    };
    const api = createClient({ url, appKey: SHOP, onRequest });
    await expect(api.posts.list({ signal: controller.signal })).rejects.toMatchObject({ name: "AbortError" });
    expect(statuses).toEqual([503]);
  });
});

test("a request is aborted by its signal", async () => {
  const { api, sent } = openShop();
  await expect(api.posts.list({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
  expect(sent).toEqual([]);
});

describe("an answer that has not changed", () => {
  test("is not sent again, and looks the same", async () => {
    const { api, sent } = openShop();
    const first = await api.posts.list();
    const copy = structuredClone(first);
    first.data.length = 0;
    expect(await api.posts.list()).toEqual(copy);
    expect(sent.map(({ status, counted }) => [status, counted])).toEqual([
      [200, false],
      [304, false],
    ]);
  });

  test("is forgotten when a hundred others were asked for", async () => {
    const { api, sent } = openShop();
    for (let page = 1; page <= 101; page++) await api.posts.list({ page });
    await api.posts.list({ page: 1 });
    await api.posts.list({ page: 101 });
    expect(sent.slice(-2).map(({ status }) => status)).toEqual([200, 304]);
  });
});

describe("prices", () => {
  test("are told before a request is sent, with the rule and the free request with the same answer", async () => {
    const { api, sent } = openShop({ model: MODEL });
    expect(await api.price({ type: "posts", perPage: 2, page: 1, sort: "price" })).toEqual({
      target: "/api/v1/posts?per_page=2&page=1&sort=price",
      counted: true,
      rule: "A list with per_page is counted.",
      free: "/api/v1/posts?sort=price",
    });
    expect(await api.price({ type: "posts", id: idOf(1) })).toMatchObject({ counted: false, free: null });
    expect(await api.price({ type: "posts", q: "one" })).toMatchObject({
      counted: true,
      rule: "Search is always counted.",
      free: null,
    });
    expect(await api.price({ type: "posts", filter: { price: { in: ["2.0"] } } })).toMatchObject({
      free: "/api/v1/posts?filter[price]=2.0",
    });
    expect(sent).toEqual([]);
  });

  test("need a schema once where there is no model, and what it hides is not guessed", async () => {
    const { api, lines } = openShop();
    await api.posts.list({ page: 2 });
    expect(await api.price({ type: "posts", perPage: 2 })).toMatchObject({ counted: true, free: null });
    expect(await api.price({ type: "posts", perPage: 20 })).toMatchObject({ counted: true, free: null });
    expect(await api.price({ type: "posts", sort: "published_at", page: 2 })).toMatchObject({ free: null });
    expect(await api.price({ type: "posts", sort: "price", page: 1 })).toMatchObject({
      free: "/api/v1/posts?sort=price",
    });
    expect(lines()).toEqual(["/posts?page=2 200", "/_schemas/posts 200"]);
  });

  test("are refused where that is wanted, for all calls or for one, and nothing is sent", async () => {
    const { api, sent, lines } = openShop({ model: MODEL, counted: "refuse" });
    const error = await errorOf(api.posts.search("one"));
    expect(error).toMatchObject({
      status: 0,
      code: "COUNTED",
      message: "/api/v1/posts/search?q=one is counted. Search is always counted.",
    });
    expect(sent).toEqual([]);
    await api.posts.search("one", { counted: "allow" });
    await api.posts.list({ perPage: 2, page: 1 });
    expect(lines()).toEqual(["/posts/search?q=one 200", "/posts?page=1 200"]);
    const allowed = openShop({ model: MODEL });
    expect(await errorOf(allowed.api.posts.list({ perPage: 3, counted: "refuse" }))).toMatchObject({ code: "COUNTED" });
  });

  test("are a warning where that is wanted", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const { api } = openShop({ model: MODEL, counted: "warn" });
    await api.posts.list({ perPage: 3 });
    await api.posts.list({ perPage: 2 });
    expect(warn.mock.calls).toEqual([["/api/v1/posts?per_page=3 is counted. A list with per_page is counted."]]);
  });

  test("are told of each request that is sent", async () => {
    const { api, sent } = openShop({ model: MODEL });
    await api.posts.search("one");
    await api.posts.list({ perPage: 2 });
    expect(sent).toEqual([
      { url: `${server.url}/api/v1/posts/search?q=one`, counted: true, status: 200, ms: expect.any(Number) },
      { url: `${server.url}/api/v1/posts`, counted: false, status: 200, ms: expect.any(Number) },
    ]);
  });
});

describe("a model that is older than the content types", () => {
  const old = (change: Partial<(typeof MODEL)["posts"]>): Model => ({ posts: { ...MODEL.posts, ...change } });

  test("of another page size gives what was asked for, and is not asked again", async () => {
    const { api, lines } = openShop({ model: old({ per_page: 1 }) });
    const { data, meta } = await api.posts.list({ perPage: 1 });
    expect([data.length, meta.per_page]).toEqual([1, 1]);
    await api.posts.list({ perPage: 1 });
    expect(lines()).toEqual(["/posts 200", "/posts?per_page=1 200", "/_schemas/posts 200", "/posts?per_page=1 304"]);
  });

  test("without a field that is new gives the fields that were asked for", async () => {
    const { api, lines } = openShop({ model: old({ fields: [{ name: "title", type: "text" }] }) });
    const fields = ["title", "published_at", "created_at", "updated_at"];
    const { data } = await api.posts.list({ fields });
    expect(Object.keys(data[0])).toEqual(["id", ...fields]);
    expect(lines()).toHaveLength(2);
  });

  test("with another price is replaced by the schema", async () => {
    const { api, lines } = openShop({ model: old({ sortable_fields: ["day"] }) });
    expect(await api.price({ type: "posts", sort: "price" })).toMatchObject({ counted: true });
    await api.posts.list({ sort: "price" });
    expect(await api.price({ type: "posts", sort: "price" })).toMatchObject({ counted: false });
    expect(lines()).toEqual(["/posts?sort=price 200", "/_schemas/posts 200"]);
  });
});

describe("all pages", () => {
  let own: Store;
  let live: ApiServer;
  const run = (text: string) => own.database.query(sql(text));

  async function openPosts() {
    own = await openStore("postgres");
    await own.database.transaction("write", (session) => session.execute(POSTS_SHOP));
    live = await openApiServer(own);
    onTestFinished(async () => {
      await live.close();
      await own.close();
    });
    return createClient({ url: live.url, appKey: "shop" });
  }

  test("come one after the other, for nothing", async () => {
    const api = await openPosts();
    const titles: string[][] = [];
    for await (const { data } of api.posts.pages()) titles.push(data.map(({ title }) => title));
    expect(titles).toEqual([
      ["posts 6", "posts 5"],
      ["posts 4", "posts 3"],
      ["posts 2", "posts 1"],
    ]);
    const from: string[] = [];
    for await (const { title } of api.posts.all({ page: 3, filter: { category: "even" }, perPage: 1 }))
      from.push(title);
    expect(from).toEqual(["posts 2"]);
  });

  test.each([
    ["is published", newPost(7)],
    ["that was read is deleted", `DELETE FROM precast.entries WHERE ${post(6)}`],
    [
      "that was read is unpublished, and another one",
      `UPDATE precast.entries SET status = 'draft' WHERE ${post(6)} OR ${post(5)}`,
    ],
  ])("have each entry once when one %s meanwhile", async (_, change) => {
    const api = await openPosts();
    const titles: string[] = [];
    for await (const { title } of api.posts.all()) {
      titles.push(title);
      if (titles.length === 2) await run(change);
    }
    expect(titles).toEqual(["posts 6", "posts 5", "posts 4", "posts 3", "posts 2", "posts 1"]);
  });
});

describe("in development", () => {
  test("what an endpoint ignores is a warning", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const { api } = openShop({}, createDevelopmentClient);
    await api.posts.list({ fields: ["titel"], limit: 5 } as never);
    await api.posts.get(idOf(1), { populate: ["autor_id"], fields: ["title"] } as never);
    await api.posts.list({ filter: { price: "cheap" } });
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      "/api/v1/posts?fields=titel&limit=5: limit has no effect: no endpoint has it",
      "/api/v1/posts?fields=titel&limit=5: fields has no effect: the type has no field 'titel' (did you mean title?)",
      `/api/v1/posts/${idOf(1)}?populate=autor_id&fields=title: fields has no effect: a single entry does not have it`,
      `/api/v1/posts/${idOf(1)}?populate=autor_id&fields=title: populate has no effect: the type has no relation 'autor_id' (did you mean author_id?)`,
      `${server.url}/api/v1/posts?filter[price]=cheap: filter[price]: "cheap" is no number`,
    ]);
  });

  test("all else is the same", async () => {
    const { api } = openShop({ counted: "refuse" }, createDevelopmentClient);
    expect((await api.posts.list()).data).toHaveLength(2);
    await expect(api.posts.search("one")).rejects.toMatchObject({ code: "COUNTED" });
  });
});

test("the client is one file of at most 5 kB (gzip), without a dependency", () => {
  const code = readFileSync(fileURLToPath(new URL("../../dist/client/client.js", import.meta.url)));
  expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(5_000);
  expect(code.toString()).not.toMatch(/\bimport\b|\brequire\b|\bprocess\b|\bBuffer\b/);
});
