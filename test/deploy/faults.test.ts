/**
 * Deploys to a store that fails: transient faults are retried; lasting ones are reported, with how far the deploy got.
 * And two deploys that compete for one store.
 */
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type CommandResult, holdPort, openPlace, type Place, smallApp } from "../support/cli.ts";
import {
  deployInProcess,
  differencesOf,
  filesOf,
  internalFilesAfter,
  internalFilesOf,
  noteOf,
  targetIn,
} from "../support/deployed.ts";
import { type S3, type S3Request, startS3, type Trouble } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";
import { EXPIRED, OF_ANOTHER, startTls } from "../support/tls.ts";
import { until } from "../support/until.ts";

const TARGET = "s3://content/api";

let store: Store;
let place: Place;
let s3: S3;
const out = () => join(place.folder, "out");

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(smallApp("shop", ["Ada", "Bob"]));
  await place.build();
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  s3 = await startS3();
  return () => s3.close();
});

const deploy = (line = "", env: Record<string, string> = {}) =>
  place.run(`deploy ${TARGET} --retries 1 ${line}`, { ...s3.env, ...env });
const isFile = ({ key }: S3Request) => key !== "" && !key.includes("/.precast/");
const isNote =
  (name: string) =>
  ({ key, method }: S3Request) =>
    key === noteOf(name) && method === "PUT";
const xml = (status: number, code: string, more = ""): Trouble => ({
  status,
  headers: { "Content-Type": "application/xml" },
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>No.</Message>${more}</Error>`,
});

/** A request for which `meant` holds gets the trouble the first time, and not when it is repeated. */
function once(trouble: Trouble, meant: (request: S3Request) => boolean = () => true): void {
  const had = new Set<string>();
  s3.trouble = (request) => {
    const name = `${request.method} ${request.key} ${request.query}`;
    if (!meant(request) || had.has(name)) return undefined;
    had.add(name);
    return trouble;
  };
}

describe("transient faults", () => {
  test.each<[string, Trouble]>([
    ["500", xml(500, "InternalError")],
    ["503 SlowDown", xml(503, "SlowDown")],
    ["403 SlowDown", xml(403, "SlowDown")],
    ["429 without a body", { status: 429 }],
    ["409 for two conditional writes at once", xml(409, "ConditionalRequestConflict")],
    ["400 RequestTimeout", xml(400, "RequestTimeout")],
    ["a connection that breaks", "cut"],
    ["a connection that breaks after the store has done its work", "cut when done"],
    ["a 200 whose body is an error", xml(200, "InternalError")],
    [
      "a 200 that is a web page",
      { status: 200, headers: { "Content-Type": "text/html", ETag: '"x"' }, body: "<!doctype html><p>Hello" },
    ],
  ])("a deploy succeeds when every request fails once with %s", async (_, trouble) => {
    once(trouble);
    const { written } = await deployInProcess(s3, out());
    expect(written).toBeGreaterThan(10);
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
    expect(internalFilesOf(s3)).toEqual(internalFilesAfter(["shop"]));
  });

  test("a truncated listing response is requested again", async () => {
    await deployInProcess(s3, out());
    s3.objects.delete(noteOf("manifest.json"));
    once(
      (body) => body.slice(0, body.length / 2),
      ({ query }) => query.has("list-type"),
    );
    expect(await deployInProcess(s3, out())).toMatchObject({ deleted: 0 });
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
    expect(s3.requests.filter(({ query }) => query.has("list-type")).length).toBeGreaterThan(4);
  });
});

/** Expects exit code 1, an empty standard output and no secret on standard error. Returns standard error. */
function failed({ code, stdout, stderr }: CommandResult): string {
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).not.toContain(s3.keys.secretAccessKey);
  return stderr;
}

describe("lasting faults", () => {
  test.each<[string, Trouble, RegExp]>([
    [
      "a missing bucket",
      xml(404, "NoSuchBucket"),
      /^There is no bucket content at 127\.0\.0\.1:\d+\. Create it, .*\.\n$/,
    ],
    [
      "403 AccessDenied",
      xml(403, "AccessDenied"),
      /^127\.0\.0\.1:\d+ denies access to the bucket content \(403 AccessDenied\)\. Check AWS_ACCESS_KEY_ID.*\n$/,
    ],
    [
      "a redirect",
      xml(301, "PermanentRedirect", "<Region>us-west-2</Region>"),
      /is not at .* in eu-test-1\. It is in us-west-2: use --region us-west-2\.\n$/,
    ],
    [
      "a redirect with the region in a header",
      { status: 301, headers: { "x-amz-bucket-region": "us-west-2" } },
      /It is in us-west-2: use --region us-west-2\.\n$/,
    ],
    [
      "a redirect without a region",
      { status: 307, headers: { Location: "https://elsewhere" } },
      /Check --endpoint and --region\.\n$/,
    ],
    ["401", { status: 401 }, /^127\.0\.0\.1:\d+ denies access to the bucket content \(401\)\./],
    [
      "a clock that differs",
      xml(403, "RequestTimeTooSkewed"),
      /^The clock of this machine differs too much from that of .*NTP.*\n$/,
    ],
    [
      "500 InternalError",
      xml(500, "InternalError"),
      /is overloaded or failing \(500 InternalError\)\. Try again later\.\n$/,
    ],
    ["503 without a body", { status: 503 }, /is overloaded or failing \(503\)/],
    [
      "a 200 that is a web page",
      { status: 200, headers: { "Content-Type": "text/html" }, body: "<html><p>Hello" },
      /does not answer like S3 \(200, text\/html\)\. Check --endpoint.*\n$/,
    ],
    [
      "a 404 that is a web page",
      { status: 404, headers: { "Content-Type": "text/html" }, body: "<html><p>Where?" },
      /does not answer like S3 \(404, text\/html\)/,
    ],
    [
      "credentials that have expired",
      xml(400, "ExpiredToken"),
      /^The credentials for \S+ have expired\. Get new ones, .*\n$/,
    ],
    [
      "another 400, also with references to characters and to nothing",
      xml(400, "Invalid&#82;eq&#x75;est&amp;&#1114112;&constructor;"),
      /refused a request \(400 InvalidRequest&&#1114112;&constructor;: No\.\)\.\n$/,
    ],
    ["a connection that always breaks", "cut", /cannot be reached \(UND_ERR_SOCKET\)\. Check the address.*\n$/],
  ])("the error message describes the fault: %s", async (_, trouble, message) => {
    s3.trouble = () => trouble;
    expect(failed(await deploy())).toMatch(message);
  });

  test.each([
    [
      "returns the same continuation token again",
      "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>",
    ],
    ["is truncated and has no continuation token", "<IsTruncated>true</IsTruncated>"],
    ["does not say whether it is truncated", ""],
    [
      "has a key that is not encoded as it says",
      "<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>",
    ],
  ])("a listing that %s is an error", async (_, more) => {
    const body = `<ListBucketResult><Contents><Key>api/x</Key></Contents>${more}</ListBucketResult>`;
    s3.trouble = ({ query }) => (query.has("list-type") ? { status: 200, body } : undefined);
    expect(failed(await deploy())).toMatch(/does not answer like S3 \(200/);
  });

  test("a store that does not respond is reported after --timeout", async () => {
    s3.trouble = () => "silence";
    expect(failed(await deploy("--timeout 1"))).toMatch(
      /^127\.0\.0\.1:\d+ did not answer within 1 seconds\..*--timeout.*\n$/,
    );
  });

  test("a response that never ends is reported as a timeout", async () => {
    const endless = createServer((_, response) => void response.writeHead(200, { ETag: '"x"' }).write("{"));
    await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}`;
    expect(failed(await deploy("--timeout 1", { AWS_ENDPOINT_URL: url }))).toMatch(/did not answer within 1 seconds/);
    endless.closeAllConnections();
    endless.close();
  });

  test("an address where nothing listens is reported as unreachable", async () => {
    const { port, release } = await holdPort();
    await release();
    expect(failed(await deploy("", { AWS_ENDPOINT_URL: `http://127.0.0.1:${port}` }))).toMatch(
      /cannot be reached \(ECONNREFUSED\)/,
    );
  });

  test.each([
    ["that is self-signed", OF_ANOTHER, false, "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["for another host", OF_ANOTHER, true, "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["that has expired", EXPIRED, true, "CERT_HAS_EXPIRED"],
  ])("a certificate %s is reported as not trusted, for the store and for the CDN", async (_, cert, isTrusted, code) => {
    const tls = await startTls(cert);
    const file = join(place.folder, "authority.pem");
    writeFileSync(file, cert);
    const trust = isTrusted ? { NODE_EXTRA_CA_CERTS: file } : {};
    const message = new RegExp(`The certificate of \\S+ is not trusted \\(${code}\\)\\. .*NODE_EXTRA_CA_CERTS.*\\n`);
    expect(failed(await deploy("", { AWS_ENDPOINT_URL: tls.url, ...trust }))).toMatch(message);
    const purge = `--force --purge ${tls.url}{path}`;
    expect(failed(await deploy(purge, trust))).toMatch(message);
    await tls.close();
  });

  test("a proxy that demands authentication (407) is reported", async () => {
    s3.trouble = () => ({ status: 407 });
    expect(failed(await deploy())).toMatch(/cannot be reached \(perhaps a proxy requires authentication\)\./);
  });

  test("a secret that the answer repeats is not shown", async () => {
    const message = `${s3.keys.secretAccessKey} or Header: cdn-secret is wrong`;
    s3.trouble = () => ({ status: 400, body: `<Error><Code>InvalidToken</Code><Message>${message}</Message></Error>` });
    for (const debug of ["", "--debug"]) {
      const stderr = failed(
        await deploy(`--purge ${s3.url}{path} ${debug}`, { PRECAST_PURGE_HEADER: "Header: cdn-secret" }),
      );
      expect(stderr).toContain("refused a request (400 InvalidToken: … or Header: … is wrong)");
    }
  });

  test("a wrong secret, access key, region or clock is reported as what it is", async () => {
    expect(failed(await deploy("", { AWS_SECRET_ACCESS_KEY: "wrong" }))).toMatch(
      /denies access .*SignatureDoesNotMatch/,
    );
    expect(failed(await deploy("", { AWS_ACCESS_KEY_ID: "nobody" }))).toMatch(/denies access .*InvalidAccessKeyId/);
    expect(failed(await deploy("--region us-east-1"))).toMatch(/It is in eu-test-1: use --region eu-test-1\.\n$/);
    s3.ahead = 20 * 60_000;
    expect(failed(await deploy())).toMatch(/^The clock of this machine differs/);
  });
});

describe("a deploy that fails midway", () => {
  const forbidden = xml(403, "AccessDenied");

  test.each<[string, (request: S3Request) => boolean, RegExp]>([
    ["at the journal", isNote("journal.json"), /\nNothing of shop was changed\. Run the deploy again\.\n$/],
    [
      "at a file",
      ({ key, method }) => key.endsWith("/page/1.json") && method === "PUT",
      /\n\d+ of \d+ files of shop were uploaded, and nothing was deleted\. Run the deploy again: it uploads all of them\.\n$/,
    ],
    [
      "at the manifest",
      isNote("manifest.json"),
      /\nAll \d+ files of shop were uploaded; the manifest was not replaced, and nothing was deleted\. Run the deploy again: it uploads all of them\.\n$/,
    ],
    [
      "at a deletion",
      (request) => isFile(request) && request.method === "DELETE",
      /\nAll \d+ files of shop were uploaded; 0 of 1 were deleted\. Run the deploy again: it deletes the rest\.\n$/,
    ],
    [
      "at the end of the journal",
      ({ key, method }) => key.endsWith("/journal.json") && method === "DELETE",
      /\nAll files are deployed; only the cleanup of the journal is left\. Run the deploy again\.\n$/,
    ],
  ])("says how far it got when it is refused %s, and a forced deploy then completes it", async (_, meant, message) => {
    await deployInProcess(s3, out());
    s3.objects.set("api/s-shop/v1/authors/page/9.json", {
      bytes: Buffer.from("{}"),
      etag: '"x"',
      modified: new Date(),
      headers: {},
    });
    s3.trouble = (request) => (meant(request) ? forbidden : undefined);
    expect(failed(await deploy("--force"))).toMatch(message);
    s3.trouble = () => undefined;
    expect(internalFilesOf(s3)).not.toContain(noteOf("deploy.lock"));
    await deployInProcess(s3, out(), { force: true });
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
  });

  test.each<[string, (request: S3Request) => boolean]>([
    ["a file", ({ key, method }) => key.endsWith("/page/1.json") && method === "PUT"],
    ["the manifest", isNote("manifest.json")],
  ])(
    "announces that the next deploy uploads all files again, and it does, when the store refuses %s",
    async (_, meant) => {
      s3.trouble = (request) => (meant(request) ? forbidden : undefined);
      const [, files] =
        /(\d+) files of shop were uploaded.* it uploads all of them\.\n$/.exec(failed(await deploy())) ?? [];
      s3.trouble = () => undefined;
      const { written } = await place.json<{ written: number }>(`deploy ${TARGET}`, s3.env);
      expect(written).toBe(Number(files));
    },
  );

  test.each<[string, (file: string) => void]>([
    ["deleted", (file) => rmSync(file, { force: true })],
    ["replaced", (file) => writeFileSync(file, '{"data":[]}')],
  ])("says that a build has %s a file, and after a full build the next deploy succeeds", async (_, change) => {
    s3.trouble = ({ key }) => {
      if (key.includes("/_schemas/")) change(join(out(), "s-shop/v1/_schemas.json"));
      return undefined;
    };
    expect(failed(await deploy())).toMatch(
      /^A build changed out during the deploy\.\n\d+ of \d+ files of shop were uploaded/,
    );
    s3.trouble = () => undefined;
    await place.json("build --full");
    await deployInProcess(s3, out());
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
  });
});

describe("an upload that the store refuses", () => {
  const html = { "Content-Type": "text/html" };
  const isPage = ({ key, method }: S3Request) => key.endsWith("/authors/page/1.json") && method === "PUT";

  test.each<[string, Trouble, RegExp]>([
    ["501", xml(501, "NotImplemented"), /^127\.0\.0\.1:\d+ is overloaded or failing \(501 NotImplemented\)/],
    ["412 from a proxy", { status: 412, headers: html, body: "<html>No" }, /does not answer like S3 \(412/],
    ["404", xml(404, "NoSuchKey"), /^127\.0\.0\.1:\d+ refused a request \(404 NoSuchKey: No\.\)/],
    [
      "403 for a quota",
      xml(403, "QuotaExceeded"),
      /has no room left for the bucket content \(403 QuotaExceeded: No\.\)/,
    ],
    ["507", xml(507, "XMinioStorageFull"), /has no room left for the bucket content \(507 XMinioStorageFull: No\.\)/],
  ])(
    "fails the deploy before the manifest is written, and the next deploy succeeds: %s",
    async (_, trouble, message) => {
      s3.trouble = (request) => (isPage(request) ? trouble : undefined);
      expect(failed(await deploy())).toMatch(message);
      expect(internalFilesOf(s3)).not.toContain(noteOf("manifest.json"));
      s3.trouble = () => undefined;
      await deployInProcess(s3, out());
      expect(differencesOf(filesOf(s3), out())).toEqual([]);
    },
  );
});

test("a 404 web page from a proxy does not count as a deletion", async () => {
  const stray = "api/s-shop/v1/authors/page/9.json";
  await deployInProcess(s3, out());
  s3.objects.set(stray, { bytes: Buffer.from("{}"), etag: '"x"', modified: new Date(), headers: {} });
  s3.trouble = ({ key, method }) =>
    key === stray && method === "DELETE"
      ? { status: 404, headers: { "Content-Type": "text/html" }, body: "<html><p>Where?" }
      : undefined;
  expect(failed(await deploy("--force"))).toMatch(
    /does not answer like S3 \(404, text\/html\).*\n.* 0 of 1 were deleted/,
  );
  s3.trouble = () => undefined;
  expect(await deployInProcess(s3, out())).toMatchObject({ deleted: 1 });
  expect(differencesOf(filesOf(s3), out())).toEqual([]);
});

test("deploys through a proxy that makes ETags weak succeed repeatedly, with conditional writes", async () => {
  const weak = await startS3({ weak: true });
  await deployInProcess(weak, out());
  expect(await deployInProcess(weak, out(), { force: true })).toMatchObject({ generation: 2, conditional: true });
  expect(differencesOf(filesOf(weak), out())).toEqual([]);
  await weak.close();
});

test.each<[string, Trouble]>([
  ["404 NoSuchKey", xml(404, "NoSuchKey")],
  ["404 without a body", { status: 404 }],
  ["200 without a body", { status: 200 }],
])("a store may answer %s to a deletion, and 404 without a body for what it does not have", async (_, deleted) => {
  await deployInProcess(s3, out());
  const stray = "api/s-shop/v1/authors/page/9.json";
  s3.objects.set(stray, { bytes: Buffer.from("{}"), etag: '"x"', modified: new Date(), headers: {} });
  s3.objects.delete(noteOf("manifest.json"));
  s3.trouble = ({ method, key }) => {
    if (method === "GET" && key !== "") return s3.objects.has(key) ? undefined : { status: 404 };
    if (method !== "DELETE") return undefined;
    s3.objects.delete(key);
    return deleted;
  };
  expect(await deployInProcess(s3, out())).toMatchObject({ deleted: 1 });
  expect(differencesOf(filesOf(s3), out())).toEqual([]);
});

describe("two deploys to one store", () => {
  test("the first completes, and the second is refused with the host and process of the first", async () => {
    let second: Promise<CommandResult> | null = null;
    s3.trouble = (request) => {
      if (second !== null || !isFile(request)) return undefined;
      second = deploy();
      return { after: second };
    };
    await deployInProcess(s3, out());
    const other = `^Another deploy \\(.+, process ${process.pid}\\) holds the lock of shop in s3://content/api\\. Wait .* its lock expires in \\d+ seconds\\.\\n$`;
    expect(failed(await (second as never as Promise<CommandResult>))).toMatch(new RegExp(other));
    expect(differencesOf(filesOf(s3), out())).toEqual([]);
  });

  const lock = noteOf("deploy.lock");
  const leave = (age: number, owner: object) =>
    s3.objects.set(lock, {
      bytes: Buffer.from(
        JSON.stringify({ id: "x", host: "elsewhere", machine: "m", pid: 7, since: "", expires_after: 120, ...owner }),
      ),
      etag: '"left"',
      modified: new Date(Date.now() - age * 1_000),
      headers: {},
    });

  test("a lock is respected until it expires, and then taken over", async () => {
    leave(110, {});
    await expect(deployInProcess(s3, out())).rejects.toThrow(
      /^Another deploy \(elsewhere, process 7\) holds the lock of shop in s3:\/\/content\/api\. .* its lock expires in (9|10) seconds\.$/,
    );
    leave(110, { pid: undefined });
    await expect(deployInProcess(s3, out())).rejects.toThrow(
      /^Another deploy holds the lock of shop in s3:\/\/content\/api\. .* its lock expires in (9|10) seconds\.$/,
    );
    leave(121, {});
    expect(await deployInProcess(s3, out())).toMatchObject({ generation: 1 });
    expect(s3.objects.has(lock)).toBe(false);
  });

  test("a deploy that has not renewed its lock for 100 seconds fails, and sends nothing more", async () => {
    let asleep = 0;
    s3.trouble = (request) => {
      if (isFile(request)) asleep = 100_000;
      return undefined;
    };
    const deploying = deployInProcess(s3, out(), { concurrency: 1 }, () => new Date(Date.now() + asleep));
    await expect(deploying).rejects.toThrow(
      /^The lock of shop in s3:\/\/content\/api was not renewed for 100 seconds: .* suspended\. Another deploy may have taken over\.\n1 of \d+ files of shop were uploaded, and nothing was deleted\. Run/,
    );
    expect(filesOf(s3).size).toBe(1);
    expect(isFile(s3.requests.at(-1) as S3Request)).toBe(true);
  });

  describe("during a long deploy", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      return () => vi.useRealTimers();
    });

    /** Advances timers by 30 seconds during the third upload. `meanwhile` runs before the lock is renewed. */
    function passTime(meanwhile: () => void): void {
      let files = 0;
      s3.trouble = (request) => {
        if (!isFile(request) || ++files !== 3) return undefined;
        meanwhile();
        const renewed = until("the lock is looked after", () =>
          s3.requests.some(({ method, key, number }) => method === "PUT" && key === lock && number > request.number),
        );
        vi.advanceTimersByTime(30_000);
        return {
          after: renewed.then(() =>
            until(
              "that is answered",
              () => s3.requests.length > request.number + 1 || s3.objects.get(lock)?.etag !== '"left"',
            ),
          ),
        };
      };
    }

    test("the lock is renewed with If-Match", async () => {
      passTime(() => {});
      await deployInProcess(s3, out(), { concurrency: 1 });
      const conditions = s3.requests
        .filter(({ method, key }) => method === "PUT" && key === lock)
        .map(({ headers }) => headers["if-match"] ?? "*");
      expect(conditions.slice(0, 3)).toEqual(["*", "*", '"00000000000000000000000000000000"']);
      expect(conditions[3]).toMatch(/^"[0-9a-f]{32}"$/);
      expect(differencesOf(filesOf(s3), out())).toEqual([]);
    });

    test("a renewal that the store does not answer is aborted when the lock is released", async () => {
      const held = await targetIn(s3, out(), { timeout: 3_600, retries: 2, now: () => new Date() }).takeAppLock(
        "s-shop",
      );
      const before = s3.requests.length;
      s3.trouble = ({ method }) => (method === "PUT" ? "silence" : undefined);
      vi.advanceTimersByTime(3_600_000);
      await until("the lock is renewed", () => s3.requests.length > before);
      await held.release();
      await until("nobody waits for that", () => s3.abandoned.includes(before + 1));
      expect(s3.objects.has(lock)).toBe(false);
    });

    test("the lock is renewed on a store that has no conditional writes", async () => {
      await s3.close();
      s3 = await startS3({ conditions: 501 });
      const written = () => s3.objects.get(lock)?.modified;
      let first: Date | undefined;
      passTime(() => {
        first = written();
        s3.ahead = 30_000;
      });
      let last: Date | undefined;
      await deployInProcess(s3, out(), {
        concurrency: 1,
        onProgress: () => {
          last = written();
        },
      });
      expect(last).not.toEqual(first);
    });

    test("the deploy stops once somebody has deleted its lock", async () => {
      passTime(() => s3.objects.delete(lock));
      await expect(deployInProcess(s3, out(), { concurrency: 1 })).rejects.toThrow(
        /^Another deploy may have taken over shop in s3:\/\/content\/api\.\n[34] of/,
      );
    });

    test("the deploy stops once another has taken over its lock, and leaves that lock alone", async () => {
      passTime(() => leave(0, {}));
      await expect(deployInProcess(s3, out(), { concurrency: 1 })).rejects.toThrow(
        /^Another deploy may have taken over shop in s3:\/\/content\/api\.\n[34] of/,
      );
      expect(String(s3.objects.get(lock)?.bytes)).toContain("elsewhere");
    });
  });

  test("of two deploys that take the lock of a store without conditional writes at once, the first is refused", async () => {
    await s3.close();
    s3 = await startS3({ conditions: 501 });
    s3.trouble = ({ method, key }) => {
      if (method === "GET" && key === lock && s3.objects.has(lock)) leave(0, {});
      return undefined;
    };
    await expect(deployInProcess(s3, out())).rejects.toThrow(/^Another deploy \(elsewhere, process 7\) holds the lock/);
    expect(filesOf(s3)).toEqual(new Map());
  });

  test.each<[string, Trouble, (request: S3Request) => boolean]>([
    ["could not be released", "cut", ({ method }) => method === "DELETE"],
    ["was read as half of what it is", (body) => body.slice(0, body.length / 2), ({ method }) => method === "GET"],
    ["was written though the answer is lost", "cut when done", ({ method }) => method === "PUT"],
    [
      "was written before its conditions could be tried",
      "cut",
      ({ method }) => method === "PUT" && s3.objects.size > 0,
    ],
  ])("a lock that %s is released as soon as the store can", async (_, trouble, isMeant) => {
    const lock = noteOf("deploy.lock");
    s3.trouble = (request) => (request.key === lock && isMeant(request) ? trouble : undefined);
    const { takeAppLock } = targetIn(s3, out(), { timeout: 30, retries: 0, now: () => new Date() });
    const taken = takeAppLock("s-shop").then((held) => held.release());
    await expect(taken).rejects.toThrow(/cannot be re/);
    expect(s3.objects.has(lock)).toBe(true);
    s3.trouble = () => undefined;
    await until("the lock to be released", () => !s3.objects.has(lock));
  });

  test("a lock that was released although the answer is lost is not released again: another deploy may have it", async () => {
    let released = 0;
    s3.trouble = ({ key, method }) => {
      if (key !== lock || method !== "DELETE") return undefined;
      released += 1;
      return "cut when done";
    };
    const { takeAppLock } = targetIn(s3, out(), { timeout: 30, retries: 3, now: () => new Date() });
    const releasing = takeAppLock("s-shop").then((held) => held.release());
    await until("the lock to be released", () => released > 0 && !s3.objects.has(lock));
    leave(0, {});
    await releasing;
    expect(String(s3.objects.get(lock)?.bytes)).toContain("elsewhere");
  });

  test("a lock is released by a store that fails for a while", async () => {
    let released = 0;
    s3.trouble = ({ key, method }) =>
      key === lock && method === "DELETE" && released++ < 3 ? { status: 503, body: "" } : undefined;
    const { takeAppLock } = targetIn(s3, out(), { timeout: 30, retries: 1, now: () => new Date() });
    await (await takeAppLock("s-shop")).release();
    expect(s3.objects.has(lock)).toBe(false);
  });

  test("an unreadable lock is respected until it expires, and then taken over", async () => {
    s3.objects.set(lock, { bytes: Buffer.from("{"), etag: '"left"', modified: new Date(), headers: {} });
    await expect(deployInProcess(s3, out())).rejects.toThrow(/^Another deploy holds/);
    s3.objects.set(lock, { bytes: Buffer.from("{"), etag: '"left"', modified: new Date(0), headers: {} });
    expect(await deployInProcess(s3, out())).toMatchObject({ generation: 1 });
  });

  test("a deploy fails when another one has replaced the manifest meanwhile", async () => {
    await deployInProcess(s3, out());
    s3.trouble = (request) => {
      if (isNote("journal.json")(request)) {
        const manifest = s3.objects.get(noteOf("manifest.json"));
        if (manifest !== undefined) s3.objects.set(noteOf("manifest.json"), { ...manifest, etag: '"another"' });
      }
      return undefined;
    };
    expect(failed(await deploy("--force"))).toMatch(
      /^Another deploy replaced \.precast\/s-shop\/manifest\.json in s3:\/\/content\/api during this one\.\nAll \d+ files of shop were uploaded/,
    );
  });

  test.each(["ignored", 304, 400, 405, 501, "only for absent objects"] as const)(
    "a deploy to a store where conditional writes are %s (a status: refused) succeeds, and warns to run one at a time",
    async (conditions) => {
      const plain = await startS3({ conditions });
      const { code, stdout, stderr } = await place.run(`deploy ${TARGET}`, plain.env);
      expect([code, stdout]).toEqual([0, expect.stringContaining("uploaded")]);
      expect(stderr).toMatch(/^s3:\/\/content\/api does not honour conditional writes .* Run only one at a time\.\n$/);
      expect(differencesOf(filesOf(plain), out())).toEqual([]);
      expect(await place.json(`deploy ${TARGET}`, plain.env)).toMatchObject({ written: 0, conditional: null });
      await plain.close();
    },
  );
});
