/** The media port: sends the files of the folder of media with their types, and nothing else, whatever is asked for. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type MediaServer, openMedia } from "../../server/media.ts";
import { askBytes, type RequestOptions } from "../support/site.ts";
import { until } from "../support/until.ts";

let work: string;
let server: MediaServer;
const errors: unknown[] = [];

const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), "precast-media-"));
  const folder = join(work, "data/media/Shop/cms/media");
  mkdirSync(join(folder, "below"), { recursive: true });
  const files = {
    ...{ "c 1.png": "a picture", "ä&+.jpg": "b", "a.svg": PICTURE, "a.html": "<p>", "a.txt": "ä", noending: "?" },
    ...{ "empty.png": "", ".hidden.png": "secret", "below/deep.png": "deep", "big.mp4": "x".repeat(50_000_000) },
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  utimesSync(join(folder, "c 1.png"), 1_000, 1_000);
  writeFileSync(join(work, "secret.png"), "secret");
  writeFileSync(join(work, "data/media/top.png"), "top");
  symlinkSync("../../../../../secret.png", join(folder, "link.png"));
  symlinkSync("c 1.png", join(folder, "near.png"));
  symlinkSync("Shop", join(work, "data/media/Link"));
  execFileSync("mkfifo", [join(folder, "pipe.png")]);
  server = await openMedia({
    ...{ host: "127.0.0.1", port: 0 },
    folder: join(work, "data/media"),
    onError: (error) => errors.push(error),
  });
});
afterAll(async () => {
  await server.close();
  rmSync(work, { recursive: true });
  expect(errors).toEqual([]);
});

const ask = async (url: string, target: string, asked: RequestOptions = {}) => {
  const { bytes, ...got } = await askBytes(url, target, asked);
  return { ...got, text: bytes.toString("utf8") };
};
const MEDIA = "/Shop/cms/media";
const get = (name: string, headers: Record<string, string> = {}, method = "GET") =>
  ask(server.url, `${MEDIA}/${name}`, { method, headers });

describe("a file", () => {
  test.each([
    ["c%201.png", "image/png", "a picture"],
    ["c%201.png?v=2", "image/png", "a picture"],
    ["%C3%A4%26%2B.jpg", "image/jpeg", "b"],
    ["a.txt", "text/plain; charset=utf-8", "ä"],
    ["noending", "application/octet-stream", "?"],
    ["empty.png", "image/png", ""],
  ])("%s is sent as %s", async (name, type, body) => {
    const { status, headers, text } = await get(name);
    expect([status, headers["content-type"], text]).toEqual([200, type, body]);
    expect(headers).toMatchObject({
      "content-length": String(Buffer.byteLength(body)),
      "x-content-type-options": "nosniff",
      "access-control-allow-origin": "*",
    });
  });

  test("that could run scripts is opened in a sandbox, and pictures and videos are not", async () => {
    for (const name of ["a.svg", "a.html", "a.txt", "noending"])
      expect((await get(name)).headers["content-security-policy"]).toMatch(/default-src 'none';.* sandbox$/);
    for (const name of ["c%201.png", "big.mp4"])
      expect((await get(name, {}, "HEAD")).headers["content-security-policy"]).toBeUndefined();
  });

  test("that the browser has is not sent again, until it changes", async () => {
    const { etag, "last-modified": modified, "cache-control": control } = (await get("c%201.png")).headers;
    expect([modified, control]).toEqual(["Thu, 01 Jan 1970 00:16:40 GMT", "public, no-cache"]);
    for (const headers of [{ "If-None-Match": String(etag) }, { "If-Modified-Since": String(modified) }])
      expect(await get("c%201.png", headers)).toMatchObject({ status: 304, text: "" });
    expect((await get("c%201.png", { "If-None-Match": '"1"' })).status).toBe(200);
    expect(await get("c%201.png", {}, "HEAD")).toMatchObject({ status: 200, text: "", headers: { etag } });
  });

  test.each([
    ["bytes=2-5", {}, 206, "pict", "bytes 2-5/9"],
    ["bytes=2-", {}, 206, "picture", "bytes 2-8/9"],
    ["bytes=-3", {}, 206, "ure", "bytes 6-8/9"],
    ["bytes=7-99", {}, 206, "re", "bytes 7-8/9"],
    ["bytes=9-", {}, 416, "", "bytes */9"],
    ["bytes=5-2", {}, 200, "a picture", undefined],
    ["bytes=0-1,3-4", {}, 200, "a picture", undefined],
    ["lines=1-2", {}, 200, "a picture", undefined],
    ["bytes=2-5", { "If-Range": '"another"' }, 200, "a picture", undefined],
    ["bytes=2-5", { "If-Range": "Thu, 01 Jan 1970 00:16:40 GMT" }, 206, "pict", "bytes 2-5/9"],
  ])("is sent in parts: %s %j gives %s", async (Range, more, status, text, range) => {
    const answer = await get("c%201.png", { Range, ...more });
    expect([answer.status, answer.text, answer.headers["content-range"]]).toEqual([status, text, range]);
  });

  test("is closed when its reader leaves in the middle, and everything else is", async () => {
    const opened = () => readdirSync("/proc/self/fd").length;
    const before = opened();
    const leaving = new AbortController();
    const { body } = await fetch(`${server.url}${MEDIA}/big.mp4`, { signal: leaving.signal });
    await body?.getReader().read();
    leaving.abort();
    for (const name of ["a.svg", "empty.png", "below", "pipe.png"]) await get(name);
    await get("a.svg", { Range: "bytes=999-" });
    await get("a.svg", {}, "HEAD");
    await until("all files to be closed", () => opened() <= before);
  });
});

describe("anything else is not there", () => {
  test.each([
    "/",
    "/Shop",
    "/Shop/cms/media",
    "/Shop/cms/media/",
    "/Shop/cms/media/nothing.png",
    "/Shop/cms/media/C%201.png",
    "/Shop/cms/media/below",
    "/Shop/cms/media/below/deep.png",
    "/Shop/cms/media/below%2Fdeep.png",
    "/Shop/cms/media/.hidden.png",
    "/Shop/cms/media/%2Ehidden.png",
    "/Shop/cms/media/link.png",
    "/Shop/cms/media/near.png",
    "/Shop/cms/media/pipe.png",
    "/Link/cms/media/c%201.png",
    "/top.png",
    "/../secret.png",
    "/Shop/cms/media/../../../../../secret.png",
    "/Shop/cms/media/..%2F..%2F..%2F..%2F..%2Fsecret.png",
    "/Shop/cms/media/..%5C..%5Csecret.png",
    "/Shop/cms/media/%252e%252e%252fsecret.png",
    "/Shop/cms/media/..",
    "/Shop/cms/media/%2e%2e",
    "/../Shop/cms/media/c%201.png",
    "/%2e%2e/cms/media/c%201.png",
    "//Shop/cms/media/c%201.png",
    "/Shop//cms/media/c%201.png",
    "/Shop/cms\\media/c%201.png",
    "/Shop/cms/media/c%201.png/",
    "/Shop/cms/media/c%201.png%00",
    "/Shop/cms/media/a%zz.png",
    "/Shop/cms/media/%ff.png",
    `/Shop/cms/media/${"a".repeat(300)}`,
    "/shop%2e/cms/media/c%201.png",
    "http://elsewhere/Shop/cms/media/c%201.png",
  ])("%s", async (target) => {
    const { status, text, headers } = await ask(server.url, target);
    expect([status, text, headers["cache-control"]]).toEqual([404, "There is no such file.\n", "no-store"]);
  });

  test("and nothing can be changed", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, headers } = await get("c%201.png", {}, method);
      expect([method, status, headers.allow]).toEqual([method, 405, "GET, HEAD"]);
    }
  });

  test("when no import has brought media, nothing is", async () => {
    const empty = await openMedia({ host: "127.0.0.1", port: 0, folder: join(work, "none"), onError: () => {} });
    expect((await ask(empty.url, `${MEDIA}/c%201.png`)).status).toBe(404);
    await empty.close();
  });
});
