/** Content in a database and its tree, for servers to answer from. */
import { join } from "node:path";
import { runBuild } from "./precast.ts";
import type { ServeOptions } from "./serve-options.ts";
import { openStore, type Store, type Work } from "./work.ts";

export type Site = Store & { readonly out: string; readonly apps: readonly string[] };

export async function openSite(work: Work<ServeOptions>): Promise<Site> {
  const { options, place, say } = work;
  const count = Math.floor(options.entries / options.apps);
  const contents = Array.from({ length: options.apps }, (_, index) => ({
    key: `bench-${index}`,
    first: index * count,
    count,
  }));
  const store = await openStore(work, "serve", contents);
  const out = join(place.folder, "out");
  say("building");
  await runBuild(store.source, out, place.folder);
  return { ...store, out, apps: contents.map(({ key }) => key) };
}
