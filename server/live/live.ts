/** Answers from the database while the server runs: bounded, shared by those who ask the same, and given up in time. */

import { setImmediate } from "node:timers/promises";
import type { Body } from "../../shared/answer.ts";
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { App, Field } from "../../shared/catalog.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { answerLive } from "../../shared/live.ts";
import type { Plan } from "../../shared/plan.ts";
import { databaseUnavailable, overloaded, type Refusal } from "../../shared/refusal.ts";
import type { Sources } from "../../shared/respond.ts";
import { stampQuery } from "../../shared/sql/query.ts";
import type { SlotBook } from "../../shared/sql/slots.ts";
import { type LiveState, openChoice } from "./choice.ts";
import { answerKept, type Keeper, type Stamp } from "./kept.ts";
import type { Replica } from "./replica.ts";
import { openSharing } from "./sharing.ts";
import { type Ask, openSource, type SourceOptions } from "./source.ts";

export type LiveOptions = AppDefaults &
  SourceOptions & {
    /** Those answer as long as one of them may. */
    readonly replicas?: readonly Replica[];
    readonly keeper: Keeper;
  };

export type Live = Pick<Sources, "findApp" | "answer"> & {
  readonly state: () => LiveState;
  /** How many queries each has answered: the primary, then the replicas. */
  readonly answered: () => readonly number[];
  readonly close: () => void;
};

export function openLive(database: Database, options: LiveOptions): Live {
  const { replicas = [], queryTimeout, keeper } = options;
  const sources = openChoice(
    openSource(database, options),
    replicas.map((replica) => ({ source: openSource(replica.database, options), standing: replica.standing })),
  );
  const apps = openSharing<App | null>();
  const answers = openSharing<Body | Refusal>(refuseAtOnce);
  const stamps = openSharing<Stamp | Refusal>(refuseAtOnce);
  /** Counts the times at which a stamp was begun to be read. */
  let turn = 0;
  const slots: SlotBook = new Map();
  /** Keys that no app had when the database was last asked. */
  const strangers = new Set<string>();

  /** Crowds are refused so: it costs far less than to begin something for each and to give it up. */
  function refuseAtOnce(): Refusal | null {
    const source = sources.choose();
    if (source.isAway()) return databaseUnavailable();
    return source.isFull() ? overloaded() : null;
  }

  /** `left` is in milliseconds. */
  async function ask<T>(controller: AbortController, run: Ask<T>, left = queryTimeout): Promise<T> {
    const limit = setTimeout(() => controller.abort(), left);
    try {
      return await sources.ask(controller, run);
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

  async function answer(app: App, plan: Plan, gone: AbortSignal): Promise<Body | Refusal> {
    // It needs no query, and so no place among those that do.
    if (plan.kind === "schema") return answerLive(database, app, plan, slots);
    const key = `${app.key} ${knownKeyOf(plan)}`;
    const deadline = performance.now() + queryTimeout;
    const answer = (stamp?: Stamp) =>
      answers(`${key} ${stamp}`, app, gone, (controller) => {
        const left = Math.max(0, deadline - performance.now());
        return ask(controller, (session) => answerLive(session, app, plan, slots), left);
      });
    return answerKept(keeper, { app, plan, key, answer, readStamp: (slugs) => stampOf(app, slugs, gone) });
  }

  /** All who ask in one turn of the event loop share a stamp. It is read after they asked: none is older than the question. */
  function stampOf(app: App, slugs: readonly string[], gone: AbortSignal): Promise<Stamp | Refusal> {
    return stamps(`${turn} ${app.key} ${slugs.join(" ")}`, null, gone, async (controller) => {
      await setImmediate();
      turn++;
      return ask(controller, (session) => readStamp(session, app.key, slugs));
    });
  }

  const { state, answered, close } = sources;
  return { findApp, answer, state, answered, close };
}

const keys = new WeakMap<Plan, string>();

/** A plan that is answered again has its key still. */
function knownKeyOf(plan: Plan): string {
  const known = keys.get(plan) ?? keyOf(plan);
  keys.set(plan, known);
  return known;
}

async function readStamp(session: Pick<Session, "query">, appKey: string, slugs: readonly string[]): Promise<Stamp> {
  const [row] = await session.query(stampQuery(appKey, slugs));
  return row?.[0] ?? null;
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
