/** The bodies that answers may have while content changes: all that were right at some time, made without the server. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Address, nameFile, nameFolder, writeRequest } from "../../../shared/api/address.ts";
import type { App } from "../../../shared/api/catalog.ts";
import { isRefusal } from "../../../shared/api/errors.ts";
import { planRequest } from "../../../shared/api/plan.ts";
import { readRequest } from "../../../shared/api/request.ts";
import { readApp } from "../../../shared/apps.ts";
import type { Database } from "../../../shared/database/database.ts";
import { answerLive } from "../../../shared/live.ts";

/** A body by its hash, and the ETag that it came with. */
export type Seen = { readonly target: string; readonly body: string; readonly etag: string };

export type Truth = {
  /** Adds what the tree holds now. */
  readonly learnTree: () => void;
  /** Adds what the database answers now. */
  readonly learnLive: () => Promise<void>;
  readonly see: (target: string, body: Buffer, etag: string) => void;
  /** Bodies that were right at no time, and ETags that two bodies of a target shared. */
  readonly faults: () => string[];
};

export type TruthOptions = {
  readonly out: string;
  readonly database: Database;
  readonly appKey: string;
  readonly free: readonly Address[];
  readonly counted: readonly string[];
};

export function openTruth({ out, database, appKey, free, counted }: TruthOptions): Truth {
  const right = new Map<string, Set<string>>();
  const seen = new Map<string, Seen>();

  const learn = (target: string, body: string | Buffer) => {
    const known = right.get(target) ?? new Set();
    right.set(target, known.add(digest(body)));
  };
  const learnTree = () => {
    for (const address of free) {
      learn(writeRequest(address), readFileSync(join(out, nameFolder(appKey), nameFile(address))));
    }
  };
  const learnLive = async () => {
    const app = await readApp(database, appKey, { mediaBaseUrl: "http://localhost:3000" });
    for (const target of counted) learn(target, await computeLive(database, app as App, target));
  };
  const see: Truth["see"] = (target, body, etag) => {
    const one = { target, body: digest(body), etag };
    seen.set(`${target} ${one.body} ${etag}`, one);
  };
  const faults = () => {
    const wrong = [...seen.values()].filter(({ target, body }) => right.get(target)?.has(body) !== true);
    return [...wrong.map(({ target }) => `${target} had a body that it never was`), ...twice([...seen.values()])];
  };
  return { learnTree, learnLive, see, faults };
}

function twice(seen: readonly Seen[]): string[] {
  const bodies = new Map<string, Set<string>>();
  for (const { target, etag, body } of seen) {
    const name = `${target} ${etag}`;
    bodies.set(name, (bodies.get(name) ?? new Set()).add(body));
  }
  return [...bodies].filter(([, some]) => some.size > 1).map(([name]) => `${name} stood for two bodies`);
}

async function computeLive(database: Database, app: App, target: string): Promise<string> {
  const request = readRequest({ method: "GET", target, appKey: app.key });
  if (request.kind !== "request" || request.route.kind === "catalog")
    throw new Error(`${target} is no counted request`);
  const { slug } = request.route;
  const plan = planRequest(
    request,
    app.types.find((type) => type.slug === slug),
  );
  if (isRefusal(plan)) throw new Error(`${target} is refused`);
  const answer = await answerLive(database, app, plan, new Map());
  if (isRefusal(answer)) throw new Error(`${target} is refused`);
  return String(answer.body.bytes);
}

function digest(body: string | Buffer): string {
  return hash("sha256", body, "base64");
}
