/** Counted requests to a server whose tree is elsewhere, as on a CDN, against the same server with the tree. */
import { join } from "node:path";
import {
  type Contestant,
  contestantOf,
  contestRow,
  countedLoads,
  type Load,
  openContestSite,
  runContest,
} from "../contest.ts";
import type { ServeOptions } from "../serve-options.ts";
import type { Found, Row } from "../serve-result.ts";
import { startPrecast } from "../served.ts";
import type { Site } from "../site.ts";
import type { Work } from "../work.ts";

const AIM = "requests/s ≥ 0.7 of the same with a tree";

type Side = Contestant & { readonly hasTree: boolean; readonly keeps: boolean };

export async function treelessCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openContestSite(work, "treeless");
  const loads = countedLoads();
  const sides: Side[] = [];
  try {
    for (const keeps of [true, false])
      for (const hasTree of [true, false]) sides.push(await openSide(work, site, { hasTree, keeps }, loads));
    const faults = await runContest(work, "treeless", site, sides, loads);
    return { rows: loads.flatMap((load) => sides.map((side) => resultOf(load, side, sides))), faults };
  } finally {
    for (const { served } of sides) await served.stop();
  }
}

async function openSide(
  { place }: Work<ServeOptions>,
  site: Site,
  { hasTree, keeps }: Pick<Side, "hasTree" | "keeps">,
  loads: readonly Load[],
): Promise<Side> {
  const name = `${keeps ? "asked again" : "found anew"}, ${hasTree ? "with" : "without"} a tree`;
  const folder = join(place.folder, "data", name.replace(/\W+/g, "-"));
  const out = hasTree ? site.out : join(folder, "none");
  const source = ["--database-url", site.url, "--data-dir", folder, "--out", out];
  const served = await startPrecast(name, [...source, ...(keeps ? [] : ["--memory-cache", "0"])], place.folder);
  return { ...contestantOf(served, loads), hasTree, keeps };
}

function resultOf(load: Load, side: Side, sides: readonly Side[]): Row {
  const reference = sides.find((one) => !side.hasTree && one.hasTree && one.keeps === side.keeps);
  return contestRow("treeless", load, side, reference === undefined ? null : { reference, aim: AIM });
}
