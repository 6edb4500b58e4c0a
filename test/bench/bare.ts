/** Starts bare node:http that repeats recorded answers: the least that a Node.js server can cost. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serialize } from "node:v8";
import type { Recorded } from "./recorded.ts";
import type { ServeOptions } from "./serve-options.ts";
import { profiling, type Served, startNode } from "./served.ts";
import type { Work } from "./work.ts";

const BARE = fileURLToPath(new URL("./bare.mjs", import.meta.url));

export async function startBare(
  { place, options }: Work<ServeOptions>,
  name: string,
  recorded: Recorded,
): Promise<Served> {
  const file = join(place.folder, `${name.replace(/\W+/g, "-")}.recorded`);
  writeFileSync(file, serialize(recorded));
  return startNode(name, BARE, [file], place.folder, profiling(options.profile, name));
}
