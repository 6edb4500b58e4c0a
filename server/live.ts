/** Answers from the database while the server runs. */
import { type AppDefaults, readApp } from "../shared/apps.ts";
import type { App } from "../shared/catalog.ts";
import type { Database } from "../shared/database/database.ts";
import { DatabaseFault } from "../shared/database/fault.ts";
import { answerLive } from "../shared/live.ts";
import type { Sources } from "../shared/respond.ts";

export type Live = Pick<Sources, "findApp" | "answer">;

export function openLive(database: Database, defaults: AppDefaults): Live {
  /** Keys that no app had when the database was last asked. */
  const strangers = new Set<string>();

  async function findApp(key: string): Promise<App | null> {
    try {
      const app = await readApp(database, key, defaults);
      if (app === null) remember(strangers, key);
      else strangers.delete(key);
      return app;
    } catch (error) {
      // A key that was wrong a minute ago is still wrong while the database is away.
      if (error instanceof DatabaseFault && strangers.has(key)) return null;
      throw error;
    }
  }

  return { findApp, answer: (app, plan) => answerLive(database, app, plan) };
}

const MAX_STRANGERS = 10_000;

function remember(keys: Set<string>, key: string): void {
  if (keys.size >= MAX_STRANGERS) keys.clear();
  keys.add(key);
}
