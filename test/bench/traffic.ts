/** Generates the traffic of clients: requests without a pause, with a pause after each answer, or at a given rate. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, openConnection } from "./connection.ts";
import { randomFrom } from "./random.ts";

/** A request as bytes, and the expected status and length of its answer; null where any is right. */
export type Shot = { readonly bytes: Buffer; readonly status: number | null; readonly length: number | null };

/** What the measured time showed: the milliseconds of each answer, by kind (see `kindOf`), and what went wrong. */
export type Seen = {
  readonly took: ReadonlyMap<string, readonly number[]>;
  readonly seconds: number;
  readonly faults: readonly string[];
};

export type Traffic = {
  readonly begin: () => void;
  readonly end: () => Seen;
  /** Waits for the outstanding answers, and resolves with the number of all answers since the start. */
  readonly stop: () => Promise<number>;
};

/** Records answers and faults between `begin` and `end`, and counts all answers since the start. */
function openNotes() {
  let took = new Map<string, number[]>();
  let faults: string[] = [];
  let since = 0;
  let total = 0;
  return {
    total: () => total,
    begin: () => {
      took = new Map();
      faults = [];
      since = performance.now();
    },
    end: (): Seen => {
      const seen = { took, faults, seconds: (performance.now() - since) / 1_000 };
      took = new Map();
      return seen;
    },
    note: (shot: Shot, status: number, length: number, milliseconds: number) => {
      total += 1;
      const kind = kindOf(status, length);
      const same = took.get(kind);
      if (same === undefined) took.set(kind, [milliseconds]);
      else same.push(milliseconds);
      const wrong = (shot.status ?? status) !== status || (shot.length ?? length) !== length;
      if (wrong) faults.push(`${status} of ${length} bytes for ${lineOf(shot)}`);
    },
    fault: (shot: Shot, error: Error) => faults.push(`${error.message} ${lineOf(shot)}`),
  };
}

function lineOf({ bytes }: Shot): string {
  return bytes.toString("latin1", 0, bytes.indexOf("\r"));
}

/** Returns the shots in turn, endlessly. */
export function inTurn(shots: readonly Shot[]): () => Shot {
  let turn = 0;
  return () => shots[turn++ % shots.length] as Shot;
}

type Lane = { readonly ask: (shot: Shot, since: number) => void; readonly close: () => void };

/** A connection with one request at a time; `done` is called when the answer has arrived, or never will. */
function openLane(url: string, notes: ReturnType<typeof openNotes>, done: (lane: Lane, status: number) => void): Lane {
  let asked: { shot: Shot; since: number } | null = null;
  const lane: Lane = {
    ask: (shot, since) => {
      asked = { shot, since };
      connection.send(shot.bytes);
    },
    close: () => connection.close(),
  };
  const connection: Connection = openConnection(url, {
    answered: (status, length) => {
      const had = asked;
      asked = null;
      if (had !== null) notes.note(had.shot, status, length, performance.now() - had.since);
      done(lane, status);
    },
    lost: (error) => {
      const had = asked;
      asked = null;
      if (had === null) return;
      notes.fault(had.shot, error);
      done(lane, 0);
    },
  });
  return lane;
}

/**
 * Every connection sends a request as soon as it has an answer, or `pauseAfter(status)` milliseconds later;
 * `pauseAfter(null)` is the time before its first request.
 */
export function openLoop(
  url: string,
  connections: number,
  next: () => Shot,
  pauseAfter: (status: number | null) => number = () => 0,
): Traffic {
  const notes = openNotes();
  let open = connections;
  let stopping = false;
  let drained = () => {};
  const finished = new Promise<void>((resolve) => {
    drained = resolve;
  });
  const again = (lane: Lane) => {
    if (!stopping) return lane.ask(next(), performance.now());
    lane.close();
    open -= 1;
    if (open === 0) drained();
  };
  const againIn = (pause: number, lane: Lane) => {
    if (pause === 0) again(lane);
    else setTimeout(again, pause, lane);
  };
  const lanes = Array.from({ length: connections }, () =>
    openLane(url, notes, (lane, status) => {
      againIn(status === 0 ? RECONNECT : pauseAfter(status), lane);
    }),
  );
  for (const lane of lanes) againIn(pauseAfter(null), lane);
  return {
    begin: notes.begin,
    end: notes.end,
    stop: async () => {
      stopping = true;
      await finished;
      return notes.total();
    },
  };
}

const RECONNECT = 50;

/**
 * Sends `perSecond` requests a second on average, at random moments, whatever the server does. A request that waits for
 * a free connection is timed from the moment at which it was due.
 */
export function openStream(url: string, connections: number, next: () => Shot, perSecond: number): Traffic {
  const notes = openNotes();
  const random = randomFrom(1);
  const due: number[] = [];
  const send = (lane: Lane) => {
    const since = due.shift();
    if (since === undefined) idle.push(lane);
    else lane.ask(next(), since);
  };
  const idle: Lane[] = [];
  const lanes = Array.from({ length: connections }, () => openLane(url, notes, send));
  idle.push(...lanes);
  let moment = performance.now();
  const timer = setInterval(() => {
    for (const now = performance.now(); moment <= now; moment += gap()) {
      due.push(moment);
      const lane = idle.pop();
      if (lane !== undefined) send(lane);
    }
  }, 1);
  const gap = () => (-Math.log(1 - random.below(2 ** 31) / 2 ** 31) * 1_000) / perSecond;
  return {
    begin: notes.begin,
    end: notes.end,
    stop: async () => {
      clearInterval(timer);
      const deadline = performance.now() + DRAIN;
      while (idle.length < lanes.length && performance.now() < deadline) await sleep(10);
      for (const lane of lanes) lane.close();
      return notes.total();
    },
  };
}

const DRAIN = 10_000;

/** The status, and for a refusal also the length, which distinguishes refusals with the same status. */
export function kindOf(status: number, length: number): string {
  return status < 400 ? String(status) : `${status} of ${length} bytes`;
}

/** The times of the answers of one kind, or of all. */
export function tookOf({ took }: Seen, kind?: string): readonly number[] {
  return kind === undefined ? [...took.values()].flat() : (took.get(kind) ?? []);
}

/** The time below which this part of the answers lies. */
export function percentile(took: readonly number[], part: number): number {
  const sorted = Float64Array.from(took).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
