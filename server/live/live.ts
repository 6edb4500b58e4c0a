/** Answers from the database while the server runs: bounded, shared by those who ask the same, and given up in time. */
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { App, Field } from "../../shared/catalog.ts";
import type { Database, Query, Session } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { answerLive } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import { databaseUnavailable, overloaded, type Refusal } from "../../shared/refusal.ts";
import type { Sources } from "../../shared/respond.ts";
import type { SlotBook } from "../../shared/slots.ts";
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
  // What begins has at least as much time left: with less, a database that hangs would do little but begin and cancel.
  const patience = options.queryTimeout / 2;
  const queue = openQueue({ atOnce, waiting: options.queue, patience });
  const pulse = takePulse({ probe: database.probe, onAway: database.renew });
  const apps = openSharing<App | null>();
  const answers = openSharing<string | Refusal>(refuseAtOnce);
  const slots: SlotBook = new Map();
  /** Keys that no app had when the database was last asked. */
  const strangers = new Set<string>();

  /** Crowds are refused so: it costs far less than to begin something for each and to give it up. */
  function refuseAtOnce(): Refusal | null {
    if (pulse.isAway()) return databaseUnavailable();
    return queue.isFull() ? overloaded() : null;
  }

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
    if (plan.kind === "schema") return answerLive(database, app, plan, slots);
    return answers(`${app.key} ${keyOf(plan)}`, app, gone, (controller) =>
      ask(controller, (session) => answerLive(session, app, plan, slots)),
    );
  }

  const state = () => ({ ...queue.counts(), databaseAway: pulse.isAway() });
  return { findApp, answer, state, close: pulse.close };
}

/** What the plan says, however it was asked for. Types and fields are the app's of that name. */
function keyOf(plan: Plan): string {
  return JSON.stringify(plan, (name, value) => {
    switch (name) {
      case "type":
        return value.slug;
      case "column":
        return value.name;
      case "fields":
      case "populate":
        return value.map((field: Field) => field.name);
      default:
        return typeof value === "bigint" ? String(value) : value;
    }
  });
}

const MAX_STRANGERS = 10_000;

function remember(keys: Set<string>, key: string): void {
  if (keys.size >= MAX_STRANGERS) keys.clear();
  keys.add(key);
}
