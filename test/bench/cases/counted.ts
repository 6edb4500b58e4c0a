/** Counted requests with the ledger, against the same server with one that does nothing. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withClient } from "../client.ts";
import { entryOf, TYPE } from "../content.ts";
import type { LedgerServer } from "../ledger-server.ts";
import { requestBytes } from "../recorded.ts";
import { watchWindow } from "../round.ts";
import type { ServeOptions } from "../serve-options.ts";
import { type Found, type Round, type Row, ratioOf, roundOf, rowOf } from "../serve-result.ts";
import { type Served, startSource } from "../served.ts";
import { openSite, type Site } from "../site.ts";
import { inTurn, openLoop, type Shot } from "../traffic.ts";
import type { Work } from "../work.ts";

/** Few, so that queries are short: a slow one would hide what a count costs. */
const ENTRIES = 500;
/** One in this number of requests is a search. */
const SEARCHES = 10;
const SERVER = fileURLToPath(new URL("../ledger-server.ts", import.meta.url));
const AIM = "requests/s ≥ 0.9 of the same without ledger";
const WARM_UP = 2;

type Load = { readonly name: string; readonly targets: readonly string[] };
type Side = { readonly served: Served; readonly counts: boolean; readonly rounds: Map<Load, Round[]>; asked: number };

export async function countedCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openSite(work, "counted", { entries: ENTRIES, apps: 1 });
  await rewriteEntries(site);
  const loads = loadsOf();
  const sides: Side[] = [];
  try {
    for (const counts of [true, false]) sides.push(await openSide(work, site, counts, loads));
    const faults = await runRounds(work, site, sides, loads);
    const rows = loads.flatMap((load) => sides.map((side) => resultOf(load, side, sides)));
    for (const { served } of sides) await served.stop();
    return { rows, faults: [...faults, ...(await miscounts(site, sides))] };
  } finally {
    for (const { served } of sides) await served.stop();
  }
}

/** Rewrites all entries and vacuums their table before anything is measured. */
async function rewriteEntries({ url }: Site): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("UPDATE precast.entries SET data = data");
    await client.query("VACUUM ANALYZE precast.entries");
  });
}

/** So many different requests that hardly two equal ones run at the same time, which could share a query. */
function loadsOf(): Load[] {
  const base = `/api/v1/${TYPE.slug}`;
  const entries = Array.from({ length: ENTRIES }, (_, number) => entryOf(number));
  const published = entries.filter(({ status }) => status === "published");
  return [
    { name: "an entry with populate", targets: published.map(({ id }) => `${base}/${id}?populate=none`) },
    {
      name: "lists and searches",
      targets: published.map(({ data: { slug } }, index) => {
        if (index % SEARCHES === 0) return `${base}/search?q=${slug.split("-")[0]}&page=${index + 1}`;
        return index % 2 === 0 ? `${base}?per_page=5&page=${index + 1}` : `${base}?filter[slug]=${slug}&per_page=1`;
      }),
    },
  ];
}

async function openSide(
  { place }: Work<ServeOptions>,
  site: Site,
  counts: boolean,
  loads: readonly Load[],
): Promise<Side> {
  const name = counts ? "with ledger" : "without ledger";
  const given: LedgerServer = { counts, url: site.url, out: site.out, data: join(place.folder, "data", name) };
  const served = await startSource(name, SERVER, [JSON.stringify(given)], place.folder);
  return { served, counts, rounds: new Map(loads.map((load) => [load, []])), asked: 0 };
}

async function runRounds(
  { options, say }: Work<ServeOptions>,
  { apps }: Site,
  sides: readonly Side[],
  loads: readonly Load[],
): Promise<string[]> {
  const faults: string[] = [];
  const run = async (side: Side, load: Load, seconds: number) => {
    const shots = load.targets.map((target) => shotOf(target, apps[0] ?? ""));
    const traffic = openLoop(side.served.url, options.connections, inTurn(shots));
    const { seen, cpu } = await watchWindow(side.served, seconds, traffic);
    side.asked += await traffic.stop();
    faults.push(...seen.faults.map((fault) => `${side.served.name}: ${fault}`));
    return roundOf(seen, cpu);
  };
  for (const load of loads) for (const side of sides) await run(side, load, WARM_UP);
  for (let round = 1; round <= options.rounds; round++) {
    say(`counted: round ${round}`);
    // The order alternates between rounds, because a load that begins right after another may be at a disadvantage.
    const order = round % 2 === 1 ? sides : [...sides].reverse();
    for (const load of loads)
      for (const side of order) side.rounds.get(load)?.push(await run(side, load, options.seconds));
  }
  return faults;
}

function shotOf(target: string, app: string): Shot {
  return { bytes: requestBytes(target, { Host: "localhost", "X-App-Key": app }), status: 200, length: null };
}

function resultOf(load: Load, side: Side, sides: readonly Side[]): Row {
  const { served, counts } = side;
  const rounds = side.rounds.get(load) ?? [];
  const reference = sides.find((one) => !one.counts && counts);
  const other = reference?.rounds.get(load) ?? [];
  const to = reference?.served.name ?? "";
  return rowOf(rounds, {
    case: "counted",
    what: `${load.name}, ${served.name}`,
    memory: served.memory(),
    start: served.start,
    ratios: [...ratioOf("perSecond", rounds, to, other), ...ratioOf("cpu", rounds, to, other)],
    aim: counts ? AIM : "",
  });
}

/** Called after the servers have stopped: every answer that a client got must be counted in the database. */
async function miscounts({ url }: Site, sides: readonly Side[]): Promise<string[]> {
  const asked = sides.filter(({ counts }) => counts).reduce((sum, side) => sum + side.asked, 0);
  const { rows } = await withClient(url, (client) =>
    client.query<{ sum: number }>("SELECT coalesce(sum(count), 0)::int AS sum FROM precast.usage"),
  );
  const counted = rows[0]?.sum ?? 0;
  return counted === asked ? [] : [`${counted} requests counted of ${asked}`];
}
