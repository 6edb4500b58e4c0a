/** One small app among thousands in the same tables, against the same app alone in a database. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import type { App, ContentType } from "../../../shared/api/catalog.ts";
import { isRefusal } from "../../../shared/api/errors.ts";
import { planRequest } from "../../../shared/api/plan.ts";
import { type ApiRequest, readRequest } from "../../../shared/api/request.ts";
import { buildQuery, currentSlots } from "../../../shared/live.ts";
import type { Query } from "../../../shared/sql/query.ts";
import { formatBytes } from "../../../shared/text.ts";
import { withClient } from "../client.ts";
import { articleOf, SECTIONS, TOPICS } from "../live/article.ts";
import { wrongIn } from "../live/compare.ts";
import { ARTICLES_TYPE } from "../live/definition.ts";
import { defineApp, type Entry, entryOfArticle, insertEntries } from "../live/entries.ts";
import type { LiveOptions } from "../live-options.ts";
import type { Found, Noted } from "../live-result.ts";
import { runPrecast, type Source } from "../precast.ts";
import { randomFrom } from "../random.ts";
import { requestBytes } from "../recorded.ts";
import { watchInTurn, watchWindow } from "../round.ts";
import { type Served, startPrecast } from "../served.ts";
import { spreadOf } from "../spread.ts";
import { inTurn, openLoop, type Shot, tookOf } from "../traffic.ts";
import type { Work } from "../work.ts";

const TYPES: readonly ContentType[] = ["notes", "pages", "events"].map((slug) => ({
  ...ARTICLES_TYPE,
  slug,
  name: slug,
}));
const ENTRIES = 10;
const LENGTH = 30;
/** At most this number of apps is requested over one connection to the database. */
const ASKED = 500;
const PLANNED = 50;

type Tenancy = { readonly name: string; readonly apps: number; readonly url: string; readonly source: Source };

export async function tenantsCase(work: Work<LiveOptions>): Promise<Found> {
  const alone = await openTenancy(work, "alone", 1);
  const among = await openTenancy(work, "among", work.options.tenants);
  const { notes, faults } = await compareSpeed(work, among, alone);
  notes.push(await comparePlanning(among, alone));
  notes.push(note("rows of pg_class", String(await relationsOf(among)), String(await relationsOf(alone)), "the same"));
  const memory = await compareMemory(work, among);
  return { reads: [], notes: memory === null ? notes : [...notes, memory], faults };
}

async function openTenancy({ place, say }: Work<LiveOptions>, name: string, apps: number): Promise<Tenancy> {
  const url = await place.database(`live_${name}`);
  const source = ["--database-url", url];
  await runPrecast(["migrate", ...source], place.folder);
  say(`tenants: making ${apps.toLocaleString("en")} apps`);
  await withClient(url, async (client) => {
    await client.query("SET synchronous_commit = off");
    for (let app = 0; app < apps; app++) {
      const ids = await defineApp(client, keyOf(app), TYPES);
      for (const [place, id] of ids.entries()) await insertEntries(client, id, entriesOf(app * TYPES.length + place));
    }
    await client.query("VACUUM ANALYZE");
  });
  return { name, apps, url, source };
}

function keyOf(app: number): string {
  return `tenant-${app}`;
}

function entriesOf(type: number): Entry[] {
  return Array.from({ length: ENTRIES }, (_, index) => entryOfArticle(articleOf(type * ENTRIES + index, 20, LENGTH)));
}

// ---- Speed

const KINDS: Readonly<Record<string, (turn: number) => string>> = {
  list: (turn) => `?per_page=5&page=${1 + (turn % 50)}`,
  filter: (turn) => {
    const random = randomFrom(turn);
    return `?filter[topic][in]=${encodeURIComponent(random.pick(TOPICS))}&filter[section]=${random.pick(SECTIONS)}`;
  },
  search: (turn) =>
    `/search?q=${["the", "and", "of the", "water", "city"][turn % 5]?.replace(" ", "+")}&page=${1 + (turn % 40)}`,
};
const REQUESTS = 200;

type Side = { readonly served: Served; readonly next: () => Shot };

async function compareSpeed(work: Work<LiveOptions>, among: Tenancy, alone: Tenancy) {
  const started = [await startServer(work, among), await startServer(work, alone)] as const;
  const notes: Noted[] = [];
  const faults: string[] = [];
  try {
    for (const kind of Object.keys(KINDS)) {
      work.say(`tenants: ${kind}`);
      const compared = await compareKind(work, kind, started);
      notes.push(compared.note);
      faults.push(...compared.faults.map((fault) => `tenants, ${kind}: ${fault}`));
    }
  } finally {
    for (const served of started) await served.stop();
  }
  return { notes, faults };
}

function startServer({ place }: Work<LiveOptions>, { name, source }: Tenancy, more: readonly string[] = []) {
  const [out, data] = [join(place.folder, `${name}-out`), join(place.folder, `${name}-data`)];
  const args = [...source, "--out", out, "--data-dir", data, "--log-level", "warn", ...more];
  return startPrecast(`precast serve ${name}`, args, place.folder);
}

async function compareKind({ options }: Work<LiveOptions>, kind: string, [among, alone]: readonly [Served, Served]) {
  const sides: readonly Side[] = [among, alone].map((served) => ({ served, next: inTurn(shotsOf(kind)) }));
  const rates = new Map(sides.map((side) => [side, [] as number[]]));
  const faults: string[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const windows = await watchInTurn(sides, options.seconds, async ({ served, next }, seconds) => {
      const traffic = openLoop(served.url, options.connections, next);
      const window = await watchWindow(served, seconds, traffic);
      await traffic.stop();
      return window;
    });
    for (const [side, { seen }] of windows) {
      rates.get(side)?.push(tookOf(seen, "200").length / seen.seconds);
      faults.push(...wrongIn(seen));
    }
  }
  const [rate, reference] = sides.map((side) => spreadOf(rates.get(side) ?? []).median) as [number, number];
  const text = (value: number) => `${Math.round(value).toLocaleString("en")} requests/s`;
  const what = `${kind} of one app of three small types`;
  return { note: note(what, `${text(rate)}, ${(rate / reference).toFixed(2)}`, text(reference), "flat"), faults };
}

function shotsOf(kind: string): Shot[] {
  return Array.from({ length: REQUESTS }, (_, turn) => {
    const headers = { Host: "localhost", "X-App-Key": keyOf(0) };
    return { bytes: requestBytes(targetOf(kind, turn), headers), status: 200, length: null };
  });
}

function targetOf(kind: string, turn: number): string {
  return `/api/v1/${TYPES[turn % TYPES.length]?.slug}${KINDS[kind]?.(turn)}`;
}

// ---- Planning

async function comparePlanning(among: Tenancy, alone: Tenancy): Promise<Noted> {
  const [many, one] = [await planningOf(among), await planningOf(alone)];
  return note("planning of a list, a filter, a search", many, one, "flat");
}

/** The median milliseconds of each kind, over one connection. */
async function planningOf({ url, apps }: Tenancy): Promise<string> {
  return withClient(url, async (client) => {
    const texts: string[] = [];
    for (const kind of Object.keys(KINDS)) {
      const took: number[] = [];
      for (let turn = 0; turn < PLANNED; turn++) {
        const { text, values } = await sqlOf(client, keyOf(turn % apps), targetOf(kind, turn));
        const { rows } = await client.query(`EXPLAIN (SUMMARY, FORMAT JSON) ${text}`, values);
        took.push(rows[0]["QUERY PLAN"][0]["Planning Time"]);
      }
      texts.push(spreadOf(took).median.toFixed(2));
    }
    return `${texts.join(", ")} ms`;
  });
}

async function sqlOf(client: Client, key: string, target: string): Promise<{ text: string; values: unknown[] }> {
  const app: App = { key, name: key, media_base_url: "", types: TYPES };
  const request = readRequest({ method: "GET", target, appKey: key }) as ApiRequest;
  const type = TYPES.find(({ slug }) => "slug" in request.route && slug === request.route.slug);
  const plan = planRequest(request, type);
  const asText = async ({ text, values }: Query) =>
    (await client.query<(string | null)[]>({ text, values: [...values], rowMode: "array" })).rows;
  const query = isRefusal(plan) ? null : buildQuery(app, plan, await currentSlots({ query: asText }, app, plan));
  if (query === null) throw new Error(`No query answers ${target}`);
  return { text: query.text, values: [...query.values] };
}

// ---- Catalog and memory

async function relationsOf({ url }: Tenancy): Promise<number> {
  const { rows } = await withClient(url, (client) => client.query("SELECT count(*)::int AS count FROM pg_class"));
  return rows[0].count;
}

/** The private memory of the only backend after requests to one app, and to all. Null where it cannot be read. */
async function compareMemory(work: Work<LiveOptions>, among: Tenancy): Promise<Noted | null> {
  const apps = Math.min(ASKED, among.apps);
  work.say(`tenants: asking ${apps} apps over one connection`);
  const served = await startServer(work, among, ["--connections", "1"]);
  try {
    await askApps(served, 0, 1);
    const first = await backendMemory(among);
    await askApps(served, 1, apps);
    const last = await backendMemory(among);
    if (first === null || last === null) return null;
    return note(
      `memory of a backend that answered ${apps} apps`,
      formatBytes(last),
      `${formatBytes(first)} after one`,
      "flat",
    );
  } finally {
    await served.stop();
  }
}

async function askApps({ url }: Served, first: number, end: number): Promise<void> {
  for (let app = first; app < end; app++)
    for (const kind of Object.keys(KINDS)) {
      const response = await fetch(url + targetOf(kind, app), { headers: { "X-App-Key": keyOf(app) } });
      if (response.status !== 200) throw new Error(`${response.status} for ${targetOf(kind, app)} of ${keyOf(app)}`);
      await response.arrayBuffer();
    }
}

async function backendMemory({ url }: Tenancy): Promise<number | null> {
  const asking =
    "SELECT max(pid) AS pid FROM pg_stat_activity WHERE application_name = 'precast' AND datname = current_database()";
  const { rows } = await withClient(url, (client) => client.query<{ pid: number }>(asking));
  try {
    const status = readFileSync(`/proc/${rows[0]?.pid}/status`, "utf8");
    return Number(/RssAnon:\s*(\d+) kB/.exec(status)?.[1]) * 1_024;
  } catch {
    return null; // The backend runs on another machine, or this system has no /proc.
  }
}

function note(what: string, precast: string, alone: string, aim: string): Noted {
  return { case: "tenants", what, precast, against: `alone ${alone}`, aim };
}
