/** The metrics for Prometheus: well formed, correct, and with a bounded number of series. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openPlace, type Place, type RunningServer, SHOP, shop } from "../support/cli.ts";
import { findProgram } from "../support/edge-program.ts";
import { type Family, readExposition } from "../support/exposition.ts";
import { ask, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

/** Debian's package `prometheus` has it. */
const PROMTOOL = findProgram("promtool");
const CLUSTER = fileURLToPath(new URL("../support/metrics-worker.mjs", import.meta.url));

/** The value of one series; undefined where there is none. */
function seriesOf(families: ReadonlyMap<string, Family>, name: string, labels: Record<string, string> = {}) {
  const samples = [...families.values()].flatMap((family) => family.samples);
  const wanted = JSON.stringify(Object.entries(labels).sort());
  return samples.find(
    (sample) => sample.name === name && JSON.stringify(Object.entries(sample.labels).sort()) === wanted,
  )?.value;
}

describe("the metrics of one server", () => {
  let store: Store;
  let place: Place;
  let server: RunningServer;
  let admin: string;

  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    await place.import(shop());
    await place.build();
    server = await place.serve("--admin-port 0");
    await server.printed(/Health and metrics: \S+\n/);
    admin = /Health and metrics: (\S+)/.exec(server.output().stdout)?.[1] ?? "";
  });
  afterAll(async () => {
    await place.close();
    await store.close();
  });

  async function scrape(): Promise<Map<string, Family>> {
    const response = await fetch(`${admin}/metrics`);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    return readExposition(await response.text());
  }
  const requests = (families: ReadonlyMap<string, Family>, shape: string, status: string, source: string) =>
    seriesOf(families, "precast_requests_total", { shape, status, source }) ?? 0;

  test("each metric has the prefix precast_ and a help text, and only counters end in _total", async () => {
    const families = await scrape();
    expect(families.size).toBeGreaterThan(20);
    for (const [name, { type, help }] of families) {
      expect(name).toMatch(/^precast_/);
      expect(help).not.toBe("");
      expect([name, type === "counter"]).toEqual([name, name.endsWith("_total")]);
    }
    for (const name of [
      "process_resident_memory_bytes",
      "nodejs_eventloop_lag_p99_seconds",
      "nodejs_gc_duration_seconds",
    ])
      expect([...families.keys()]).toContain(`precast_${name}`);
  });

  test("requests are counted by shape, status and source of the answer", async () => {
    const before = await scrape();
    const asked = [
      ["/api/v1/_schemas", SHOP, "catalog", "200", "tree", 2],
      ["/api/v1/posts", SHOP, "page", "200", "tree", 3],
      ["/api/v1/posts/abcdef00-0000-4000-8000-000000000009", SHOP, "entry", "404", "tree", 1],
      ["/api/v1/posts/search?q=one", SHOP, "search", "200", "live", 2],
      ["/api/v1/posts?per_page=1", SHOP, "list", "200", "live", 1],
      ["/api/v1/posts", "stranger", "none", "401", "none", 1],
      ["/nowhere", SHOP, "none", "404", "none", 1],
    ] as const;
    for (const [target, appKey, , , , times] of asked)
      for (let time = 0; time < times; time++) await server.get(target, { appKey });
    const after = await scrape();
    for (const [target, , shape, status, source, times] of asked) {
      const more = requests(after, shape, status, source) - requests(before, shape, status, source);
      expect([target, more]).toEqual([target, times]);
    }
  });

  test("durations are recorded for live answers only", async () => {
    const count = (families: Map<string, Family>) =>
      seriesOf(families, "precast_live_duration_seconds_count", { shape: "search" }) ?? 0;
    const before = count(await scrape());
    for (let time = 0; time < 3; time++) await server.get("/api/v1/posts/search?q=one", { appKey: SHOP });
    await server.get("/api/v1/posts", { appKey: SHOP });
    const families = await scrape();
    expect(count(families) - before).toBe(3);
    const shapes = families.get("precast_live_duration_seconds")?.samples.map(({ labels }) => labels.shape);
    expect(shapes).not.toContain("page");
    const buckets = families
      .get("precast_live_duration_seconds")
      ?.samples.filter(({ labels }) => labels.shape === "search" && labels.le);
    const values = buckets?.map(({ value }) => value) ?? [];
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(values.at(-1)).toBe(count(families));
  });

  test("the age of the tree is the time since its last build", async () => {
    const age = async () => seriesOf(await scrape(), "precast_tree_age_seconds") ?? Number.NaN;
    const before = await age();
    expect(before).toBeGreaterThan(0);
    await until("the tree to age", async () => (await age()) > before);
    const aged = await age();
    await place.build();
    const built = Date.parse((await ask(admin, "/readyz")).json.tree.built_at);
    const after = await age();
    expect(after).toBeLessThanOrEqual((Date.now() - built) / 1_000);
    expect(after).toBeLessThan(aged + (Date.now() - built) / 1_000);
  });

  test("what is changed and not built is counted, with the time since it was first seen", async () => {
    const behind = async () => {
      const families = await scrape();
      const [changes, seconds] = ["changes", "seconds"].map((unit) =>
        seriesOf(families, `precast_tree_behind_${unit}`),
      );
      return { changes, seconds };
    };
    await place.build();
    expect(await behind()).toEqual({ changes: 0, seconds: 0 });
    await store.database.execute("UPDATE precast.entries SET updated_at = now() WHERE id::text LIKE '%1'");
    await store.database.execute("DELETE FROM precast.entries WHERE id::text LIKE '%3'");
    const first = await behind();
    expect(first.changes).toBeGreaterThanOrEqual(3);
    const status = await place.json<{ apps: { tree: { changed: number; removed: number } }[] }>("status");
    const { changed = 0, removed = 0 } = status.apps[0]?.tree ?? {};
    expect(first.changes).toBe(changed + removed);
    await until("them to grow old", async () => ((await behind()).seconds ?? 0) > (first.seconds ?? 0));
    await place.build();
    expect(await behind()).toEqual({ changes: 0, seconds: 0 });
  });

  test.skipIf(PROMTOOL === null)(
    `promtool has nothing to say${PROMTOOL === null ? " (it is not installed)" : ""}`,
    async () => {
      const { status, stdout, stderr } = spawnSync(PROMTOOL as string, ["check", "metrics"], {
        input: await (await fetch(`${admin}/metrics`)).text(),
        encoding: "utf8",
      });
      expect([status, stdout, stderr]).toEqual([0, "", ""]);
    },
  );

  test("connections are counted", async () => {
    const families = await scrape();
    expect(seriesOf(families, "precast_connections_open")).toBeGreaterThanOrEqual(0);
    expect(seriesOf(families, "precast_connections_refused_total")).toBe(0);
    expect(seriesOf(families, "precast_connections_evicted_total")).toBe(0);
  });

  test("values that clients choose create no series and appear in none", async () => {
    await server.get("/nowhere", { appKey: "x0" });
    await server.get("/api/v1/posts?per_page=1", { appKey: "x0", method: "PUT" });
    const before = [...(await scrape()).values()].flatMap(({ samples }) => samples).length;
    for (let number = 1; number < 30; number++) {
      await server.get(`/nowhere/${number}`, { appKey: `x${number}`, headers: { "X-Request-Id": `id-${number}` } });
      await server.get(`/api/v1/posts?per_page=1`, { appKey: `x${number}`, method: `PUT` });
    }
    const response = await fetch(`${admin}/metrics`);
    const text = await response.text();
    // The client library adds a series for a kind of garbage collection, or of handle, when it first sees one.
    const ours = [...readExposition(text)].filter(([name]) => !/^precast_(nodejs|process)_/.test(name));
    expect(ours.flatMap(([, { samples }]) => samples).length).toBeLessThanOrEqual(before);
    for (const secret of [SHOP, "nowhere", "id-1", "x1"]) expect(text).not.toContain(secret);
  });

  test("metrics and health are not served on the port of the API", async () => {
    for (const path of ["/metrics", "/healthz", "/readyz", "/api/v1/metrics"]) {
      expect((await ask(server.url, path)).status).not.toBe(200);
      expect((await ask(server.url, path, { appKey: SHOP })).status).toBe(404);
    }
  });
});

describe("the metrics of several workers", () => {
  let primary: ChildProcessWithoutNullStreams;
  let told: Record<string, unknown>[];

  function start(): void {
    told = [];
    primary = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), CLUSTER], { stdio: "pipe" });
    createInterface({ input: primary.stdout }).on("line", (line) => told.push(JSON.parse(line)));
  }
  /** The primary ends its workers when its input ends, one that hangs included. */
  afterEach(async () => {
    const ended = once(primary, "exit");
    primary.stdin.end();
    await ended;
  });

  const order = (line: string) => void primary.stdin.write(`${line}\n`);
  const isTold = (key: string, value: unknown) => told.some((one) => one[key] === value);
  const pages = (families: Map<string, Family>) =>
    seriesOf(families, "precast_requests_total", { shape: "page", status: "200", source: "tree" });

  async function fork(id: number): Promise<void> {
    order("fork");
    await until("the worker", () => isTold("ready", id));
  }
  async function scrape(): Promise<Map<string, Family>> {
    const texts = () => told.filter((one) => "text" in one);
    const before = texts().length;
    order("scrape");
    await until("the metrics", () => texts().length > before);
    return readExposition(String(texts().at(-1)?.text));
  }

  test("are aggregated; when a worker dies, what it counted is dropped", async () => {
    start();
    await fork(1);
    await fork(2);
    const both = await scrape();
    expect(pages(both)).toBe(300);
    expect(seriesOf(both, "precast_requests_total", { shape: "page", status: "404", source: "tree" })).toBe(2);
    expect(seriesOf(both, "precast_live_duration_seconds_count", { shape: "page" })).toBe(4);
    expect(seriesOf(both, "precast_live_waiting")).toBe(20);
    expect(seriesOf(both, "precast_ledger_lag_seconds")).toBe(2);
    expect(seriesOf(both, "precast_tree_age_seconds")).toBe(5);
    expect(seriesOf(both, "precast_database_up")).toBe(0);
    expect(seriesOf(both, "precast_process_max_fds")).toBe(Number(told.find((one) => "fds" in one)?.fds));
    const started = seriesOf(both, "precast_process_start_time_seconds") ?? 0;
    expect(Math.abs(started - Date.now() / 1_000)).toBeLessThan(3_600);

    order("kill 2");
    await until("its end", () => isTold("exit", 2));
    const one = await scrape();
    expect([pages(one), seriesOf(one, "precast_live_waiting")]).toEqual([100, 10]);
    expect(seriesOf(one, "precast_database_up")).toBe(1);
    expect(seriesOf(one, "precast_live_duration_seconds_count", { shape: "page" })).toBe(2);
    expect(pages(await scrape())).toBe(100);

    await fork(3);
    const again = await scrape();
    expect([pages(again), seriesOf(again, "precast_live_waiting")]).toEqual([400, 20]);
  });
});
