/** Answers of the tree: `precast serve` against bare node:http that writes the same bytes, and nginx with its files. */
import { join } from "node:path";
import { startBare } from "../bare.ts";
import { type Ask, pickAsks } from "../mix.ts";
import { startNginx } from "../nginx.ts";
import {
  differencesBetween,
  FILES,
  faultsOf,
  GZIP,
  type Manner,
  PLAIN,
  type Recorded,
  record,
  shotsOf,
} from "../recorded.ts";
import { type Window, watchInTurn, watchWindow } from "../round.ts";
import type { ServeOptions } from "../serve-options.ts";
import { type Found, type Round, type Row, ratioOf, roundOf, rowOf } from "../serve-result.ts";
import { hasOption, profiling, type Served, startPrecast } from "../served.ts";
import { openSite, type Site } from "../site.ts";
import { inTurn, openLoop, type Shot } from "../traffic.ts";
import type { Work } from "../work.ts";

/** The number of requests that are repeated. */
const WARM = 4_000;
/** The number of requests where memory must be too small for their answers. */
const COLD = 20_000;
/** Flags that an older program may not know. */
const SMALL_MEMORY = ["--memory-cache", "1"];
const SILENT = ["--log-level", "warn"];

const AIM = "CPU ≤ 1.25 of bare node:http, at best 1.1";
/** Seconds that are not measured. */
const WARM_UP = 2;

/** A server, the requests to it, and the names of the servers that it is compared with. */
type Plan = {
  readonly served: Served;
  readonly asks: readonly Ask[];
  readonly manner: Manner;
  readonly against: readonly string[];
  readonly aim: string;
};
type Side = Plan & {
  readonly recorded: Recorded;
  /** The requests in turn, from where the last slice ended. */
  readonly next: () => Shot;
  readonly rounds: Round[];
};

export async function cachedCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openSite(work, "cached", work.options);
  const started: Served[] = [];
  try {
    const sides = await openSides(work, site, started);
    const faults = sides.flatMap(({ served, asks, recorded }) => named(served, faultsOf(asks, recorded, site.out)));
    faults.push(...(await runRounds(work, sides)));
    for (const { served, asks, manner, recorded } of sides)
      faults.push(...named(served, differencesBetween(recorded, await record(served.url, asks, manner))));
    return { rows: sides.map((side) => resultOf(side, sides)), faults };
  } finally {
    for (const served of started) await served.stop();
  }
}

function named({ name }: Served, faults: readonly string[]): string[] {
  return faults.map((fault) => `${name}: ${fault}`);
}

// ---- The servers

async function openSides(work: Work<ServeOptions>, site: Site, started: Served[]): Promise<Side[]> {
  const warm = pickAsks(site.out, site.apps, WARM);
  const keep = (served: Served) => {
    started.push(served);
    return served;
  };
  const side = async (plan: Plan): Promise<Side> => {
    work.say(`cached: recording ${plan.served.name}`);
    const { served, asks, manner } = plan;
    const recorded = await record(served.url, asks, manner);
    return { ...plan, recorded, next: inTurn(shotsOf(served.url, asks, recorded, manner)), rounds: [] };
  };
  /** One `precast serve`, and one bare node:http that repeats its answers. */
  const pair = async (name: string, flags: readonly string[], asks: readonly Ask[], manner: Manner, aim: string) => {
    const also = asks === warm && manner === PLAIN ? ["nginx"] : [];
    const served = keep(await startOurs(work, site, `precast serve${name}`, flags));
    const bareName = `bare node:http${name}`;
    const ours = await side({ served, asks, manner, aim, against: [bareName, ...also] });
    const bare = keep(await startBare(work, bareName, ours.recorded));
    return [ours, await side({ served: bare, asks, manner, aim: "", against: also })];
  };

  const sides = await pair("", [], warm, PLAIN, AIM);
  const [like] = sides[0]?.recorded.values() ?? [];
  const nginx = like === undefined ? null : await startNginx(site.out, work.place.folder, like.full);
  if (nginx === null) work.say("cached: nginx is not installed, so nothing is compared with it.");
  else sides.push(await side({ served: keep(nginx), asks: warm, manner: FILES, aim: "", against: [] }));
  if (hasOption("--log-level")) {
    const served = keep(await startOurs(work, site, `precast serve ${SILENT.join(" ")}`, SILENT));
    sides.push(await side({ served, asks: warm, manner: PLAIN, aim: AIM, against: ["bare node:http", "nginx"] }));
  }
  sides.push(...(await pair(", gzip", [], warm, GZIP, AIM)));
  const small = hasOption("--memory-cache") ? SMALL_MEMORY : [];
  const cold = pickAsks(site.out, site.apps, COLD);
  sides.push(...(await pair([", cold", ...small].join(" "), small, cold, PLAIN, "")));
  return sides;
}

async function startOurs(work: Work<ServeOptions>, site: Site, name: string, flags: readonly string[]) {
  const { place, options } = work;
  const data = join(place.folder, "data", name.replace(/\W+/g, "-"));
  const args = [...site.source, "--out", site.out, "--data-dir", data, ...flags];
  return startPrecast(name, args, place.folder, profiling(options.profile, name));
}

// ---- The rounds

async function runRounds({ options, say }: Work<ServeOptions>, sides: readonly Side[]): Promise<string[]> {
  const faults: string[] = [];
  const watch = (side: Side, seconds: number) => watchSide(side, options.connections, seconds);
  for (const side of sides) await watch(side, WARM_UP);
  for (let round = 1; round <= options.rounds; round++) {
    say(`cached: round ${round}`);
    for (const [side, { seen, cpu }] of await watchInTurn(sides, options.seconds, watch)) {
      side.rounds.push(roundOf(seen, cpu));
      faults.push(...named(side.served, seen.faults));
    }
  }
  return faults;
}

async function watchSide({ served, next }: Side, connections: number, seconds: number): Promise<Window> {
  const traffic = openLoop(served.url, connections, next);
  const window = await watchWindow(served, seconds, traffic);
  await traffic.stop();
  return window;
}

function resultOf({ served, rounds, against, aim }: Side, sides: readonly Side[]): Row {
  const references = sides.filter((side) => against.includes(side.served.name));
  const ratios = references.flatMap((side) => ratioOf("cpu", rounds, side.served.name, side.rounds));
  return rowOf(rounds, {
    case: "cached",
    what: served.name,
    memory: served.memory(),
    start: served.start,
    ratios,
    aim,
  });
}
