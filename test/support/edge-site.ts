/** The apps of edge-apps.ts as a tree that the real program built, and the origin that serves it and logs requests. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { App } from "../../shared/api/catalog.ts";
import { isStateFile, readState } from "../../shared/tree.ts";
import { openPlace, type Place, type RunningServer } from "./cli.ts";
import { EDGE_KEY, edgeBundles } from "./edge-apps.ts";
import { openStore } from "./site.ts";

export type EdgeSite = {
  readonly place: Place;
  readonly origin: RunningServer;
  /** The folder of the tree. */
  readonly out: string;
  readonly apps: readonly App[];
  /** The targets of all requests that have reached the origin so far, from its log, by request id. */
  readonly reached: () => Promise<ReadonlyMap<string, string>>;
  readonly close: () => Promise<void>;
};

export async function openEdgeSite(line = ""): Promise<EdgeSite> {
  const store = await openStore("postgres");
  const place = openPlace({ DATABASE_URL: store.url ?? "" });
  for (const bundle of edgeBundles()) await place.import(bundle);
  await place.build();
  const origin = await place.serve(line, { PRECAST_LOG_LEVEL: "info" });
  const out = join(place.folder, "out");
  let asked = 0;
  const reached = async () => {
    asked += 1;
    const last = `last-${asked}`;
    await origin.get("/api/v1/_schemas", { appKey: EDGE_KEY, headers: { "X-Request-Id": last } });
    await origin.printed(new RegExp(`"id":"${last}"`));
    const lines = origin
      .output()
      .stderr.split("\n")
      .filter((line) => line.includes('"id":'));
    return new Map(lines.map((line) => JSON.parse(line)).map(({ id, target }) => [id, target]));
  };
  const close = async () => {
    await place.close();
    await store.close();
  };
  return { place, origin, out, apps: readApps(out), reached, close };
}

/** The apps of a tree, from the state files that its build left. */
function readApps(out: string): App[] {
  const folder = join(out, ".precast");
  const states = readdirSync(folder).filter(isStateFile);
  return states.flatMap((name) => readState(readFileSync(join(folder, name), "utf8"))?.app ?? []);
}
