/** What is seen of a request once it has its answer: plain data, for the log and the metrics. */
import type { Circumstances } from "../../shared/answer.ts";
import type { Shape } from "../../shared/metering.ts";
import type { AskedHttp } from "./asked.ts";
import type { Ready } from "./ready.ts";

/** Who made the answer; `none` where the app is not known. */
export type Source = "tree" | "live" | "none";

export type Observation = {
  readonly id: string;
  readonly method: string;
  /** As it came. */
  readonly target: string;
  /** As it came, whether an app has it or not; undefined where none came. */
  readonly appKey: string | undefined;
  readonly client: string | undefined;
  /** 499 where the client went away before there was an answer. */
  readonly status: number;
  /** Null where the app is not known. */
  readonly shape: Shape | null;
  readonly counted: boolean;
  readonly source: Source;
  /** Of the body, as it is sent. */
  readonly bytes: number;
  /** When the request was there: a reading of `performance.now()`. */
  readonly start: number;
};

export type Observe = (observation: Observation) => void;

/** What logs call a client that did not wait. */
const CLIENT_GONE = 499;

/** `ready` is null where the client had gone, `circumstances` where the app is not known. */
export function observationOf(
  about: Pick<Observation, "id" | "client" | "start">,
  { method, target, appKey }: AskedHttp,
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

function sourceOf(circumstances: Circumstances | null): Source {
  if (circumstances === null) return "none";
  return circumstances.fromTree ? "tree" : "live";
}

/** One function for those that there are; null where there are none. */
export function observeBy(...observers: readonly (Observe | null)[]): Observe | null {
  const [first, ...rest] = observers.filter((observer) => observer !== null);
  if (first === undefined) return null;
  const others = observeBy(...rest);
  if (others === null) return first;
  return (observation) => {
    first(observation);
    others(observation);
  };
}
