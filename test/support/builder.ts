/** An empty PostgreSQL database, and a folder in which commands of the program build from it. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openPlace, type Place } from "./cli.ts";
import { MEDIA, openStore, type Store } from "./site.ts";

export type Builder = {
  readonly store: Store;
  readonly place: Place;
  /** Runs a script in one transaction, as a CMS would. */
  readonly write: (script: string) => Promise<void>;
  /** Replaces all content by this content, and deletes the tree. */
  readonly reset: (content: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

export async function openBuilder(): Promise<Builder> {
  const store = await openStore("postgres", { connections: 8 });
  const place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: MEDIA });
  const write = (script: string) => store.database.transaction("write", (session) => session.execute(script));
  const reset = async (content: string) => {
    rmSync(join(place.folder, "out"), { recursive: true, force: true });
    await write("DELETE FROM precast.apps");
    await write(content);
  };
  const close = async () => {
    await place.close();
    await store.close();
  };
  return { store, place, write, reset, close };
}
