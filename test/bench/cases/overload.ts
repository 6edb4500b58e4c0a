/** The database hangs and the queue for it is full: what becomes of answers of the tree, and how soon 503 is told. */
import { join } from "node:path";
import { withClient } from "../client.ts";
import { TYPE } from "../content.ts";
import { pickAsks } from "../mix.ts";
import { PLAIN, record, requestBytes, shotsOf } from "../recorded.ts";
import { watchWindow } from "../round.ts";
import type { ServeOptions } from "../serve-options.ts";
import { type Found, type Round, ratioOf, roundOf, rowOf } from "../serve-result.ts";
import { type Served, startPrecast } from "../served.ts";
import { openSite, type Site } from "../site.ts";
import { inTurn, kindOf, openLoop, openStream, type Seen, type Shot } from "../traffic.ts";
import type { Work } from "../work.ts";

const ENTRIES = 2_000;
const ASKS = 1_000;
/** Far from what the server can do: waiting is to be seen, and not how two kinds of work share one processor. */
const PER_SECOND = 1_000;
const CLIENTS = 500;
/** Milliseconds after a refusal. Retry-After says ten times that. */
const IMPATIENCE = 100;
const LOOKS = 20;
/** Answered when the database is back, refused, waited in vain. */
const EXPECTED = /^(200|503|504)\b/;

type Rounds = {
  readonly calm: Round[];
  readonly hanging: Round[];
  readonly refused: Round[];
  readonly faults: string[];
};

export async function overloadCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openSite(work, "overload", { entries: ENTRIES, apps: 1 });
  const { place, options, say } = work;
  const args = [...site.source, "--out", site.out, "--data-dir", join(place.folder, "data", "overload")];
  const served = await startPrecast("precast serve, overload", args, place.folder);
  const rounds: Rounds = { calm: [], hanging: [], refused: [], faults: [] };
  try {
    const asks = pickAsks(site.out, site.apps, ASKS);
    const shots = shotsOf(served.url, asks, await record(served.url, asks, PLAIN), PLAIN);
    for (let round = 1; round <= options.rounds; round++) {
      say(`overload: round ${round}`);
      await runRound(work, site, served, shots, rounds);
    }
    return { rows: rowsOf(rounds, served), faults: rounds.faults };
  } finally {
    await served.stop();
  }
}

async function runRound(
  { options }: Work<ServeOptions>,
  site: Site,
  served: Served,
  shots: readonly Shot[],
  { calm, hanging, refused, faults }: Rounds,
): Promise<void> {
  const stream = openStream(served.url, options.connections, inTurn(shots), PER_SECOND);
  const before = await watchWindow(served, options.seconds, stream);
  const { during, crowd, kind } = await whileHanging(site, async (release) => {
    const pause = (status: number) => (status === 503 ? IMPATIENCE : 0);
    const clients = openLoop(served.url, CLIENTS, inTurn(slowShots(site)), pause);
    clients.begin();
    const during = await watchWindow(served, options.seconds, stream);
    const crowd = clients.end();
    const { kind, wrong } = await lookAtRefusal(site, served);
    faults.push(...wrong);
    const stopped = clients.stop();
    await release();
    await stopped;
    return { during: during.seen, crowd, kind };
  });
  await stream.stop();
  calm.push(roundOf(before.seen, null));
  hanging.push(roundOf(during, null));
  refused.push(roundOf(crowd, null, kind));
  faults.push(...[before.seen, during, crowd].flatMap((seen) => seen.faults), ...unexpected(crowd));
}

/** Each client asks for something else: what is the same could share one query. */
function slowShots({ apps: [app = ""] }: Site): Shot[] {
  return Array.from({ length: CLIENTS }, (_, client) => ({
    bytes: requestBytes(`/api/v1/${TYPE.slug}?per_page=1&page=${client + 1}`, { Host: "localhost", "X-App-Key": app }),
    status: null,
    length: null,
  }));
}

/** Nobody can read entries until it is done, or calls `release`. */
function whileHanging<T>({ url }: Site, use: (release: () => Promise<void>) => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query("BEGIN");
    await client.query("LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    return use(async () => void (await client.query("ROLLBACK")));
  });
}

/** The kind of what is told at once, and what is wrong with it. */
async function lookAtRefusal({ apps: [app = ""] }: Site, { url }: Served): Promise<{ kind: string; wrong: string[] }> {
  const look = async (page: number) => {
    const target = `${url}/api/v1/${TYPE.slug}?per_page=2&page=${page}`;
    const answer = await fetch(target, { headers: { "X-App-Key": app } });
    const text = await answer.text();
    const right = answer.status === 503 && answer.headers.has("retry-after") && text.includes('"OVERLOADED"');
    return { right, kind: kindOf(answer.status, Buffer.byteLength(text)) };
  };
  // Some may find a place in the queue that has just become free.
  const looks = await Promise.all(Array.from({ length: LOOKS }, (_, index) => look(index + 1)));
  const found = looks.find(({ right }) => right);
  if (found !== undefined) return { kind: found.kind, wrong: [] };
  return { kind: "", wrong: [`a full queue is told by ${looks.map(({ kind }) => kind).join(", ")}`] };
}

function unexpected(seen: Seen): string[] {
  return [...seen.took.keys()].filter((kind) => !EXPECTED.test(kind)).map((kind) => `a live answer is ${kind}`);
}

function rowsOf({ calm, hanging, refused }: Rounds, served: Served) {
  const name = `cached, ${PER_SECOND.toLocaleString("en")} a second`;
  return [
    rowOf(calm, { case: "overload", what: name }),
    rowOf(hanging, {
      case: "overload",
      what: `${name}, database hangs, ${CLIENTS} clients want it`,
      memory: served.memory(),
      ratios: [...ratioOf("p50", hanging, "calm", calm), ...ratioOf("p99", hanging, "calm", calm)],
      aim: "p99 as when calm",
    }),
    rowOf(refused, { case: "overload", what: "503 OVERLOADED", aim: "at once" }),
  ];
}
