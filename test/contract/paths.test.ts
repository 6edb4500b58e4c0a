/**
 * Paths and app keys: how a request target is read before anything is looked up (shared/contract.md section 3).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { LIBRARY_KEY, libraryId } from "../support/library.ts";
import { ask, askRaw, openSites, SITES } from "../support/sites.ts";

openSites(SITES);

describe.each(SITES)("reading paths on %s", (site) => {
  const id = libraryId(1);

  test.each([
    ["/api/v1/works/", "/api/v1/works"],
    ["/api/v1/_schemas/", "/api/v1/_schemas"],
    ["/api/v1/_schemas/works/", "/api/v1/_schemas/works"],
    [`/api/v1/works/${id}/?`, `/api/v1/works/${id}`],
    ["/api/v1/works/search/?q=orchard", "/api/v1/works/search?q=orchard"],
    ["/api/v1/%77orks", "/api/v1/works"],
    ["/%61pi/v%31/works", "/api/v1/works"],
    ["/api/v1/%5Fschemas", "/api/v1/_schemas"],
    ["/api/v1/works/%73earch?q=orchard", "/api/v1/works/search?q=orchard"],
    [`/api/v1/works/${id.replace("-", "%2d")}`, `/api/v1/works/${id}`],
    ["http://other.example/api/v1/works?page=1", "/api/v1/works"],
    ["HTTPS://other.example:8443/api/v1/works", "/api/v1/works"],
  ])("%s is answered like %s", async (target, same) => {
    const [got, expected] = await Promise.all([target, same].map((one) => askRaw(site, one, { appKey: LIBRARY_KEY })));
    expect(got?.status).toBe(200);
    expect(got?.text).toBe(expected?.text);
  });

  test.each([
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v2/works",
    "/API/v1/works",
    "/works",
    "//api/v1/works",
    "/api//v1/works",
    "/api/v1//works",
    "/api/v1/works//",
    `/api/v1/works//${id}`,
    `/api/v1/works/${id}//`,
    `/api/v1/works/${id}/x`,
    "/api/v1/works/search/x",
    "/api/v1/_schemas/works/x",
    "/api/v1/_schemas//",
    "/api/./v1/works",
    "/x/../api/v1/works",
    "/api\\v1\\works",
    "/api%2Fv1/works",
    "/api/v1/%",
    "/api/v1/%ZZ",
    "/api/v1/works/%FF",
    "/api/v1/works/%C0%AE",
    "/health",
    "/favicon.ico",
  ])("%s is NOT_FOUND, with and without an app key", async (target) => {
    for (const appKey of [LIBRARY_KEY, "unknown", undefined]) {
      const got = await askRaw(site, target, appKey === undefined ? {} : { appKey });
      expect([got.status, got.json.error.code]).toEqual([404, "NOT_FOUND"]);
      expect(got.headers["x-request-counted"]).toBeUndefined();
      expect(got.headers["cache-control"]).toBe("no-store");
    }
  });

  test.each([
    ["/works/.", "ENTRY_NOT_FOUND"],
    ["/works/..", "ENTRY_NOT_FOUND"],
    ["/works/%2e%2e", "ENTRY_NOT_FOUND"],
    ["/works/../authors", "NOT_FOUND"],
    ["/./works", "CONTENT_TYPE_NOT_FOUND"],
    ["/works\\search", "CONTENT_TYPE_NOT_FOUND"],
    ["/works%2Fsearch", "CONTENT_TYPE_NOT_FOUND"],
    ["/%2577orks", "CONTENT_TYPE_NOT_FOUND"],
    ["/Works", "CONTENT_TYPE_NOT_FOUND"],
    ["/works%20", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schema", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/_schemas", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/nope", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/hidden", "CONTENT_TYPE_NOT_FOUND"],
    ["/_schemas/search?q=aa", "200"],
    ["/hidden", "CONTENT_TYPE_NOT_FOUND"],
    [`/hidden/${id}`, "CONTENT_TYPE_NOT_FOUND"],
    ["/hidden/search?q=nobody", "CONTENT_TYPE_NOT_FOUND"],
    ["/toString", "CONTENT_TYPE_NOT_FOUND"],
    ["/__proto__", "CONTENT_TYPE_NOT_FOUND"],
    [`/works/${libraryId(7)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(8)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(99)}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(1)}x`, "ENTRY_NOT_FOUND"],
    [`/works/{${libraryId(1)}}`, "ENTRY_NOT_FOUND"],
    [`/works/${libraryId(1).replaceAll("-", "")}`, "ENTRY_NOT_FOUND"],
    ["/works/1", "ENTRY_NOT_FOUND"],
    ["/works/Search?q=orchard", "ENTRY_NOT_FOUND"],
    ["/works/_schemas", "ENTRY_NOT_FOUND"],
  ])("%s is answered with %s", async (target, code) => {
    const got = await ask(site, target);
    expect(got.json.error?.code ?? "200").toBe(code);
    expect(got.status).toBe(code === "200" ? 200 : 404);
  });
});

describe.each(SITES)("app keys on %s", (site) => {
  test.each([
    ["no header", undefined, "MISSING_APP_KEY"],
    ["an empty key", "", "MISSING_APP_KEY"],
    ["an unknown key", "nobody", "INVALID_APP_KEY"],
    ["a key in another case", LIBRARY_KEY.toLowerCase(), "INVALID_APP_KEY"],
    ["a known key after a dash", "-Lib_1", "INVALID_APP_KEY"],
    ["a key of 129 letters", "a".repeat(129), "INVALID_APP_KEY"],
    ["the name of a built-in property", "constructor", "INVALID_APP_KEY"],
  ])("a key that is missing or unknown is refused: %s", async (_, appKey, code) => {
    for (const target of ["/_schemas", "/works", "/nope", `/works/${libraryId(1)}?populate=x`, "/works/search?q=x"]) {
      const got = await askRaw(site, `/api/v1${target}`, appKey === undefined ? {} : { appKey });
      expect([got.status, got.json.error.code]).toEqual([401, code]);
      expect(Object.keys(got.json.error)).toEqual(["code", "message"]);
      expect(got.headers["x-request-counted"]).toBeUndefined();
      expect(got.headers["cache-control"]).toBe("no-store");
    }
  });

  test("two X-App-Key headers are read as one key with a comma, which is unknown", async () => {
    const got = await askRaw(site, "/api/v1/works", { headers: { "X-App-Key": [LIBRARY_KEY, LIBRARY_KEY] } });
    expect([got.status, got.json.error.code]).toEqual([401, "INVALID_APP_KEY"]);
  });
});
