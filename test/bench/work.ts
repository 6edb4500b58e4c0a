/** What every case of a benchmark gets. */
import type { BuildOptions } from "./build-options.ts";
import type { AppContent } from "./content.ts";
import { loadApps } from "./load.ts";
import { openPlace, type Place, type PlaceOptions } from "./place.ts";
import { runPrecast, type Source } from "./precast.ts";

export type Work<Options = BuildOptions> = {
  readonly options: Options;
  readonly place: Place;
  /** Reports progress on standard error. */
  readonly say: (text: string) => void;
};

/** Runs a benchmark in a place of its own, which is removed afterwards, and returns the exit code. */
export async function withWork<Options extends PlaceOptions>(
  options: Options,
  run: (work: Work<Options>) => Promise<number>,
): Promise<number> {
  const place = openPlace(options);
  const work = { options, place, say: (text: string) => void process.stderr.write(`${text}\n`) };
  try {
    const code = await run(work);
    if (options.keep) work.say(`Kept ${place.folder}.`);
    return code;
  } finally {
    await place.close();
  }
}

/** A database with content, as a URL and as the flags by which the program finds it. */
export type Store = { readonly url: string; readonly source: Source };

export async function openStore(
  { place, say }: Work<unknown>,
  name: string,
  apps: readonly AppContent[],
): Promise<Store> {
  const url = await place.database(name);
  const source = ["--database-url", url];
  await runPrecast(["migrate", ...source], place.folder);
  say(`${name}: making ${apps.reduce((sum, { count }) => sum + count, 0).toLocaleString("en")} entries`);
  await loadApps(url, apps);
  return { url, source };
}
