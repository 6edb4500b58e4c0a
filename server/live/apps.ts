/** Apps as the database has them, found by their keys, and the keys that no app has. */
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import type { Ask } from "../load/source.ts";
import { openFreshFlight } from "./fresh-flight.ts";

/** Null for a key that no app has. Throws a DatabaseFault, and the reason of the signal. */
export type FindApp = (key: string, gone: AbortSignal) => Promise<App | null>;

export type AppsOptions = {
  readonly ask: (controller: AbortController, run: Ask<App | null>) => Promise<App | null>;
  readonly defaults: AppDefaults;
};

const MAX_STRANGERS = 10_000;

export function openApps({ ask, defaults }: AppsOptions): FindApp {
  const readings = openFreshFlight<App | null>();
  /** Keys that no app had when the database was last asked. */
  const strangers = new Set<string>();

  return async (key, gone) => {
    try {
      const read = (controller: AbortController) => ask(controller, (session) => readApp(session, key, defaults));
      const app = await readings(key, null, gone, read);
      if (app === null) remember(strangers, key);
      else strangers.delete(key);
      return app;
    } catch (error) {
      // A key that was wrong a minute ago is still wrong while the database is away.
      if (error instanceof DatabaseFault && strangers.has(key)) return null;
      throw error;
    }
  };
}

function remember(keys: Set<string>, key: string): void {
  if (keys.size >= MAX_STRANGERS) keys.clear();
  keys.add(key);
}
