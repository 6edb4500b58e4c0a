/** One object for all that is the same app: without a tree each request has read it anew, and with one each reader of its file. */
import { isDeepStrictEqual } from "node:util";
import type { App } from "../../shared/catalog.ts";

export type SameApps = (app: App) => App;

export function openSameApps(): SameApps {
  /** Those that came last, by their keys. */
  const latest = new Map<string, App>();
  /** Which of those another was found to be: to look through it takes as long as to render a page. */
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
