/** Runs a soak: loads content, starts a server, causes events while clients send requests, and adds everything up. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../../cli/database.ts";
import { type Address, writeRequest } from "../../../shared/api/address.ts";
import { createDatabase, type TestServer } from "../../support/postgres.ts";
import { withClient } from "../client.ts";
import { entryOf, FILTERABLE, SORTABLE, TYPE } from "../content.ts";
import { loadApps } from "../load.ts";
import { runBuild, runPrecast } from "../precast.ts";
import { memoryOf } from "../proc.ts";
import { randomFrom } from "../random.ts";
import { spreadOf } from "../spread.ts";
import { percentile } from "../traffic.ts";
import { addReply, lost, readLedger, sumOf } from "./counts.ts";
import { EVENTS, type EventName, HAPPEN, type Scene } from "./events.ts";
import { type Readers, type Reply, startReaders } from "./readers.ts";
import type { Read, Report } from "./report.ts";
import { type SoakServer, startServer } from "./server.ts";
import { openTruth } from "./truth.ts";

const APP = "soak";
/** The app that the soak itself requests, so that these requests are in no count that is compared. */
const WATCH = "soak-watch";

export type SoakOptions = {
  readonly minutes: number;
  readonly entries: number;
  readonly workers: number;
  readonly clients: number;
  readonly seed: number;
  readonly json: boolean;
};

export async function soak(options: SoakOptions, postgres: TestServer, folder: string): Promise<Report> {
  const url = await createDatabase(postgres.url("postgres"));
  const source = ["--database-url", url];
  const out = join(folder, "out");
  await runPrecast(["migrate", ...source], folder);
  await loadApps(url, [
    { key: APP, first: 0, count: options.entries },
    { key: WATCH, first: 0, count: 5 },
  ]);
  await runBuild(source, out, folder);
  const database = await openDatabase({ url, dataDir: folder, queryTimeout: null, connections: 1 });
  const { free, counted } = targets(options.entries);
  const truth = openTruth({ out, database, appKey: APP, free, counted });
  truth.learnTree();
  await truth.learnLive();
  const flags = ["--out", out, "--workers", String(options.workers), "--log-level", "warn"];
  const server = await startServer([...source, ...flags], folder);
  try {
    return await runScenes(options, { postgres, url, folder, out, appKey: APP, server, truth }, { free, counted });
  } finally {
    await server.stop();
    await database.close();
  }
}

type Targets = { readonly free: readonly Address[]; readonly counted: readonly string[] };

/** Targets that have an answer whatever is edited. */
function targets(entries: number): Targets {
  const { slug } = TYPE;
  const some = Array.from({ length: SOME }, (_, index) => entryOf(Math.floor((index * entries) / SOME)));
  const shown = some.filter(({ status }) => status === "published");
  const free: Address[] = [
    { kind: "catalog" },
    { kind: "schema", slug },
    ...[1n, 2n, 3n].map((page): Address => ({ kind: "page", slug, page })),
    ...SORTABLE.flatMap((name): Address[] => [
      { kind: "sort", slug, sort: name },
      { kind: "sort", slug, sort: `-${name}` },
    ]),
    ...shown.map(({ data }): Address => ({ kind: "filter", slug, field: "category", value: data.category })),
    ...shown.map(({ id }): Address => ({ kind: "entry", slug, id })),
  ];
  const counted = [
    `/api/v1/${slug}?per_page=7`,
    `/api/v1/${slug}?per_page=50&page=2`,
    `/api/v1/${slug}?fields=title`,
    ...FILTERABLE.slice(1).map((name) => `/api/v1/${slug}?filter[${name}][neq]=x&sort=-title`),
    `/api/v1/${slug}/search?q=nothing`,
  ];
  return { free, counted };
}

const SOME = 60;
const EDITED = 10;
/** Milliseconds between two events. */
const REST = 700;
const SAMPLE = 1_000;

async function runScenes(
  options: SoakOptions,
  base: Omit<Scene, "random" | "edited">,
  asked: Targets,
): Promise<Report> {
  const { server, truth, url } = base;
  const random = randomFrom(options.seed);
  const scene = { ...base, random, edited: Array.from({ length: EDITED }, (_, index) => index * 3) };
  const { readers, payers, received, faults } = startClients(options, base, asked);
  const samples = sampleMemory(server);
  const begun = performance.now();
  const happened = await causeEvents(scene, options.minutes * 60_000);
  await Promise.all([readers.stop(), payers.stop()]);
  const memory = samples.stop();
  const exitCode = await server.stop();
  const ledger = await withClient(url, (client) => readLedger(client, APP));
  const most = sumOf(received) + payers.broken();
  faults.push(...happened.faults);
  if (exitCode !== 0) faults.push(`the server ended with ${exitCode}`);
  if (sumOf(ledger) > most) faults.push(`${sumOf(ledger)} in the ledger, ${most} at most were asked for`);
  faults.push(...truth.faults(), ...lost(received, ledger));
  return {
    seconds: (performance.now() - begun) / 1_000,
    events: happened.events,
    free: readOf(readers),
    counted: readOf(payers),
    received: sumOf(received),
    ledger: sumOf(ledger),
    memory,
    exitCode,
    faults,
  };
}

/** Readers of free answers and of counted ones (payers). `received` and `faults` grow until both have stopped. */
function startClients(
  { clients, seed }: SoakOptions,
  { server, truth }: Pick<Scene, "server" | "truth">,
  { free, counted }: Targets,
) {
  const faults: string[] = [];
  const received = new Map<string, number>();
  const check = (allowed: readonly number[]) => (target: string, reply: Reply) => {
    if (!allowed.includes(reply.status)) faults.push(`${target} was ${reply.status}`);
    if (reply.status === 200) truth.see(target, reply.body, String(reply.headers.etag));
  };
  const common = { url: server.url, appKey: APP };
  const readers = startReaders({
    ...common,
    ...{ targets: free.map(writeRequest), clients, seed, onReply: check([200]) },
  });
  const checkLive = check([200, 503, 504]);
  const payers = startReaders({
    ...common,
    ...{ targets: counted, clients: Math.ceil(clients / 3), seed: seed + 1_000_000 },
    onReply: (target, reply) => {
      checkLive(target, reply);
      addReply(received, target.includes("/search") ? "search" : "list", reply);
    },
  });
  return { readers, payers, received, faults };
}

/** Causes events for `duration` milliseconds. Most are edits: only these come with a build. */
async function causeEvents(scene: Scene, duration: number) {
  const faults: string[] = [];
  const events: Record<EventName, number> = { edit: 0, stop: 0, freeze: 0, kill: 0 };
  const end = performance.now() + duration;
  while (performance.now() < end) {
    const name = scene.random.below(2) === 0 ? "edit" : scene.random.pick(EVENTS);
    faults.push(...(await HAPPEN[name](scene)));
    events[name] += 1;
    await sleep(REST);
  }
  return { events, faults };
}

function sampleMemory(server: SoakServer) {
  const samples: number[] = [];
  const timer = setInterval(() => {
    const [oldest] = server.workers();
    if (oldest !== undefined) samples.push(memoryOf(oldest));
  }, SAMPLE);
  const stop = () => {
    clearInterval(timer);
    const quarter = Math.ceil(samples.length / 4);
    return {
      first: spreadOf(samples.slice(0, quarter)).median,
      last: spreadOf(samples.slice(-quarter)).median,
    };
  };
  return { stop };
}

function readOf({ statuses, broken, durations }: Readers): Read {
  const [p50, p99] = [percentile(durations, 0.5), percentile(durations, 0.99)];
  return { statuses: Object.fromEntries(statuses), broken: broken(), p50, p99 };
}
