/** Gives Precast's tables the index that `precast doctor` names for two fields, as an operator would who asks for both. */
import { withClient } from "../client.ts";
import type { LiveOptions } from "../live-options.ts";
import { runDoctor } from "../precast.ts";
import type { Work } from "../work.ts";
import type { Library } from "./library.ts";

/** Runs `read` while the index exists. Doctor names none where few entries have each value: then it runs as it is. */
export async function withAdvised<T>(
  { place, say }: Work<LiveOptions>,
  library: Library,
  pair: readonly [string, string],
  read: () => Promise<T>,
): Promise<T> {
  const statement = adviceFor(library, pair, place.folder);
  if (statement === null) {
    say(`reads: doctor names no index for ${pair.join(" and ")} among so few entries`);
    return read();
  }
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

function adviceFor({ source }: Library, [equal, range]: readonly [string, string], folder: string): string | null {
  const remedies = runDoctor(source, folder).filter(({ check }) => check === "ranges");
  const named = remedies.flatMap(({ remedy }) => remedy.split(`for ${equal} and ${range}: `)[1] ?? []);
  const [statement] = /^CREATE INDEX CONCURRENTLY .*? IS NOT NULL(?=[;.])/.exec(named[0] ?? "") ?? [];
  return statement ?? null;
}
