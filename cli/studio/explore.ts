/** Answers requests for the explorer as the server would, without counting them, and tells where each answer is from. */
import { openCache } from "../../server/cache.ts";
import type { KeptAnswer } from "../../server/live/cache.ts";
import { openLive } from "../../server/live/live.ts";
import { openQueue } from "../../server/load.ts";
import { openTree } from "../../server/tree.ts";
import { type Body, DEFAULT_CACHE_POLICY } from "../../shared/api/answer.ts";
import { type Reply, renderReply, respond } from "../../shared/api/respond.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { QUERY_TIMEOUT } from "../database.ts";
import { type ExplainedFile, type ExplainedQuery, type Explanation, explain } from "../explain/explanation.ts";
import { describeTimes, drawPlan } from "../explain/plan-text.ts";
import { requireParameter, type StudioSite, type View } from "./view.ts";

/** `kept`: made by the database before, and its content has not changed since. `none`: the request was refused. */
export type AnswerSource = "tree" | "kept" | "database" | "none";

export type ExploredAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly bytes: number;
  readonly milliseconds: number;
  readonly source: AnswerSource;
  /** Of a free request; null when no file can hold the answer. */
  readonly file: ExplainedFile | null;
  /** Of a counted request; null when it needs no query, or when the database is away. */
  readonly query: ExploredQuery | null;
};

/** `times` and `plan` are texts. */
type ExploredQuery = {
  readonly byIndex: boolean;
  readonly sentence: string;
  readonly times: string;
  readonly plan: string;
  readonly sql: string;
  readonly values: string;
};

type Explorer = { readonly answer: View; readonly close: () => void };

/** One person looks at the page, and a server that has it shares its connections with it. */
const LIMITS = { connections: 2, queue: 20, queryTimeout: QUERY_TIMEOUT };
/** Bytes of memory for answers of the database. */
const KEPT_BYTES = 16_000_000;

export function openExplorer(site: StudioSite & { readonly onError: (error: unknown) => void }): Explorer {
  const { database, settings, onError } = site;
  const { out, mediaBaseUrl } = settings;
  const live = openLive(database, { ...LIMITS, mediaBaseUrl, answerCache: openCache<KeptAnswer>(KEPT_BYTES) });
  const sources = { ...openTree(out), ...live, onError };
  const explaining = openQueue({ atOnce: 1, waiting: LIMITS.queue, limit: 2 * QUERY_TIMEOUT });
  /** The bodies that have been sent: only one that was kept is the same object again. */
  const sent = new WeakSet<Body>();

  async function answer(query: URLSearchParams): Promise<ExploredAnswer> {
    const [appKey, target] = [requireParameter(query, "app"), requireParameter(query, "target")];
    const start = performance.now();
    const reply = await respond({ method: "GET", target, appKey, since: start }, sources);
    const { status, headers, body } = renderReply(reply, DEFAULT_CACHE_POLICY, undefined);
    const milliseconds = performance.now() - start;
    const text = String(body ?? "");
    const exchange = { status, headers, body: text, bytes: Buffer.byteLength(text), milliseconds };
    const source = findSource(reply);
    const explanation = await explainTarget(appKey, target);
    return { ...exchange, source, file: explanation?.file ?? null, query: describeQuery(explanation?.sql ?? null) };
  }

  function findSource(reply: Reply): AnswerSource {
    if (reply.kind !== "found") return "none";
    if (reply.context.fromTree) return "tree";
    const isKept = sent.has(reply.body);
    sent.add(reply.body);
    return isKept ? "kept" : "database";
  }

  /** Null for an unknown app, and when the database cannot be asked. */
  async function explainTarget(appKey: string, target: string): Promise<Explanation | null> {
    const { signal } = new AbortController();
    try {
      const tree = await sources.findTree(appKey);
      const app = tree?.app ?? (await sources.findApp(appKey, signal));
      const run = async () => app && explain(database, app, target, { out, hasTree: tree !== null });
      return await explaining.run(signal, "light", run);
    } catch (error) {
      if (error instanceof DatabaseFault) return null;
      throw error;
    }
  }

  return { answer, close: live.close };
}

function describeQuery(explained: ExplainedQuery | null): ExploredQuery | null {
  if (explained === null) return null;
  const { text, values, plan, service } = explained;
  const times = plan.ran ? describeTimes(plan) : "not run to its end: it takes longer than a live query may";
  const { by_index: byIndex, sentence } = service;
  return { byIndex, sentence, times, plan: drawPlan(plan), sql: text, values: JSON.stringify(values) };
}
