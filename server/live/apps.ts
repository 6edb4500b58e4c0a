/**
 * Finds apps in the database by their keys. An app that has not changed is the same object as before, so that what is
 * known of it holds. Also remembers keys that belong to no app.
 */
import type { App } from "../../shared/api/catalog.ts";
import { type AppDefaults, parseApp, readAppText } from "../../shared/apps.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { openCanonicalApps } from "../tree.ts";
import { openFreshFlight } from "./share.ts";
import type { Ask } from "./sources.ts";

/** Resolves with null when no app has the key. Throws a DatabaseFault, and the reason of `gone` when that aborts. */
type FindApp = (key: string, gone: AbortSignal) => Promise<App | null>;

type AppsOptions = {
  readonly ask: (controller: AbortController, run: Ask<string | null>) => Promise<string | null>;
  readonly defaults: AppDefaults;
};

const MAX_UNKNOWN_KEYS = 10_000;

/** An app as it was last read. */
type ReadApp = { readonly text: string; readonly app: App };

export function openApps({ ask, defaults }: AppsOptions): FindApp {
  const texts = openFreshFlight<string | null>();
  const apps = new Map<string, ReadApp>();
  const canonical = openCanonicalApps();
  /** Keys that belonged to no app when the database was last asked. */
  const unknownKeys = new Set<string>();

  function readApp(key: string, text: string): App {
    const before = apps.get(key);
    if (before?.text === text) return before.app;
    const app = canonical(parseApp(text, defaults));
    apps.set(key, { text, app });
    return app;
  }

  return async (key, gone) => {
    try {
      const read = (controller: AbortController) => ask(controller, (session) => readAppText(session, key));
      const text = await texts(key, null, gone, read);
      if (text === null) remember(unknownKeys, key);
      else unknownKeys.delete(key);
      return text === null ? null : readApp(key, text);
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
