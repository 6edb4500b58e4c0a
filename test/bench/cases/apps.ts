/** Many small apps in one build, against one app with as many entries. Both have the same entries, by number. */
import { join } from "node:path";
import type { AppContent } from "../content.ts";
import { type Built, runBuild } from "../precast.ts";
import { against, buildResult, type Result } from "../result.ts";
import { type Size, sizeOf } from "../tree.ts";
import { openStore, type Store, type Work } from "../work.ts";

const APPS = 200;
const ENTRIES = 50;

const ONE: readonly AppContent[] = [{ key: "large", first: 0, count: APPS * ENTRIES }];
const MANY: readonly AppContent[] = Array.from({ length: APPS }, (_, index) => ({
  key: `small-${index}`,
  first: index * ENTRIES,
  count: ENTRIES,
}));

type Side = { readonly name: string; readonly store: Store; readonly runs: Built[]; size: Size };

export async function appsCase(work: Work): Promise<Result[]> {
  const one = await openSide(work, "large", ONE);
  const many = await openSide(work, "small", MANY);
  for (let run = 1; run <= work.options.runs.small; run++) {
    for (const side of [one, many]) await buildSide(work, side, run);
  }
  const reference = buildResult(one.runs, one.size, { case: "apps", what: "1 app, 10,000 entries" });
  const result = buildResult(many.runs, many.size, { case: "apps", what: "200 apps, 50 entries each", aim: "≤ 1.5 ×" });
  const ratio = against("1 app", reference.seconds, result.seconds);
  const ratioPerFile = (ratio.ratio * one.size.files) / many.size.files;
  return [reference, { ...result, against: { ...ratio, ratioPerFile } }];
}

async function openSide(work: Work, name: string, apps: readonly AppContent[]): Promise<Side> {
  return { name, store: await openStore(work, name, apps), runs: [], size: { files: 0, bytes: 0 } };
}

async function buildSide({ place, say }: Work, side: Side, run: number): Promise<void> {
  const out = join(place.folder, `${side.name}-${run}`);
  say(`apps: ${side.name}, run ${run}`);
  side.runs.push(await runBuild(side.store.source, out, place.folder));
  side.size = sizeOf(out);
}
