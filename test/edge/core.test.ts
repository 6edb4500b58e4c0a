/** The mapping core of the edges: it names the file that the server's code names, or leaves a request to the origin. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PATTERNS } from "../../cli/edge/vcl.ts";
import { EDGE_KEYS, edgeId, HASHED_VALUES, LITERAL_VALUES, NAMED_VALUES } from "../support/edge-apps.ts";
import { fileOfRequest, type MapRequest, openCore } from "../support/edge-core.ts";
import { type EdgeSite, openEdgeSite } from "../support/edge-site.ts";
import { edgeVectors, isFile, type Vector } from "../support/edge-vectors.ts";

let site: EdgeSite;
let map: MapRequest;

beforeAll(async () => {
  site = await openEdgeSite();
  map = openCore(site.apps);
});
afterAll(() => site.close());

const isThere = (file: string) => existsSync(join(site.out, file));
const mapped = ({ method, target, keys }: Vector) => map(method, target, keys);
const told = ({ method, target, keys }: Vector, what: unknown) => `${method} ${target} [${keys}]: ${what}`;

const VECTORS = edgeVectors();

test("there are more than 200 different requests to test edges with", () => {
  expect(new Set(VECTORS.map((vector) => told(vector, ""))).size).toBeGreaterThan(200);
});

describe("the mapping core", () => {
  test("names the file that the server's code names, and the file exists", () => {
    const files = VECTORS.filter(isFile);
    const ours = files.map((vector) => told(vector, fileOfRequest(site.apps, vector.target, vector.keys)));
    expect(files.map((vector) => told(vector, mapped(vector)))).toEqual(ours);
    expect(files.filter((vector) => !isThere(mapped(vector)))).toEqual([]);
  });

  test("leaves every request without a file to the origin, or names a file that does not exist", () => {
    const others = VECTORS.filter((vector) => !isFile(vector) && vector.class !== "preflight");
    expect(others.filter((vector) => mapped(vector) !== "origin" && isThere(mapped(vector)))).toEqual([]);
  });

  test("leaves refused and malformed requests to the origin without naming a file", () => {
    const named = VECTORS.filter(({ class: kind }) => ["refused", "malformed"].includes(kind)).filter(
      (vector) => mapped(vector) !== "origin",
    );
    expect(named).toEqual([]);
  });

  test("answers OPTIONS itself, without an app key", () => {
    const preflights = VECTORS.filter((vector) => vector.class === "preflight");
    expect(new Set(preflights.map(mapped))).toEqual(new Set(["preflight"]));
  });
});

describe("the server", () => {
  test("answers each request that edges are tested with as the class of the request says", async () => {
    for (const vector of VECTORS) {
      const { method, target, keys } = vector;
      const got = await site.origin.get(target, {
        method,
        headers: keys.length === 0 ? {} : { "X-App-Key": [...keys] },
      });
      const seen = `${got.status} ${got.headers["x-request-counted"]} ${got.headers["cache-status"]}`;
      expect(told(vector, seen)).toMatch(isFile(vector) ? FROM_TREE : EXPECTED[vector.class as keyof typeof EXPECTED]);
    }
  });

  const FROM_TREE = /: 200 false precast; hit$/;
  const EXPECTED = {
    missing: /: (200|400|404) false precast; hit$/,
    counted: /: (200|400|404) true precast; fwd=bypass$/,
    refused: /: (401|404|405|414) undefined undefined$/,
    malformed: /: (404 undefined undefined|404 false precast; hit)$/,
    preflight: /: 204 undefined undefined$/,
  };
});

describe("for random requests", () => {
  test("a file that the core names is the one that the server's code names, or does not exist", () => {
    let files = 0;
    const property = fc.property(arbitraryTarget(), fc.constantFrom(...EDGE_KEYS), (target, key) => {
      const file = map("GET", target, [key]);
      if (file === "origin") return;
      if (!isThere(file)) return;
      files += 1;
      expect(file, target).toBe(fileOfRequest(site.apps, target, [key]));
    });
    fc.assert(property, { numRuns: 20_000, seed: 6 });
    // The property proves nothing unless enough files are found.
    expect(files).toBeGreaterThan(1_000);
  });

  test("the file that a pattern names is the one that the core names, and no two patterns match", () => {
    const patterns = PATTERNS.map(({ target, file }) => ({ pattern: new RegExp(`^${target}$`), file }));
    const literal = fc.constantFrom(...edgeVectors().map(({ target }) => target));
    let named = 0;
    const property = fc.property(fc.oneof(arbitraryTarget(), literal), (target) => {
      const found = patterns.filter(({ pattern }) => pattern.test(target));
      expect(found.length, target).toBeLessThan(2);
      for (const { pattern, file } of found) {
        named += 1;
        expect(`/x-53686f70/v1/${target.replace(pattern, file)}`).toBe(map("GET", target, ["Shop"]));
      }
    });
    fc.assert(property, { numRuns: 20_000, seed: 8 });
    expect(named).toBeGreaterThan(1_000);
  });

  test("the core names every file that the server's code names, except for odd encodings and typed values", () => {
    const property = fc.property(arbitraryTarget(), fc.constantFrom(...EDGE_KEYS), (target, key) => {
      const ours = fileOfRequest(site.apps, target, [key]);
      if (ours === null || !isThere(ours) || !isStrict(target) || hasTypedValue(target)) return;
      expect(map("GET", target, [key]), target).toBe(ours);
    });
    fc.assert(property, { numRuns: 20_000, seed: 7 });
  });
});

function isStrict(target: string): boolean {
  try {
    return decodeURIComponent(target) !== "" && !/#|[^\x21-\x7e]/.test(target);
  } catch {
    return false;
  }
}

/** Typed values have spellings beside the canonical one, which are left to the origin. */
function hasTypedValue(target: string): boolean {
  return /price|active|day|filter%5[Bb]filter|filter\[filter|_at/.test(decodeURIComponent(target));
}

function arbitraryTarget(): fc.Arbitrary<string> {
  const path = fc.oneof(
    { weight: 6, arbitrary: fc.constant("/posts") },
    fc.constantFrom(
      "/_schemas",
      "/_schemas/posts",
      `/posts/${edgeId(1)}`,
      "/page",
      "/nope",
      "/posts/search",
      "//posts",
    ),
    fc.string({ unit: fc.constantFrom(..."/.%posts2f_Ss"), maxLength: 8 }).map((text) => `/${text}`),
  );
  const pairs = fc.array(fc.tuple(arbitraryName(), arbitraryValue()), { maxLength: 3 });
  return fc.tuple(path, fc.constantFrom("", "", "/"), pairs, fc.boolean()).map(([start, slash, list, bare]) => {
    const query = list.map(([name, value]) => `${name}=${value}`).join("&");
    return `/api/v1${start}${slash}${query === "" && bare ? "" : `?${query}`}`;
  });
}

function arbitraryName(): fc.Arbitrary<string> {
  const field = fc.constantFrom("title", "title", "price", "active", "owner", "filter", "Title", "");
  const ends = fc.constantFrom("", "", "", "[eq]", "[like]", "[gte]", "[]", "x");
  const filter = fc.tuple(field, ends).map(([name, end]) => `filter[${name}]${end}`);
  const scalar = fc.constantFrom("page", "sort", "per_page", "fields", "q", "populate", "utm_source", "filter", "");
  return fc.oneof({ weight: 4, arbitrary: filter }, scalar).chain(arbitrarySpelling);
}

function arbitraryValue(): fc.Arbitrary<string> {
  const known = fc.constantFrom(...LITERAL_VALUES, ...NAMED_VALUES, ...HASHED_VALUES);
  const short = fc.constantFrom("", "1", "2", "02", "title", "-title", "price", "0.5", "true", "TRUE", edgeId(1));
  const any = fc.string({ unit: "grapheme", maxLength: 5 });
  const broken = fc.string({ unit: fc.constantFrom(..."%ace29f+&=["), maxLength: 6 });
  return fc.oneof(
    { weight: 4, arbitrary: known.chain(arbitrarySpelling) },
    { weight: 3, arbitrary: short.chain(arbitrarySpelling) },
    any.chain(arbitrarySpelling),
    broken,
  );
}

/** Spellings of a text: with needless encoding, hex digits in either case, and blanks as `%20` or `+`. */
function arbitrarySpelling(text: string): fc.Arbitrary<string> {
  const usual = encodeURIComponent(text);
  const upper = [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join("");
  const spellings = [usual, usual.replaceAll("%20", "+"), usual.replaceAll("%5B", "[").replaceAll("%5D", "]"), upper];
  return fc.constantFrom(...spellings, upper.toLowerCase());
}
