/** Gives Precast's tables the index that `precast doctor` names for two fields, as an operator would who asks for both. */
import { withClient } from "../client.ts";
import type { LiveOptions } from "../live-options.ts";
import { runDoctor } from "../precast.ts";
import type { Work } from "../work.ts";
import type { Library } from "./library.ts";

/** Runs `read` while the index exists. */
export async function withAdvised<T>(
  { place, say }: Work<LiveOptions>,
  library: Library,
  pair: readonly [string, string],
  read: () => Promise<T>,
): Promise<T> {
  const statement = adviceFor(library, pair, place.folder);
  const [name] = /entries_of_\w+/.exec(statement) ?? [];
  return withClient(library.url, async (client) => {
    const begun = performance.now();
    await client.query(statement);
    say(`reads: ${name} made in ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
    try {
      return await read();
    } finally {
      await client.query(`DROP INDEX precast.${name}`);
    }
  });
}

function adviceFor({ source }: Library, [equal, range]: readonly [string, string], folder: string): string {
  const remedies = runDoctor(source, "out", folder).filter(({ check }) => check === "ranges");
  const named = remedies.flatMap(({ remedy }) => remedy.split(`for ${equal} and ${range}: `)[1] ?? []);
  const [statement] = /^CREATE INDEX CONCURRENTLY .*? IS NOT NULL(?=[;.])/.exec(named[0] ?? "") ?? [];
  if (statement === undefined) throw new Error(`doctor names no index for ${equal} and ${range}`);
  return statement;
}
