/**
 * Clients that send requests again and again, whatever the answers. They run in a process of low priority: real clients
 * have processors of their own, and otherwise the cost of these would show in what is measured.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { randomFrom } from "./random.ts";
import { inTurn, openLoop, type Seen, type Shot, type Traffic } from "./traffic.ts";

export type Crowd = {
  /** Resolves when all clients have sent their first request. */
  readonly here: Promise<unknown>;
  readonly begin: () => void;
  readonly end: () => Promise<Seen>;
  /** Resolves when every client has the answer that it waits for. */
  readonly stop: () => Promise<void>;
};

const THIS = fileURLToPath(import.meta.url);

/** The clients take the shots in turn. */
type Wanted = {
  readonly url: string;
  readonly clients: number;
  readonly shots: readonly Shot[];
  /** Milliseconds between an answer and the next request, on average. */
  readonly pause: number;
};
type Order = Wanted | "begin" | "end" | "stop";

/** All clients start within this number of milliseconds. */
const ARRIVAL = 1_000;

export function openCrowd(wanted: Wanted): Crowd {
  const child = fork(THIS, { execArgv: ["--import", import.meta.resolve("tsx")], serialization: "advanced" });
  const order = (what: Order) => void child.send(what);
  const here = once(child, "message");
  order(wanted);
  return {
    here,
    begin: () => order("begin"),
    end: async () => {
      order("end");
      const [seen] = await once(child, "message");
      return seen;
    },
    stop: async () => {
      order("stop");
      await once(child, "exit");
    },
  };
}

/** The pauses are random, because clients in step would send one burst after the next. */
function askAgain(pause: number): (status: number | null) => number {
  const random = randomFrom(2);
  return (status) => {
    return status === null ? random.below(ARRIVAL) : pause / 2 + random.below(pause);
  };
}

function come({ url, clients, shots, pause }: Wanted): Traffic {
  const own = shots.map((shot) => ({ ...shot, bytes: Buffer.from(shot.bytes) }));
  return openLoop(url, clients, inTurn(own), askAgain(pause));
}

let crowd: Traffic | null = null;

async function obey(order: Order): Promise<void> {
  if (typeof order === "object") {
    crowd = come(order);
    setTimeout(() => process.send?.("here"), ARRIVAL);
  } else if (order === "begin") crowd?.begin();
  else if (order === "end") process.send?.(crowd?.end());
  else {
    await crowd?.stop();
    process.disconnect();
  }
}

if (process.argv[1] === THIS) {
  setPriority(constants.priority.PRIORITY_LOW);
  process.on("message", obey);
}
