/** Counted requests with the ledger, against the same server with one that does nothing. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withClient } from "../client.ts";
import {
  type Contestant,
  contestantOf,
  contestRow,
  countedLoads,
  type Load,
  openContestSite,
  runContest,
} from "../contest.ts";
import type { LedgerServer } from "../ledger-server.ts";
import type { ServeOptions } from "../serve-options.ts";
import type { Found, Row } from "../serve-result.ts";
import { startSource } from "../served.ts";
import type { Site } from "../site.ts";
import type { Work } from "../work.ts";

const SERVER = fileURLToPath(new URL("../ledger-server.ts", import.meta.url));
const AIM = "requests/s ≥ 0.9 of the same without ledger";

type Side = Contestant & { readonly counts: boolean };

export async function countedCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openContestSite(work, "counted");
  const loads = countedLoads();
  const sides: Side[] = [];
  try {
    for (const counts of [true, false]) sides.push(await openSide(work, site, counts, loads));
    const faults = await runContest(work, "counted", site, sides, loads);
    const rows = loads.flatMap((load) => sides.map((side) => resultOf(load, side, sides)));
    for (const { served } of sides) await served.stop();
    return { rows, faults: [...faults, ...(await miscounts(site, sides))] };
  } finally {
    for (const { served } of sides) await served.stop();
  }
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
  return { ...contestantOf(served, loads), counts };
}

function resultOf(load: Load, side: Side, sides: readonly Side[]): Row {
  const reference = sides.find((one) => !one.counts && side.counts);
  return contestRow("counted", load, side, reference === undefined ? null : { reference, aim: AIM });
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
