/**
 * Replaces equal app objects by one object. Without a tree each request reads its app anew; with one, each read of the
 * app's state file gives another object.
 */
import { isDeepStrictEqual } from "node:util";
import type { App } from "../../shared/catalog.ts";

export type CanonicalAppOf = (app: App) => App;

export function openCanonicalApps(): CanonicalAppOf {
  /** The latest version of each app, by key. */
  const latest = new Map<string, App>();
  /** The latest version that an app was found equal to: comparing them again takes as long as rendering a page. */
  const known = new WeakMap<App, App>();

  return (app) => {
    const before = latest.get(app.key);
    if (before !== undefined && (known.get(app) === before || isDeepStrictEqual(before, app))) {
      known.set(app, before);
      return before;
    }
    latest.set(app.key, app);
    return app;
  };
}
