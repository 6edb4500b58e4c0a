/** Sends the same requests to all sides in turn, as fast as they answer, and records what each did. */
import { setTimeout as sleep } from "node:timers/promises";
import type { LiveOptions } from "../live-options.ts";
import { requestBytes } from "../recorded.ts";
import { type Window, watchInTurn } from "../round.ts";
import { inTurn, openLoop, percentile, type Seen, type Shot } from "../traffic.ts";
import type { Known } from "./agree.ts";
import { APP } from "./definition.ts";
import type { Side } from "./sides.ts";

export type Measure = {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
};

type Pace = Pick<LiveOptions, "rounds" | "seconds" | "connections">;

/** A row is slow when a single request takes more milliseconds than this: short slices would see no answers. */
const SLOW = 50;
/** A slow row gets no further round after this number of seconds. */
const ENOUGH = 60;

/** What one side did, round by round. */
export type Ran = {
  readonly name: Side["name"];
  readonly measures: readonly Measure[];
  readonly faults: readonly string[];
};

/** `took` is the milliseconds of a single request. */
export async function compareSides(
  sides: readonly Side[],
  known: readonly Known[],
  took: number,
  pace: Pace,
): Promise<Ran[]> {
  const runners = sides.map((side) => openRunner(side, known, pace));
  const slow = took > SLOW;
  const begun = performance.now();
  for (let round = 0; round < pace.rounds; round++) {
    const windows = await watchInTurn(runners, slow ? 0.5 : pace.seconds, (runner, seconds) => runner.watch(seconds));
    for (const [runner, { seen }] of windows) runner.note(seen);
    if (slow && performance.now() - begun > ENOUGH * 1_000) break;
  }
  return runners;
}

/** Milliseconds before measuring, in which requests fill the queue and do not show the pace of the server yet. */
const LEAD = 150;
/** A slice goes on until there were ANSWERS for each connection, but no longer than PATIENCE milliseconds. */
const ANSWERS = 2;
const PATIENCE = 20_000;

function openRunner({ name, served, target }: Side, known: readonly Known[], { connections }: Pace) {
  const headers = { Host: "localhost", "X-App-Key": APP };
  const shots = known.map(({ asked, lengths }): Shot => {
    return { bytes: requestBytes(target(asked), headers), status: 200, length: lengths[name] };
  });
  const next = inTurn(shots);
  const measures: Measure[] = [];
  const faults: string[] = [];

  async function watch(seconds: number): Promise<Window> {
    let sent = 0;
    const traffic = openLoop(served.url, connections, () => {
      sent += 1;
      return next();
    });
    await sleep(LEAD);
    traffic.begin();
    const begun = performance.now();
    const wanted = sent + ANSWERS * connections;
    await sleep(seconds * 1_000);
    while (sent < wanted && performance.now() - begun < PATIENCE) await sleep(20);
    const seen = traffic.end();
    await traffic.stop();
    return { seen, cpu: null };
  }
  const note = (seen: Seen) => {
    measures.push(measureOf(seen));
    faults.push(...wrongIn(seen).map((fault) => `${name}: ${fault}`));
  };
  return { name, watch, note, measures, faults };
}

/** OVERLOADED or QUERY_TIMEOUT: an answer that is too late is not a wrong one. */
const REFUSAL = /^50[34] of /;

export function wrongIn({ faults }: Seen): string[] {
  return faults.filter((fault) => !REFUSAL.test(fault));
}

function measureOf({ took, seconds }: Seen): Measure {
  const right = took.get("200") ?? [];
  const all = [...took.values()].reduce((sum, times) => sum + times.length, 0);
  return {
    perSecond: right.length / seconds,
    p50: percentile(right, 0.5),
    p99: percentile(right, 0.99),
    refused: all - right.length,
  };
}
