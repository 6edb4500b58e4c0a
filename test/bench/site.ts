/** Content in a database and its tree, for servers to answer from. */
import { join } from "node:path";
import { runBuild } from "./precast.ts";
import type { ServeOptions } from "./serve-options.ts";
import { openStore, type Store, type Work } from "./work.ts";

export type Site = Store & { readonly out: string; readonly apps: readonly string[] };

/** Loads `entries` entries, shared by `apps` apps, and builds their tree. */
export async function openSite(
  work: Work<ServeOptions>,
  name: string,
  size: Pick<ServeOptions, "entries" | "apps">,
): Promise<Site> {
  const { place, say } = work;
  const count = Math.floor(size.entries / size.apps);
  const contents = Array.from({ length: size.apps }, (_, index) => ({
    key: `bench-${index}`,
    first: index * count,
    count,
  }));
  const store = await openStore(work, name, contents);
  const out = join(place.folder, `${name}-out`);
  say(`${name}: building`);
  await runBuild(store.source, out, place.folder);
  return { ...store, out, apps: contents.map(({ key }) => key) };
}
