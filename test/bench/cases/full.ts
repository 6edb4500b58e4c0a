/** Builds everything from nothing, and in the same run unpacks a tar of the same tree for comparison. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { measure } from "../measure.ts";
import { type Built, runBuild } from "../precast.ts";
import { against, buildResult, type Result, timedResult } from "../result.ts";
import type { Spread } from "../spread.ts";
import { sizeOf } from "../tree.ts";
import type { Store, Work } from "../work.ts";

/** The tree that the last run built. */
export type Tree = Store & { readonly out: string; readonly seconds: Spread };

/** Without the case `full`, the tree is built once for the other cases. */
export async function fullCase(work: Work, store: Store): Promise<{ tree: Tree; results: Result[] }> {
  const { options, place, say } = work;
  const compared = options.cases.includes("full");
  const built: Built[] = [];
  const unpacked: number[] = [];
  let out = "";
  for (let run = 1; run <= (compared ? options.runs.large : 1); run++) {
    out = join(place.folder, `full-${run}`);
    say(`full: building, run ${run}`);
    built.push(await runBuild(store.source, out, place.folder));
    if (compared) unpacked.push(await unpack(work, out, run));
  }
  return fullResults(store, out, built, unpacked, aimOf(options.entries));
}

function fullResults(store: Store, out: string, built: readonly Built[], unpacked: readonly number[], aim: string) {
  const size = sizeOf(out);
  const build = buildResult(built, size, {
    case: "full",
    what: "precast build",
    aim,
  });
  const tree = { ...store, out, seconds: build.seconds };
  if (unpacked.length === 0) return { tree, results: [build] };
  const tar = timedResult(unpacked, size, { case: "full", what: "tar -xf" });
  const row = { ...tar, written: size.files, filesPerSecond: size.files / tar.seconds.median };
  return { tree, results: [{ ...build, against: against("tar -xf", tar.seconds, build.seconds) }, row] };
}

/** Memory must not grow with the content: what is held at 100,000 entries is held at a million, give or take. */
function aimOf(entries: number): string {
  const memory = entries <= 100_000 ? "≤ 300 MB" : "≤ 1.2 × the RSS at 100,000 entries";
  return `≤ 2 × tar, at best 1; ${memory}`;
}

/** Returns the seconds. The archive is made of the first tree: the next ones are the same. */
async function unpack({ place, say }: Work, out: string, run: number): Promise<number> {
  const archive = join(place.folder, "tree.tar");
  const target = join(place.folder, `unpacked-${run}`);
  if (run === 1) await measure("tar", ["-cf", archive, "-C", out, "--exclude=./.precast", "."], place.folder);
  say(`full: unpacking, run ${run}`);
  mkdirSync(target);
  const { seconds } = await measure("tar", ["-xf", archive, "-C", target], place.folder);
  return seconds;
}
