/** Counted requests of a small app, sent to several servers in turn. */
import { withClient } from "./client.ts";
import { entryOf, TYPE } from "./content.ts";
import { requestBytes } from "./recorded.ts";
import { watchWindow } from "./round.ts";
import type { ServeOptions } from "./serve-options.ts";
import { type Round, type Row, ratioOf, roundOf, rowOf } from "./serve-result.ts";
import type { Served } from "./served.ts";
import { openSite, type Site } from "./site.ts";
import { inTurn, openLoop, type Shot } from "./traffic.ts";
import type { Work } from "./work.ts";

/** Few, so that queries are short: a slow one would hide what else an answer costs. */
const ENTRIES = 500;
/** One in this number of requests is a search. */
const SEARCHES = 10;
const WARM_UP = 2;

export type Load = { readonly name: string; readonly targets: readonly string[] };

/** A server, its rounds under each load, and how many requests it has been sent. */
export type Contestant = { readonly served: Served; readonly rounds: Map<Load, Round[]>; asked: number };

/** So many different requests that hardly two equal ones run at the same time, which could share a query. */
export function countedLoads(): Load[] {
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

/** A small app in a database and a tree. All entries are rewritten and their table vacuumed before anything is measured. */
export async function openContestSite(work: Work<ServeOptions>, name: string): Promise<Site> {
  const site = await openSite(work, name, { entries: ENTRIES, apps: 1 });
  await withClient(site.url, async (client) => {
    await client.query("UPDATE precast.entries SET data = data");
    await client.query("VACUUM ANALYZE precast.entries");
  });
  return site;
}

export function contestantOf(served: Served, loads: readonly Load[]): Contestant {
  return { served, rounds: new Map(loads.map((load) => [load, []])), asked: 0 };
}

/** Adds to the rounds of each, and returns what was answered wrongly, in words. */
export async function runContest(
  { options, say }: Work<ServeOptions>,
  name: string,
  { apps }: Site,
  contestants: readonly Contestant[],
  loads: readonly Load[],
): Promise<string[]> {
  const faults: string[] = [];
  const run = async (one: Contestant, load: Load, seconds: number) => {
    const shots = load.targets.map((target) => shotOf(target, apps[0] ?? ""));
    const traffic = openLoop(one.served.url, options.connections, inTurn(shots));
    const { seen, cpu } = await watchWindow(one.served, seconds, traffic);
    one.asked += await traffic.stop();
    faults.push(...seen.faults.map((fault) => `${one.served.name}: ${fault}`));
    return roundOf(seen, cpu);
  };
  for (const load of loads) for (const one of contestants) await run(one, load, WARM_UP);
  for (let round = 1; round <= options.rounds; round++) {
    say(`${name}: round ${round}`);
    // The order alternates between rounds, because a load that begins right after another may be at a disadvantage.
    const order = round % 2 === 1 ? contestants : [...contestants].reverse();
    for (const load of loads)
      for (const one of order) one.rounds.get(load)?.push(await run(one, load, options.seconds));
  }
  return faults;
}

/** What a server did under a load. `against` is another one to compare it with, and what the comparison should come to. */
export function contestRow(
  name: string,
  load: Load,
  { served, rounds }: Contestant,
  against: { readonly reference: Contestant; readonly aim: string } | null,
): Row {
  const own = rounds.get(load) ?? [];
  const other = against?.reference.rounds.get(load) ?? [];
  const to = against?.reference.served.name ?? "";
  return rowOf(own, {
    case: name,
    what: `${load.name}, ${served.name}`,
    memory: served.memory(),
    start: served.start,
    ratios: [...ratioOf("perSecond", own, to, other), ...ratioOf("cpu", own, to, other)],
    aim: against?.aim ?? "",
  });
}

function shotOf(target: string, app: string): Shot {
  return { bytes: requestBytes(target, { Host: "localhost", "X-App-Key": app }), status: 200, length: null };
}
