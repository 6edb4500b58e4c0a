/** An empty PostgreSQL database, and a place whose commands build from it. */
import { openPlace, type Place } from "./cli.ts";
import { MEDIA, openStore, type Store } from "./site.ts";

export type Builder = { readonly store: Store; readonly place: Place; readonly close: () => Promise<void> };

export async function openBuilder(): Promise<Builder> {
  const store = await openStore("postgres", { connections: 8 });
  const place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: MEDIA });
  const close = async () => {
    await place.close();
    await store.close();
  };
  return { store, place, close };
}
