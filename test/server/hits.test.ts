/** Checks answers from the tree, which the server keeps in memory: of the last build only, compressed on request. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCoder } from "../../server/http/encode.ts";
import { makeBody } from "../../shared/api/answer.ts";
import { sql } from "../../shared/sql/query.ts";
import { GOODS, ID, KEY } from "../support/goods.ts";
import type { Bundle } from "../support/model.ts";
import {
  type ApiServer,
  askBytes,
  buildSite,
  loadBundles,
  openApiServer,
  openStore,
  type Store,
} from "../support/site.ts";
import { until } from "../support/until.ts";

const STORY = "A chair, a lamp and a table. ".repeat(200);

/** The goods, one of them with a text that is long enough to be compressed. */
const SHOP: Bundle = {
  ...GOODS,
  types: GOODS.types.map((type) => ({
    ...type,
    fields: [
      ...type.fields,
      { name: "story", type: "text" as const, label: "Story", required: false, searchable: false },
    ],
  })),
  entries: {
    goods: (GOODS.entries.goods ?? []).map((entry, index) => ({
      ...entry,
      data: { ...entry.data, story: index === 0 ? STORY : null },
    })),
  },
};

const LIST = "/api/v1/goods";
const LONG = `/api/v1/goods/${ID}`;
const SHORT = `/api/v1/goods/${ID.slice(0, -1)}2`;

let store: Store;
let api: ApiServer;

beforeAll(async () => {
  store = await openStore("postgres");
  await loadBundles(store, [SHOP]);
  await buildSite(store);
  api = await openApiServer(store);
});
afterAll(async () => {
  await api.close();
  await store.close();
});

const get = (target: string) => api.get(target, { appKey: KEY });
const setTitle = (id: string, title: string) =>
  store.database.query(
    sql("UPDATE precast.entries SET data = jsonb_set(data, '{title}', to_jsonb($2::text)) WHERE id = $1::uuid", [
      id,
      title,
    ]),
  );

describe("a build while the server runs", () => {
  test("is visible in the next answer, however often the old one was sent", async () => {
    for (let round = 0; round < 20; round++) {
      await setTitle(ID, `chair ${round}`);
      await buildSite(store);
      for (let again = 0; again < 3; again++) {
        expect((await get(LONG)).json.data.title).toBe(`chair ${round}`);
        expect((await get(LIST)).text).toContain(`chair ${round}`);
      }
    }
  });

  test("removes an unpublished entry, and restores it when it is published again", async () => {
    expect((await get(SHORT)).status).toBe(200);
    await store.database.query(
      sql("UPDATE precast.entries SET status = 'draft' WHERE id = $1::uuid", [SHORT.slice(-36)]),
    );
    await buildSite(store);
    expect((await get(SHORT)).status).toBe(404);
    await store.database.query(
      sql("UPDATE precast.entries SET status = 'published' WHERE id = $1::uuid", [SHORT.slice(-36)]),
    );
    await buildSite(store);
    expect((await get(SHORT)).status).toBe(200);
  });

  test("never gives concurrent requests the body of one build with the ETag of another", async () => {
    const seen = new Map<string, Set<string>>();
    let isBuilding = true;
    const clients = Array.from({ length: 8 }, async () => {
      while (isBuilding) {
        const { headers, text } = await get(LONG);
        const etag = headers.etag as string;
        seen.set(etag, (seen.get(etag) ?? new Set()).add(text));
      }
    });
    for (let round = 0; round < 15; round++) {
      await setTitle(ID, `stool ${round}`);
      await buildSite(store);
    }
    isBuilding = false;
    await Promise.all(clients);
    expect(seen.size).toBeGreaterThan(1);
    expect([...seen.values()].filter((bodies) => bodies.size > 1)).toEqual([]);
  });
});

describe("a tree in the middle of a build", () => {
  const filter = (value: string) => `${LIST}?filter[title]=${value}`;
  const change = (columns: string) => store.database.query(sql(`UPDATE precast.content_types SET ${columns}`));
  const folderOf = (out: string) => join(out, "s-shop", "v1", "goods");

  /** Calls `run` in the middle of the build that follows a change of the type: `move` does the part that is done. */
  async function halfway(columns: string, move: (out: string, next: string) => void, run: () => Promise<void>) {
    const out = join(store.folder, "out");
    const next = join(store.folder, "next");
    const before = await store.database.query(
      sql("SELECT filterable_fields::text, per_page::text FROM precast.content_types"),
    );
    await change(columns);
    await buildSite(store, next);
    move(out, next);
    await run();
    const [[fields, perPage] = []] = before;
    await change(`filterable_fields = '${fields}', per_page = ${perPage}`);
    rmSync(next, { recursive: true });
    rmSync(out, { recursive: true });
    await buildSite(store);
  }

  test("refuses a filter that the new build no longer has, once its app is in place", async () => {
    for (const [value, total] of [
      ["lamp", 1],
      ["nobody", 0],
    ] as const) {
      expect((await get(filter(value))).json.meta.total).toBe(total);
    }
    const move = (out: string, next: string) => {
      renameSync(join(next, ".precast", "s-shop.json"), join(out, ".precast", "s-shop.json"));
      rmSync(join(folderOf(out), "filter"), { recursive: true });
    };
    await halfway("filterable_fields = '{}'", move, async () => {
      expect((await get(filter("table"))).json.error.code).toBe("INVALID_FILTER");
    });
  });

  test("refuses such a filter also if it was answered before and its file is still there", async () => {
    expect((await get(filter("table"))).json.meta.total).toBe(1);
    const move = (out: string, next: string) =>
      renameSync(join(next, ".precast", "s-shop.json"), join(out, ".precast", "s-shop.json"));
    const isRefused = async () => (await get(filter("table"))).json.error?.code === "INVALID_FILTER";
    await halfway("filterable_fields = '{}'", move, () => until("the refusal", isRefused));
  });

  test("gives a page past the last one the per_page and total of the current first page", async () => {
    expect((await get(`${LIST}?page=99`)).json.meta.per_page).toBe(2);
    const move = (out: string, next: string) =>
      renameSync(join(folderOf(next), "page", "1.json"), join(folderOf(out), "page", "1.json"));
    await halfway("per_page = 1", move, async () => {
      const { total } = (await get(LIST)).json.meta;
      await until("the new first page", async () => (await get(LIST)).json.meta.per_page === 1);
      const { meta } = (await get(`${LIST}?page=98`)).json;
      expect(meta).toMatchObject({ per_page: 1, total });
    });
  });
});

describe("a tree that is changed other than by a build", () => {
  const entryFile = () => join(store.folder, "out", "s-shop", "v1", "goods", "entry", `${ID}.json`);

  const renameOver = (file: string, text: string | Buffer) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };

  test("serves a file that was replaced, without a restart", async () => {
    const { text } = await get(LONG);
    renameOver(entryFile(), text.replace("stool", "perch"));
    await until("the other file", async () => (await get(LONG)).text.includes("perch"));
    renameOver(entryFile(), text);
    await until("the first file", async () => (await get(LONG)).text === text);
  });

  test.each<[string, (bytes: Buffer) => Buffer]>([
    ["empty", () => Buffer.alloc(0)],
    ["truncated", (bytes) => bytes.subarray(0, bytes.length - 5)],
    ["filled with zeros", (bytes) => Buffer.alloc(bytes.length)],
    ["filled with zeros after its first 100 bytes", (bytes) => bytes.fill(0, 100)],
  ])(
    "answers live while a file is %s, as a power failure may leave it, and then from the file again",
    async (_, damage) => {
      const goods = join(store.folder, "out", "s-shop", "v1", "goods");
      const files = {
        [LONG]: entryFile(),
        [LIST]: join(goods, "page", "1.json"),
        [`${LIST}?page=9`]: join(goods, "page", "1.json"),
      };
      for (const [target, file] of Object.entries(files)) {
        const { text } = await get(target);
        const bytes = readFileSync(file);
        renameOver(file, damage(Buffer.from(bytes)));
        await until("a live answer", async () => (await get(target)).headers["cache-status"] === "precast; fwd=miss");
        expect(await get(target)).toMatchObject({ status: 200, text });
        renameOver(file, bytes);
        await until("the file", async () => (await get(target)).headers["cache-status"] === "precast; hit");
        expect((await get(target)).text).toBe(text);
      }
    },
  );

  test.each([
    ["the first page", LIST, "page/1.json"],
    ["a sort", `${LIST}?sort=-title`, "sort/-title.json"],
  ])("answers live while the file of %s is lost, and then from the file again", async (_, target, path) => {
    const file = join(store.folder, "out", "s-shop", "v1", "goods", path);
    const { text } = await get(target);
    renameSync(file, `${file}.lost`);
    await until("a live answer", async () => (await get(target)).headers["cache-status"] === "precast; fwd=miss");
    expect((await get(target)).text).toBe(text);
    renameSync(`${file}.lost`, file);
    await until("the file", async () => (await get(target)).headers["cache-status"] === "precast; hit");
    expect((await get(target)).text).toBe(text);
  });

  test("is replaced by live answers as soon as it is deleted, and serves again once it is rebuilt", async () => {
    expect((await get(LIST)).headers["cache-status"]).toBe("precast; hit");
    rmSync(join(store.folder, "out"), { recursive: true });
    expect((await get(LIST)).headers["cache-status"]).toBe("precast; fwd=miss");
    await buildSite(store);
    expect((await get(LIST)).headers["cache-status"]).toBe("precast; hit");
  });
});

describe("content codings", () => {
  const bytesOf = (target: string, accept?: string, more: Record<string, string> = {}) =>
    askBytes(api.url, target, {
      appKey: KEY,
      headers: { ...more, ...(accept === undefined ? {} : { "Accept-Encoding": accept }) },
    });

  test.each([
    ["gzip", "gzip"],
    ["br", "br"],
    ["gzip, deflate, br, zstd", "br"],
    ["gzip, br;q=0.5", "gzip"],
    ["br;q=0, gzip;q=0.1", "gzip"],
    ["gzip;q=0.5, identity", undefined],
    ["*", "br"],
    ["*;q=0", undefined],
    ["br;q=0, *", "gzip"],
    ["GZIP", "gzip"],
    ["gzip;q=0", undefined],
    ["deflate", undefined],
    ["identity", undefined],
    ["", undefined],
    [";;,=", undefined],
    [undefined, undefined],
  ])("Accept-Encoding: %s gives the coding %s, also when asked again", async (accept, coding) => {
    const plain = await bytesOf(LONG);
    for (let again = 0; again < 2; again++) {
      const got = await bytesOf(LONG, accept);
      expect([got.status, got.headers["content-encoding"]]).toEqual([200, coding]);
      expect(got.headers.vary).toBe("X-App-Key, Accept-Encoding");
      expect(got.headers["content-length"]).toBe(String(got.bytes.length));
      const decode = coding === "br" ? brotliDecompressSync : coding === "gzip" ? gunzipSync : (bytes: Buffer) => bytes;
      expect(decode(got.bytes).equals(plain.bytes)).toBe(true);
      if (coding !== undefined) expect(got.bytes.length).toBeLessThan(plain.bytes.length / 2);
    }
  });

  test("each coding has an ETag of its own, which gives 304 only with that coding", async () => {
    const etags = new Map<string, string>();
    for (const coding of ["identity", "gzip", "br"]) {
      etags.set(coding, (await bytesOf(LONG, coding)).headers.etag as string);
    }
    expect(new Set(etags.values()).size).toBe(3);
    for (const asked of etags.keys()) {
      for (const [named, etag] of etags) {
        const got = await bytesOf(LONG, asked, { "If-None-Match": etag });
        expect([asked, named, got.status]).toEqual([asked, named, asked === named ? 304 : 200]);
        if (got.status === 304)
          expect([got.headers.etag, got.headers.vary]).toEqual([etag, "X-App-Key, Accept-Encoding"]);
      }
    }
  });

  test("a body that is read again, for another spelling of its request, is not compressed again", async () => {
    const { encode } = openCoder();
    const [first, again] = [await encode(makeBody(STORY), "br"), await encode(makeBody(STORY), "br")];
    expect(again.bytes).toBe(first.bytes);
    expect((await encode(makeBody(`${STORY} `), "br")).bytes).not.toEqual(first.bytes);
  });

  test("live answers are compressed as well", async () => {
    const target = `${LONG}?populate=title`;
    const [plain, coded] = [await bytesOf(target), await bytesOf(target, "gzip")];
    expect(coded.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(coded.bytes).equals(plain.bytes)).toBe(true);
    expect(coded.headers.etag).not.toBe(plain.headers.etag);
  });

  test("small bodies are not compressed, and HEAD has the headers of the compressed GET", async () => {
    const small = await bytesOf(SHORT, "gzip, br");
    expect(small.headers["content-encoding"]).toBeUndefined();
    const [get, head] = [
      await bytesOf(LONG, "br"),
      await askBytes(api.url, LONG, { method: "HEAD", appKey: KEY, headers: { "Accept-Encoding": "br" } }),
    ];
    const own = { date: "", "x-request-id": "" };
    expect({ ...head.headers, ...own }).toEqual({ ...get.headers, ...own });
    expect(head.bytes.length).toBe(0);
  });
});

describe("the cache for answers of the tree", () => {
  test.each([0, 10_000])("stays within %i bytes and does not change the answers", async (size) => {
    const other = await openApiServer(store, join(store.folder, "out"), { memory: size });
    try {
      for (const target of [LIST, LONG, SHORT, `${LIST}?page=2`, `${LIST}?sort=title`, LIST, LONG]) {
        expect((await other.get(target, { appKey: KEY })).text).toBe((await get(target)).text);
        expect(other.hits.size().bytes).toBeLessThanOrEqual(size);
      }
      expect(other.hits.size().entries > 0).toBe(size > 0);
    } finally {
      await other.close();
    }
  });

  test("answers with the content of each page file, also when asked again", async () => {
    const root = join(store.folder, "out", "s-shop", "v1", "goods", "page");
    for (const name of await readdir(root)) {
      for (let again = 0; again < 2; again++) {
        const got = await get(`${LIST}?page=${name.replace(".json", "")}`);
        expect(got.text).toBe(await readFile(join(root, name), "utf8"));
      }
    }
  });
});

test("a request without an app key gets MISSING_APP_KEY although an app has the key 'undefined'", async () => {
  await loadBundles(store, [{ ...GOODS, app: { key: "undefined", name: "Undefined" } }]);
  await buildSite(store);
  for (const target of [`${LIST}?page=2`, `${LIST}?per_page=1`]) {
    expect((await api.get(target, { appKey: "undefined" })).status).toBe(200);
    expect((await api.get(target)).json.error.code).toBe("MISSING_APP_KEY");
  }
});
