/** The tests that every edge must pass: it gets all requests of edge-vectors.ts, and must answer as the origin does. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { printTarget } from "../../server/http/observe.ts";
import { refusalAnswer } from "../../shared/api/answer.ts";
import { DATABASE_UNAVAILABLE } from "../../shared/api/errors.ts";
import type { Running } from "./edge-program.ts";
import { type EdgeSite, openEdgeSite } from "./edge-site.ts";
import { edgeVectors, type FileClass, isFile, type Vector } from "./edge-vectors.ts";
import { askBytes, type ReceivedBytes, type RequestOptions } from "./site.ts";

export type Proof = {
  readonly name: string;
  /** Starts the edge with the configuration that the program prints for it. */
  readonly start: (site: EdgeSite) => Promise<Running>;
  /** The classes of files that the edge cannot name, and may fetch from the origin. */
  readonly servedByOrigin: readonly FileClass[];
  /** Which requests the host itself refuses, with 400 or 404, before it applies its configuration. */
  readonly refuses?: (vector: Vector) => boolean;
  /** Which requests the host changes before its configuration sees them; they are left out. */
  readonly isAltered?: (vector: Vector) => boolean;
  /** How the host spells a target that it forwards, by default as it came; null where it requests another one. */
  readonly forwardedAs?: ((target: string) => string) | null;
  /** Whether the host answers with an error page of its own when the origin is down. */
  readonly hasOwnErrorPage?: boolean;
  /** Whether the host passes Accept-Encoding on to the origin, which then compresses its answers. */
  readonly forwardsAcceptEncoding?: boolean;
  /** Whether the host is set up to compress files itself. */
  readonly compresses?: boolean;
  /** The options of `precast serve`, the origin. */
  readonly serveOptions?: string;
  /** Skips the tests, because the program is not installed. */
  readonly skip?: boolean;
};

/** The headers that must be the same in the edge's answer as in the origin's. */
const HEADERS = [
  "content-type",
  "x-request-counted",
  "cache-status",
  "cache-control",
  "cdn-cache-control",
  "access-control-allow-origin",
  "access-control-expose-headers",
  "access-control-allow-methods",
  "access-control-allow-headers",
  "access-control-max-age",
  "timing-allow-origin",
  "x-request-warning",
  "retry-after",
  "allow",
  "cache-tag",
];

const VECTORS = edgeVectors();

const describeVector = ({ method, target, keys }: Vector) => `${method} ${target.slice(0, 200)} [${keys}]`;

export function proveEdge({ name, start, servedByOrigin, skip = false, ...host }: Proof): void {
  const {
    refuses = () => false,
    isAltered = () => false,
    forwardedAs = (target: string) => target,
    serveOptions = "",
    hasOwnErrorPage = false,
    forwardsAcceptEncoding = false,
    compresses = false,
  } = host;
  describe.skipIf(skip)(name, () => {
    let site: EdgeSite;
    let edge: Running;
    const vectors = VECTORS.map((vector, index) => ({ ...vector, id: `${name.replaceAll(" ", "-")}-${index}` })).filter(
      (vector) => !isAltered(vector),
    );
    const own = vectors.filter((vector) => isFile(vector) && !servedByOrigin.includes(vector.class as FileClass));
    const taken = vectors.filter((vector) => !refuses(vector));

    beforeAll(async () => {
      site = await openEdgeSite(serveOptions);
      edge = await start(site);
    });
    afterAll(async () => {
      await edge?.stop();
      await site?.close();
    });

    test("answers every request that the host accepts with the origin's status, headers and bytes", async () => {
      expect(taken.length).toBeGreaterThan(200);
      for (const vector of taken) {
        const [expected, got] = [
          await askOne(site.origin.url, vector, "origin"),
          await askOne(edge.url, vector, vector.id),
        ];
        expect(shown(vector, got)).toEqual(shown(vector, expected));
        expect(got.headers.vary, describeVector(vector)).toMatch(/\bX-App-Key\b/);
      }
    });

    test("answers nameable files and preflights itself, and forwards other requests with their target", async () => {
      const reached = await site.reached();
      expect(own.filter(({ id }) => reached.has(id)).map(describeVector)).toEqual([]);
      const others = taken.filter((vector) => !isFile(vector) && vector.class !== "preflight");
      expect(others.filter(({ id }) => !reached.has(id)).map(describeVector)).toEqual([]);
      expect(vectors.filter((vector) => vector.class === "preflight" && reached.has(vector.id))).toEqual([]);
      if (forwardedAs === null) return;
      for (const { id, target } of others) {
        expect(reached.get(id)).toBe(printTarget(forwardedAs(target)));
      }
    });

    test("answers the preflight of a browser and the request after it as the contract says (section 7)", async () => {
      const preflight = vectors.find((vector) => vector.class === "preflight") as Vector;
      const asked = {
        Origin: "https://shop.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-app-key,if-none-match,traceparent",
      };
      const { status, headers, bytes } = await askOne(edge.url, preflight, "browser", asked);
      expect([status, bytes.length]).toEqual([204, 0]);
      expect(headers).toMatchObject({
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET, HEAD, OPTIONS",
        "access-control-allow-headers":
          "X-App-Key, Accept, Content-Type, If-None-Match, X-Request-Id, traceparent, tracestate",
        "access-control-max-age": "7200",
      });
      for (const kind of ["plain", "counted", "missing"]) {
        const vector = vectors.find((candidate) => candidate.class === kind) as Vector;
        const answer = await askOne(edge.url, vector, "browser", { Origin: "https://shop.example" });
        expect(answer.headers).toMatchObject({
          "access-control-allow-origin": "*",
          "access-control-expose-headers":
            "ETag, X-Request-Counted, X-Request-Warning, X-Request-Id, Cache-Status, Retry-After",
          "timing-allow-origin": "*",
        });
      }
    });

    if (host.refuses !== undefined) {
      test("answers 400 or 404 to requests that the host itself refuses", async () => {
        const refused = vectors.filter(refuses);
        expect(refused).not.toEqual([]);
        for (const vector of refused) {
          const { status } = await askOne(edge.url, vector, vector.id);
          expect([400, 404], describeVector(vector)).toContain(status);
        }
      });
    }

    test("answers If-None-Match without the origin: 304 for a matching ETag, the whole file for another", async () => {
      for (const kind of new Set(own.map((vector) => vector.class))) {
        const vector = own.find((candidate) => candidate.class === kind) as Vector;
        const { headers, bytes } = await askOne(edge.url, vector, "validator");
        const etag = headers.etag as string;
        expect(etag).toMatch(/^(W\/)?"[^"]+"$/);
        for (const tag of [etag, `"other", ${etag}`, "*", `W/${etag.replace(/^W\//, "")}`]) {
          const again = await askOne(edge.url, vector, "validator", { "If-None-Match": tag });
          expect([tag, again.status, again.bytes.length, again.headers.etag]).toEqual([tag, 304, 0, etag]);
          expect(again.headers["x-request-counted"]).toBe("false");
          expect(again.headers["access-control-allow-origin"]).toBe("*");
        }
        const other = await askOne(edge.url, vector, "validator", { "If-None-Match": '"other"' });
        expect([other.status, other.bytes.equals(bytes)]).toEqual([200, true]);
      }
      expect([...(await site.reached()).keys()]).not.toContain("validator");
    });

    test.each(["plain", "counted"])("ignores Range, other conditions and other headers (%s request)", async (kind) => {
      const vector = vectors.find((candidate) => candidate.class === kind) as Vector;
      const { bytes } = await askOne(edge.url, vector, "whole");
      const dates = datesIn(site.out).map((date) => ({ "If-Modified-Since": date }));
      for (const headers of [...WHOLE, ...dates]) {
        const got = await askOne(edge.url, vector, "whole", headers);
        expect([headers, got.status, got.bytes.equals(bytes)]).toEqual([headers, 200, true]);
      }
    });

    test("passes on the origin's ETag and Content-Length to a client that accepts no compression", async () => {
      const vector = vectors.find((candidate) => candidate.class === "counted") as Vector;
      const [there, got] = [
        await askOne(site.origin.url, vector, "itself"),
        await askOne(edge.url, vector, "uncompressed"),
      ];
      expect([got.headers.etag, got.headers["content-length"]]).toEqual([
        there.headers.etag,
        there.headers["content-length"],
      ]);
    });

    const codings = forwardsAcceptEncoding ? ", and a counted answer with Content-Encoding: gzip" : "";
    test(`gives a client that accepts gzip the same status and, decompressed, the same body${codings}`, async () => {
      for (const kind of ["plain", "counted", "missing"]) {
        const vector = vectors.find((candidate) => candidate.class === kind) as Vector;
        const [plain, got] = [
          await askOne(edge.url, vector, "compressed"),
          await askOne(edge.url, vector, "compressed", { "Accept-Encoding": "gzip" }),
        ];
        if (forwardsAcceptEncoding && kind === "counted") expect(got.headers["content-encoding"]).toBe("gzip");
        if (compresses && kind === "plain") {
          expect(got.headers["content-encoding"]).toBe("gzip");
          expect(plain.headers.vary).toMatch(/Accept-Encoding/);
        }
        const bytes = got.headers["content-encoding"] === "gzip" ? gunzipSync(got.bytes) : got.bytes;
        expect([kind, got.status, bytes.toString("latin1")]).toEqual([
          kind,
          plain.status,
          plain.bytes.toString("latin1"),
        ]);
      }
    });

    test("serves nameable files and preflights while the origin is down, and refuses counted requests", async () => {
      const before = new Map<string, ReceivedBytes>();
      for (const vector of own) before.set(vector.id, await askOne(edge.url, vector, vector.id));
      await site.origin.stop();
      for (const vector of own) {
        const [got, was] = [await askOne(edge.url, vector, vector.id), before.get(vector.id) as ReceivedBytes];
        expect(shown(vector, got)).toEqual(shown(vector, was));
      }
      const preflight = vectors.find((vector) => vector.class === "preflight") as Vector;
      expect((await askOne(edge.url, preflight, "preflight")).status).toBe(204);
      const counted = vectors.find((vector) => vector.class === "counted") as Vector;
      const away = await askOne(edge.url, counted, "counted");
      const { status, headers, body } = refusalAnswer(DATABASE_UNAVAILABLE, null);
      if (hasOwnErrorPage) expect(away.status).toBeGreaterThanOrEqual(500);
      else {
        const expected = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
        expect([away.status, away.bytes.toString()]).toEqual([status, body]);
        expect(away.headers).toMatchObject(Object.fromEntries(expected));
      }
    });
  });
}

/** The modification times of the files, as HTTP dates. */
function datesIn(out: string): string[] {
  const paths = readdirSync(out, { recursive: true, encoding: "utf8" }).map((path) => statSync(join(out, path)));
  return [...new Set(paths.filter((status) => status.isFile()).map(({ mtime }) => mtime.toUTCString()))];
}

/** How hosts that parse a target as a URI spell it: braces, which a URI may not contain, are encoded. */
export function asUri(target: string): string {
  return target.replace(/[{}]/g, encodeURIComponent);
}

/**
 * Headers that change nothing: the server supports neither ranges nor conditions other than If-None-Match, does not change
 * the protocol, and accepts 100 headers.
 */
const WHOLE = [
  { Upgrade: "h2c", "Keep-Alive": "timeout=5" },
  { Expect: "100-continue" },
  Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`X-Other-${index}`, "x"])),
  { Range: "bytes=0-3" },
  { "If-Modified-Since": "Wed, 01 Jan 2020 00:00:00 GMT" },
  { "If-Unmodified-Since": "Wed, 01 Jan 2020 00:00:00 GMT" },
  { "If-Match": '"other"' },
];

function askOne(url: string, vector: Vector, id: string, more: RequestOptions["headers"] = {}): Promise<ReceivedBytes> {
  const { method, target, keys } = vector;
  const key: Record<string, string[]> = keys.length === 0 ? {} : { "X-App-Key": [...keys] };
  return askBytes(url, target, { method, headers: { ...more, ...key, "X-Request-Id": id } });
}

function shown(vector: Vector, { status, headers, bytes }: ReceivedBytes): object {
  const kept = HEADERS.map((name) => [name, headers[name]]);
  return { asked: describeVector(vector), status, headers: Object.fromEntries(kept), body: bytes.toString("latin1") };
}
