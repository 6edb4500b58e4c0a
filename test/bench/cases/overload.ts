/**
 * How fast answers of the tree are while the database hangs and the queue for it is full, and how soon 503 comes. On a
 * small machine, the crowd takes CPU from all others: for comparison, it also runs before the database hangs, when its
 * requests are answered, and against bare node:http, which refuses them.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startBare } from "../bare.ts";
import { withClient } from "../client.ts";
import { TYPE } from "../content.ts";
import { openCrowd } from "../crowd.ts";
import { pickAsks } from "../mix.ts";
import { type Answer, keyOf, PLAIN, type Recorded, record, requestBytes, shotsOf } from "../recorded.ts";
import { watchWindow } from "../round.ts";
import type { ServeOptions } from "../serve-options.ts";
import { type Found, type Round, ratioOf, roundOf, rowOf } from "../serve-result.ts";
import { type Served, startPrecast } from "../served.ts";
import { openSite, type Site } from "../site.ts";
import { inTurn, kindOf, openStream, type Seen, type Shot } from "../traffic.ts";
import type { Work } from "../work.ts";

const ENTRIES = 2_000;
const ASKS = 1_000;
/** Far less than the server can do: this measures waiting, not how two kinds of work share one processor. */
const PER_SECOND = 1_000;
const CLIENTS = 500;
/** Many more than there are clients, because equal requests could share one query. */
const WISHES = 20_000;
/** Milliseconds between an answer and the next request: as Retry-After says, and ten times as soon. */
const PAUSES = [1_000, 100] as const;
/** Milliseconds in which the clients, as many as they are, fill the queue. */
const FILLING = 500;
const LOOKS = 20;
/** Answered once the database is back, refused, or timed out. */
const EXPECTED = /^(200|503|504)\b/;

/** The rounds by pause. */
type Rounds = ReadonlyMap<number, Round[]>;
/** Without a crowd, with one whose requests are answered, and with one whose requests are not. */
type State = "calm" | "answered" | "crowded";
type Side = {
  readonly served: Served;
  readonly shots: readonly Shot[];
  readonly rounds: Readonly<Record<State, Rounds>>;
};
type Sides = { readonly ours: Side; readonly bare: Side; readonly refused: Round[]; readonly faults: string[] };

export async function overloadCase(work: Work<ServeOptions>): Promise<Found> {
  const site = await openSite(work, "overload", { entries: ENTRIES, apps: 1 });
  const { place, options, say } = work;
  const args = [...site.source, "--out", site.out, "--data-dir", join(place.folder, "data", "overload")];
  const served = await startPrecast("precast serve, overload", args, place.folder);
  const started = [served];
  try {
    const asks = pickAsks(site.out, site.apps, ASKS);
    const recorded = await record(served.url, asks, PLAIN);
    const bare = await startBare(work, "bare node:http, overload", new Map([...recorded, ...refusals(site)]));
    started.push(bare);
    const sideOf = (served: Served): Side => ({
      served,
      shots: shotsOf(served.url, asks, recorded, PLAIN),
      rounds: { calm: noRounds(), answered: noRounds(), crowded: noRounds() },
    });
    const sides: Sides = { ours: sideOf(served), bare: sideOf(bare), refused: [], faults: [] };
    for (let round = 1; round <= options.rounds; round++) {
      say(`overload: round ${round}`);
      for (const pause of PAUSES) {
        await runBare(work, site, sides, pause);
        await runOurs(work, site, sides, pause);
      }
    }
    return { rows: rowsOf(sides), faults: sides.faults };
  } finally {
    for (const one of started) await one.stop();
  }
}

function noRounds(): Rounds {
  return new Map(PAUSES.map((pause) => [pause, []]));
}

async function runOurs(work: Work<ServeOptions>, site: Site, sides: Sides, pause: number): Promise<void> {
  const { ours, refused, faults } = sides;
  await withStream(work, ours, pause, faults, async (watch) => {
    const crowd = openCrowd({ url: ours.served.url, clients: CLIENTS, shots: crowdShots(site), pause });
    await crowd.here;
    await watch("answered");
    await whileHanging(site, async (release) => {
      // Until the queue is full.
      await sleep(2 * pause + FILLING);
      crowd.begin();
      await watch("crowded");
      const seen = await crowd.end();
      const { kind, wrong } = await lookAtRefusal(site, ours.served);
      refused.push(roundOf(seen, null, kind));
      faults.push(...wrong, ...seen.faults, ...unexpected(seen));
      const stopped = crowd.stop();
      await release();
      await stopped;
    });
  });
}

async function runBare(work: Work<ServeOptions>, site: Site, { bare, faults }: Sides, pause: number): Promise<void> {
  await withStream(work, bare, pause, faults, async (watch) => {
    const crowd = openCrowd({ url: bare.served.url, clients: CLIENTS, shots: crowdShots(site), pause });
    await crowd.here;
    await watch("crowded");
    await crowd.stop();
  });
}

type Watch = (state: State) => Promise<void>;

/** Measures the stream alone first, and then whatever `use` watches. */
async function withStream(
  { options }: Work<ServeOptions>,
  { served, shots, rounds }: Side,
  pause: number,
  faults: string[],
  use: (watch: Watch) => Promise<void>,
): Promise<void> {
  const stream = openStream(served.url, options.connections, inTurn(shots), PER_SECOND);
  const watch: Watch = async (state) => {
    const { seen } = await watchWindow(served, options.seconds, stream);
    rounds[state].get(pause)?.push(roundOf(seen, null));
    faults.push(...seen.faults);
  };
  await watch("calm");
  await use(watch);
  await stream.stop();
}

function crowdTargets(): string[] {
  return Array.from({ length: WISHES }, (_, wish) => `/api/v1/${TYPE.slug}?per_page=1&page=${wish + 1}`);
}

function crowdShots({ apps: [app = ""] }: Site): Shot[] {
  return crowdTargets().map((target) => ({
    bytes: requestBytes(target, { Host: "localhost", "X-App-Key": app }),
    status: null,
    length: null,
  }));
}

/** The refusals that bare node:http sends to the crowd, about as large as those of Precast. */
function refusals({ apps: [app = ""] }: Site): Recorded {
  const full: Answer = {
    status: 503,
    fields: ["Content-Type", "application/json; charset=utf-8", "Retry-After", "1", "Content-Length", "100"],
    body: Buffer.alloc(100, " "),
  };
  return new Map(crowdTargets().map((target) => [keyOf({ app, target }), { etag: "", full, unchanged: full }]));
}

/** Holds a lock on the entries, so that nobody can read them, until `use` is done or calls `release`. */
function whileHanging<T>({ url }: Site, use: (release: () => Promise<void>) => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query("BEGIN");
    await client.query("LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    return use(async () => void (await client.query("ROLLBACK")));
  });
}

/** The kind (see `kindOf`) of an immediate refusal, and what is wrong with it. */
async function lookAtRefusal({ apps: [app = ""] }: Site, { url }: Served): Promise<{ kind: string; wrong: string[] }> {
  const look = async (page: number) => {
    const target = `${url}/api/v1/${TYPE.slug}?per_page=2&page=${page}`;
    const answer = await fetch(target, { headers: { "X-App-Key": app } });
    const text = await answer.text();
    const right = answer.status === 503 && answer.headers.has("retry-after") && text.includes('"OVERLOADED"');
    return { right, kind: kindOf(answer.status, Buffer.byteLength(text)) };
  };
  // Some of these requests may find a place in the queue that has just become free.
  const looks = await Promise.all(Array.from({ length: LOOKS }, (_, index) => look(index + 1)));
  const found = looks.find(({ right }) => right);
  if (found !== undefined) return { kind: found.kind, wrong: [] };
  return { kind: "", wrong: [`a full queue is told by ${looks.map(({ kind }) => kind).join(", ")}`] };
}

function unexpected(seen: Seen): string[] {
  return [...seen.took.keys()].filter((kind) => !EXPECTED.test(kind)).map((kind) => `a live answer is ${kind}`);
}

function rowsOf({ ours, bare, refused }: Sides) {
  const name = `cached, ${PER_SECOND.toLocaleString("en")} a second`;
  const of = ({ rounds }: Side, state: State, pause: number) => rounds[state].get(pause) ?? [];
  const p99OfCalm = (side: Side, state: State, pause: number) =>
    ratioOf("p99", of(side, state, pause), "calm", of(side, "calm", pause));
  const crowdOf = (pause: number) => `${CLIENTS} clients ask again after ${pause / 1_000} s`;
  return [
    rowOf([...ours.rounds.calm.values()].flat(), { case: "overload", what: name }),
    ...PAUSES.flatMap((pause) => [
      rowOf(of(ours, "answered", pause), {
        case: "overload",
        what: `${name}, ${crowdOf(pause)}, all are answered`,
        ratios: p99OfCalm(ours, "answered", pause),
      }),
      rowOf(of(ours, "crowded", pause), {
        case: "overload",
        what: `${name}, ${crowdOf(pause)}, database hangs`,
        memory: ours.served.memory(),
        ratios: [
          ...ratioOf("p99", of(ours, "crowded", pause), "answered", of(ours, "answered", pause)),
          ...p99OfCalm(ours, "crowded", pause),
          ...ratioOf("p99", of(ours, "crowded", pause), "bare with its crowd", of(bare, "crowded", pause)),
        ],
        aim: "p99 as before",
      }),
    ]),
    rowOf(refused, {
      case: "overload",
      what: "503 OVERLOADED: at once, or after half of the 5 s in the queue",
      aim: "p50 at once",
    }),
    rowOf([...bare.rounds.calm.values()].flat(), { case: "overload", what: `bare node:http, ${name}` }),
    ...PAUSES.map((pause) =>
      rowOf(of(bare, "crowded", pause), {
        case: "overload",
        what: `bare node:http, ${name}, ${crowdOf(pause)}, all are refused`,
        ratios: p99OfCalm(bare, "crowded", pause),
      }),
    ),
  ];
}
