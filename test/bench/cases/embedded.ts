/** A bundle, imported into an embedded database of its own and built from there. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Built, runBuild, runPrecast } from "../precast.ts";
import { buildResult, type Result, timedResult } from "../result.ts";
import { type Size, sizeOf } from "../tree.ts";
import type { Work } from "../work.ts";

export const DEMO = fileURLToPath(new URL("../../../cli/demo", import.meta.url));

/** `name` is the name of the case, and with it the names of its folders begin. */
export async function embeddedCase(work: Work, name: string, bundle: string, runs: number): Promise<Result[]> {
  const { place, say } = work;
  const source = ["--data-dir", join(place.folder, `${name}-data`)];
  say(`${name}: importing`);
  const imported = await runPrecast(["import", bundle, ...source], place.folder);
  const built: Built[] = [];
  let size: Size = { files: 0, bytes: 0 };
  for (let run = 1; run <= runs; run++) {
    const out = join(place.folder, `${name}-${run}`);
    say(`${name}: building, run ${run}`);
    built.push(await runBuild(source, out, place.folder));
    size = sizeOf(out);
  }
  const row = timedResult([imported.seconds], sizeOf(bundle), { case: name, what: "import" });
  return [{ ...row, peak: imported.peak }, buildResult(built, size, { case: name, what: "precast build" })];
}
