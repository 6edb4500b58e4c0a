/**
 * The programs that are compared on a library, as processes: `precast serve` with its defaults, which keeps answers;
 * one that keeps none and finds each anew; and the program by hand, which also finds each anew.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withClient } from "../client.ts";
import type { LiveOptions } from "../live-options.ts";
import { runBuild, runPrecast } from "../precast.ts";
import { type Served, startPrecast, startSource } from "../served.ts";
import type { Work } from "../work.ts";
import type { Asked } from "./asked.ts";
import { APP, ARTICLES_TYPE, PEOPLE_TYPE } from "./definition.ts";
import { defineApp } from "./entries.ts";
import type { Library } from "./library.ts";

export type Side = {
  readonly name: "Precast" | "anew" | "by hand";
  readonly served: Served;
  readonly target: (asked: Asked) => string;
};

export type Sides = {
  readonly precast: Side;
  readonly anew: Side;
  readonly byHand: Side;
  readonly stop: () => Promise<void>;
};

const BY_HAND = fileURLToPath(new URL("../by-hand.ts", import.meta.url));

export async function openSides(work: Work<LiveOptions>, library: Library): Promise<Sides> {
  const { folder } = work.place;
  const out = await buildTree(work, library);
  const start = (name: string, ...more: readonly string[]) => {
    const data = join(folder, `live-${library.size}-${name}`);
    const args = [...library.source, "--out", out, "--data-dir", data, "--log-level", "warn", ...more];
    return startPrecast(`precast serve, ${name}`, args, folder);
  };
  const precast = await start("kept");
  const anew = await start("anew", "--memory-cache", "0");
  const byHand = await startSource("by hand", BY_HAND, [library.url], folder);
  return {
    precast: { name: "Precast", served: precast, target: (asked) => asked.precast },
    anew: { name: "anew", served: anew, target: (asked) => asked.precast },
    byHand: { name: "by hand", served: byHand, target: (asked) => asked.byHand },
    stop: async () => {
      await precast.stop();
      await anew.stop();
      await byHand.stop();
    },
  };
}

/**
 * Counted requests are never answered from the tree, but with a tree the server knows the app without the database. For
 * that, the tree of an app without entries does as well as a whole one, and does not take minutes to build.
 */
async function buildTree(work: Work<LiveOptions>, library: Library): Promise<string> {
  const { place, options, say } = work;
  const out = join(place.folder, `live-${library.size}-out`);
  if (options.build) {
    say("live: building the tree");
    await runBuild(library.source, out, place.folder);
    return out;
  }
  const url = await place.database("live_types");
  const source = ["--database-url", url];
  await runPrecast(["migrate", ...source], place.folder);
  await withClient(url, (client) => defineApp(client, APP, [PEOPLE_TYPE, ARTICLES_TYPE]));
  await runBuild(source, out, place.folder);
  return out;
}
