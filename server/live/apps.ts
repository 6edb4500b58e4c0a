/** Finds apps in the database by their keys, and remembers keys that belong to no app. */
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import type { Ask } from "../load/source.ts";
import { openFreshFlight } from "./fresh-flight.ts";

/** Resolves with null when no app has the key. Throws a DatabaseFault, and the reason of `gone` when that aborts. */
export type FindApp = (key: string, gone: AbortSignal) => Promise<App | null>;

export type AppsOptions = {
  readonly ask: (controller: AbortController, run: Ask<App | null>) => Promise<App | null>;
  readonly defaults: AppDefaults;
};

const MAX_UNKNOWN_KEYS = 10_000;

export function openApps({ ask, defaults }: AppsOptions): FindApp {
  const readings = openFreshFlight<App | null>();
  /** Keys that belonged to no app when the database was last asked. */
  const unknownKeys = new Set<string>();

  return async (key, gone) => {
    try {
      const read = (controller: AbortController) => ask(controller, (session) => readApp(session, key, defaults));
      const app = await readings(key, null, gone, read);
      if (app === null) remember(unknownKeys, key);
      else unknownKeys.delete(key);
      return app;
    } catch (error) {
      // While the database cannot answer, its last answer holds: no app has this key.
      if (error instanceof DatabaseFault && unknownKeys.has(key)) return null;
      throw error;
    }
  };
}

function remember(keys: Set<string>, key: string): void {
  if (keys.size >= MAX_UNKNOWN_KEYS) keys.clear();
  keys.add(key);
}
