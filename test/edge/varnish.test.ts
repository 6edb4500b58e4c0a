/** `precast edge varnish`, with Debian's Varnish in front of a static host. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CommandResult,
  idOf,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  shopWithout,
} from "../support/cli.ts";
import { findProgram, freePort, type Running, startProgram } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import { openStatic } from "../support/edge-static.ts";
import { askBytes, openStore, type Store } from "../support/site.ts";

const VARNISH = findProgram("varnishd");

proveEdge({
  name: "varnish",
  start: ({ place, origin, out }) => startVarnish(place, origin, out, "varnish"),
  servedByOrigin: ["hashed", "roundabout"],
  forwardsAcceptEncoding: true,
  skip: VARNISH === null,
});

describe.skipIf(VARNISH === null)("PURGE to Varnish", () => {
  let store: Store;
  let place: Place;
  let origin: RunningServer;
  let varnish: Running;
  /** An instance that accepts PURGE from another address only. */
  let closed: Running;
  let requests: string[];
  let refused: CommandResult;

  const get = async (url: string, target: string, method = "GET") => {
    const { status, headers, bytes } = await askBytes(url, target, { method, appKey: SHOP });
    return { target, status, counted: headers["x-request-counted"], allow: headers.allow, body: bytes.toString() };
  };
  const getAll = async (url: string) => Promise.all(requests.map((target) => get(url, target)));
  const deploy = (more = "") => place.run(`deploy file://${place.folder}/deployed --retries 0 ${more}`);
  const purging = (url: string) => `--purge ${url}{path} --purge-method PURGE`;

  /** Both caches hold the first build. Then a build without one post is deployed, and the purge of `closed` fails. */
  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    await place.import(shop());
    await place.build();
    expect((await deploy()).code).toBe(0);
    origin = await place.serve();
    const deployed = join(place.folder, "deployed");
    varnish = await startVarnish(place, origin, deployed, "open");
    closed = await startVarnish(place, origin, deployed, "closed", (vcl) =>
      vcl.replace('  "127.0.0.1";', '  "192.0.2.1";'),
    );
    requests = requestsIn(place);
    for (const url of [varnish.url, closed.url]) expect(await getAll(url)).toEqual(await getAll(origin.url));
    await place.import(shopWithout(1));
    await place.build();
    refused = await deploy(purging(closed.url));
    requests = requestsIn(place);
  });
  afterAll(async () => {
    await varnish?.stop();
    await closed?.stop();
    await place?.close();
    await store?.close();
  });

  test("from an unknown address is refused as the server refuses it, and removes nothing from the cache", async () => {
    const { code, stderr } = refused;
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^127\.0\.0\.1:\d+ refused the purge \(405: PURGE is/)]);
    const before = await getAll(closed.url);
    expect(before).not.toEqual(await getAll(origin.url));
    for (const target of requests) {
      expect(await get(closed.url, target, "PURGE")).toEqual(await get(origin.url, target, "PURGE"));
    }
    expect(await getAll(closed.url)).toEqual(before);
  });

  test("of another app, without a key or of a counted request gets 404 and keeps the cached list", async () => {
    const list = await get(varnish.url, "/api/v1/posts");
    const refusals = [
      await askBytes(varnish.url, "/api/v1/posts", { method: "PURGE", appKey: "other" }),
      await askBytes(varnish.url, "/api/v1/posts", { method: "PURGE" }),
      await askBytes(varnish.url, "/api/v1/posts?per_page=1", { method: "PURGE", appKey: SHOP }),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(await get(varnish.url, "/api/v1/posts")).toEqual(list);
  });

  test("by a deploy makes every changed answer new, and a deleted entry a 404", async () => {
    for (const query of ["filter[tags]=a", "sort=-published_at", "page=2"]) {
      expect(requests).toContain(`/api/v1/posts?${query}`);
    }
    const [stale, now] = [await getAll(varnish.url), await getAll(origin.url)];
    for (const [index, target] of requests.entries()) {
      expect(stale[index], target).not.toEqual(now[index]);
    }
    const { code, stderr } = await deploy(purging(varnish.url));
    expect([code, stderr]).toEqual([0, ""]);
    expect(await getAll(varnish.url)).toEqual(now);
    expect((await get(varnish.url, `/api/v1/posts/${idOf(1)}`)).status).toBe(404);
  });
});

describe.skipIf(VARNISH === null)("Varnish in front of the host of the tree", () => {
  let place: Place;
  let tree: Host;
  let origin: Host;
  let varnish: Running;
  const ask = async (target: string) => {
    const { status, bytes } = await askBytes(varnish.url, target, { appKey: SHOP });
    return `${status} ${bytes}`;
  };

  beforeAll(async () => {
    place = openPlace({});
    [tree, origin] = [await startHost("old"), await startHost(null)];
    const kept = "max-age=1,stale-while-revalidate=1,stale-if-error=600";
    await place.json(
      `edge varnish --app ${SHOP} --origin ${origin.url} --tree-url ${tree.url} --cdn-cache-control ${kept} --write kept`,
    );
    varnish = await runVarnish(place, "kept");
  });
  afterAll(async () => {
    for (const running of [varnish, tree, origin]) await running?.stop();
    await place?.close();
  });

  test("keeps a file for as long as --cdn-cache-control says, and longer only while the host fails", async () => {
    expect(await ask("/api/v1/posts")).toBe("200 old");
    tree.text = "new";
    expect(await ask("/api/v1/posts")).toBe("200 old");
    await pause(3_000);
    expect(await ask("/api/v1/posts")).toBe("200 new");
    tree.away = true;
    await pause(3_000);
    for (let times = 0; times < 3; times++) expect(await ask("/api/v1/posts")).toBe("200 new");
    expect(await ask("/api/v1/posts?page=2")).toBe("404 {}");
    Object.assign(tree, { away: false, text: "newer" });
    await pause(3_000);
    expect(await ask("/api/v1/posts")).toBe("200 newer");
  });

  test("tells the caches in front of it that a file is sent in several codings, and nothing of how long it was kept", async () => {
    Object.assign(tree, { text: "packed", packed: true });
    for (const coding of ["gzip", "identity", "gzip"]) {
      const asked = { appKey: SHOP, headers: { "Accept-Encoding": coding } };
      const { headers, bytes } = await askBytes(varnish.url, "/api/v1/posts?page=3", asked);
      expect(String(coding === "gzip" ? gunzipSync(bytes) : bytes)).toBe("packed");
      expect([headers.vary, headers.age]).toEqual(["X-App-Key, Accept-Encoding", undefined]);
      expect(Date.now() - Date.parse(headers.date as string)).toBeLessThan(60_000);
    }
    tree.packed = false;
  });

  test("forwards concurrent requests for a missing file at once, and serves the file when it exists", async () => {
    Object.assign(tree, { text: null, delay: 300 });
    expect(await ask("/api/v1/posts?page=9")).toBe("404 {}");
    tree.most = 0;
    await Promise.all(Array.from({ length: 8 }, () => ask("/api/v1/posts?page=9")));
    expect(tree.most).toBeGreaterThan(1);
    tree.text = "late";
    expect(await ask("/api/v1/posts?page=9")).toBe("200 late");
  });
});

/** The requests whose answers the last build has changed. */
function requestsIn({ folder }: Place): string[] {
  const { changes } = JSON.parse(readFileSync(join(folder, "out/.precast/changes.json"), "utf8"));
  return (changes as { request: string }[]).map(({ request }) => request);
}

/** `files` is the folder that the static host serves. */
async function startVarnish(
  place: Place,
  origin: RunningServer,
  files: string,
  name: string,
  change = (vcl: string) => vcl,
): Promise<Running> {
  const tree = await openStatic(files);
  await place.json(`edge varnish --origin ${origin.url} --tree-url ${tree.url} --write ${name}`);
  const varnish = await runVarnish(place, name, change);
  const stop = async () => {
    await varnish.stop();
    await tree.stop();
  };
  return { url: varnish.url, stop };
}

/** Runs Varnish with the configuration that was written to the folder `name`. */
async function runVarnish(place: Place, name: string, change = (vcl: string) => vcl): Promise<Running> {
  const home = join(place.folder, name);
  const vcl = join(home, "precast.vcl");
  writeFileSync(vcl, change(readFileSync(vcl, "utf8")));
  mkdirSync(join(home, "work"));
  const port = await freePort();
  const limits = ["http_req_hdr_len=32k", "http_req_size=64k", "http_max_hdr=128"].flatMap((limit) => ["-p", limit]);
  const where = ["-n", join(home, "work"), "-a", `127.0.0.1:${port}`, "-f", vcl];
  return startProgram(VARNISH as string, ["-F", "-j", "none", ...limits, ...where], port, home);
}

type Host = Running & { text: string | null; packed: boolean; delay: number; away: boolean; most: number };

/**
 * A host that answers every request with `text` of long ago, compressed if it is `packed`, or with 404. `most` is the most
 * requests that it had at once.
 */
async function startHost(text: string | null): Promise<Host> {
  let now = 0;
  const server = createServer((_, response) => {
    host.most = Math.max(host.most, ++now);
    setTimeout(() => {
      now -= 1;
      const bytes = host.packed ? gzipSync(host.text ?? "{}") : (host.text ?? "{}");
      const status = host.away ? 500 : host.text === null ? 404 : 200;
      response.setHeader("Date", "Thu, 01 Jan 2026 00:00:00 GMT");
      response.writeHead(status, host.packed ? { "Content-Encoding": "gzip" } : {}).end(bytes);
    }, host.delay);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const host: Host = { url, stop, text, packed: false, delay: 0, away: false, most: 0 };
  return host;
}
