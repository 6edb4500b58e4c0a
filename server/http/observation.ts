/** Describes an answered request as plain data, for the log and the metrics. */
import type { Circumstances } from "../../shared/answer.ts";
import type { Shape } from "../../shared/metering.ts";
import type { HttpRequest } from "./http-request.ts";
import type { Ready } from "./ready.ts";

/** Where the answer comes from; `none` when the app is not known, or the client did not wait for the database. */
export type AnswerSource = "tree" | "live" | "none";

export type Observation = {
  readonly id: string;
  readonly method: string;
  /** As the client sent it. */
  readonly target: string;
  /** As the client sent it, whether or not an app has this key; undefined when none was sent. */
  readonly appKey: string | undefined;
  readonly client: string | undefined;
  /** 499 when the client went away before there was an answer. */
  readonly status: number;
  /** Null when the app is not known, or the client did not wait for the database. */
  readonly shape: Shape | null;
  readonly counted: boolean;
  readonly source: AnswerSource;
  /** Number of bytes of the body as it is sent, 0 for HEAD. */
  readonly bytes: number;
  /** When the request arrived: a reading of `performance.now()`. */
  readonly start: number;
};

export type Observe = (observation: Observation) => void;

/** Status in the log for a client that did not wait for its answer. */
const CLIENT_GONE = 499;

/** `ready` is null when the client has gone away, `circumstances` as in app.ts. */
export function observationOf(
  about: Pick<Observation, "id" | "client" | "start">,
  { method, target, appKey }: HttpRequest,
  ready: Ready | null,
  circumstances: Circumstances | null,
): Observation {
  return {
    id: about.id,
    client: about.client,
    start: about.start,
    method,
    target,
    appKey,
    status: ready === null ? CLIENT_GONE : ready.status,
    shape: circumstances === null ? null : circumstances.metering.shape,
    counted: circumstances?.metering.counted ?? false,
    source: sourceOf(circumstances),
    bytes: method === "HEAD" ? 0 : (ready?.body?.length ?? 0),
  };
}

function sourceOf(circumstances: Circumstances | null): AnswerSource {
  if (circumstances === null) return "none";
  return circumstances.fromTree ? "tree" : "live";
}

/** Combines observers, of which some may be null, into one function; null when all are null. */
export function combineObservers(...observers: readonly (Observe | null)[]): Observe | null {
  const [first, ...rest] = observers.filter((observer) => observer !== null);
  if (first === undefined) return null;
  const others = combineObservers(...rest);
  if (others === null) return first;
  return (observation) => {
    first(observation);
    others(observation);
  };
}
