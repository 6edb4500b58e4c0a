/** What the views of the studio read from, how they read the parameters that they have in common, and the files of the page. */
import { readFileSync } from "node:fs";
import type { App } from "../../shared/api/catalog.ts";
import { type CommonName, ConfigError, type Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { readChosenApp } from "../database.ts";

/** What a report reads from as well. */
export type Site = {
  readonly database: Database;
  readonly settings: Settings<CommonName> & Partial<Settings<"monthlyPlan">>;
  readonly now: () => Date;
};
export type StudioSite = Site & {
  readonly settings: Settings<"connections" | "workers">;
  /** Where the media that imports have brought are shown; null where they are not. */
  readonly media: string | null;
};

/** Answers with what a view shows. A ConfigError says what is wrong with the parameters. */
export type View = (query: URLSearchParams) => Promise<unknown>;

/** The app that `app` names. */
export function readViewedApp({ database, settings }: Site, query: URLSearchParams): Promise<App> {
  const key = requireParameter(query, "app");
  return database.transaction("read", (session) => readChosenApp(session, key, settings));
}

export function requireParameter(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (!value) throw new ConfigError([`The parameter ${name} is missing.`]);
  return value;
}

/** A file of the page, which the bundle of the program has beside it. */
export function readPageFile(name: string): string {
  return readFileSync(new URL(`../studio/${name}`, import.meta.url), "utf8");
}
