/**
 * Replaces equal app objects by one object, so that what is known of an app holds for as long as it does not change: each
 * build gives its state another file, and a write that changes nothing of it may give it another text in the database.
 */
import { isDeepStrictEqual } from "node:util";
import type { App } from "../../shared/catalog.ts";

export type CanonicalAppOf = (app: App) => App;

export function openCanonicalApps(): CanonicalAppOf {
  /** The latest version of each app, by key. */
  const latest = new Map<string, App>();

  return (app) => {
    const before = latest.get(app.key);
    if (before !== undefined && isDeepStrictEqual(before, app)) return before;
    latest.set(app.key, app);
    return app;
  };
}
