/** Answers from the database while the server runs: bounded, shared by those who ask the same, and given up in time. */
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database, Query, Session } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { answerLive } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import type { Refusal } from "../../shared/refusal.ts";
import type { Sources } from "../../shared/respond.ts";
import { takePulse } from "./pulse.ts";
import { openQueue } from "./queue.ts";
import { openSharing } from "./sharing.ts";

export type LiveOptions = AppDefaults & {
  /** Live queries at once at most; one on the embedded database. And how many may wait for one of those to end. */
  readonly connections: number;
  readonly queue: number;
  /** Milliseconds from when a query is asked for to when it is given up, its waiting included. */
  readonly queryTimeout: number;
};

export type LiveState = { readonly running: number; readonly waiting: number; readonly databaseAway: boolean };

export type Live = Pick<Sources, "findApp" | "answer"> & {
  readonly state: () => LiveState;
  readonly close: () => void;
};

export function openLive(database: Database, options: LiveOptions): Live {
  const atOnce = database.kind === "embedded" ? 1 : options.connections;
  const queue = openQueue({ atOnce, waiting: options.queue });
  const pulse = takePulse({ probe: database.probe, onAway: database.renew });
  const apps = openSharing<App | null>();
  const answers = openSharing<string | Refusal>();
  /** Keys that no app had when the database was last asked. */
  const strangers = new Set<string>();

  async function ask<T>(controller: AbortController, run: (session: Pick<Session, "query">) => Promise<T>): Promise<T> {
    const { signal } = controller;
    const session = { query: (query: Query) => database.query(query, signal) };
    const limit = setTimeout(() => controller.abort(), options.queryTimeout);
    try {
      return await pulse.during(controller, () => queue.run(signal, () => run(session)));
    } finally {
      clearTimeout(limit);
    }
  }

  async function findApp(key: string, gone: AbortSignal): Promise<App | null> {
    try {
      const app = await apps(key, null, gone, (controller) =>
        ask(controller, (session) => readApp(session, key, options)),
      );
      if (app === null) remember(strangers, key);
      else strangers.delete(key);
      return app;
    } catch (error) {
      // A key that was wrong a minute ago is still wrong while the database is away.
      if (error instanceof DatabaseFault && strangers.has(key)) return null;
      throw error;
    }
  }

  async function answer(app: App, plan: Plan, gone: AbortSignal): Promise<string | Refusal> {
    // It needs no query, and so no place among those that do.
    if (plan.kind === "schema") return answerLive(database, app, plan);
    return answers(`${app.key} ${keyOf(plan)}`, app, gone, (controller) =>
      ask(controller, (session) => answerLive(session, app, plan)),
    );
  }

  const state = () => ({ ...queue.counts(), databaseAway: pulse.isAway() });
  return { findApp, answer, state, close: pulse.close };
}

/** What the plan says, however it was asked for. The type is the app's of that name. */
function keyOf(plan: Plan): string {
  return JSON.stringify(plan, (name, value: unknown) => {
    if (name === "type" && typeof value === "object") return (value as { slug: string }).slug;
    return typeof value === "bigint" ? `${value}n` : value;
  });
}

const MAX_STRANGERS = 10_000;

function remember(keys: Set<string>, key: string): void {
  if (keys.size >= MAX_STRANGERS) keys.clear();
  keys.add(key);
}
