/** Starts the tests' stand-in for S3 as a process, empties it and looks into it. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** `count` looks at no objects. */
export type Asked = "look" | "count" | "empty";

export type Held = {
  readonly objects: readonly (readonly [key: string, hash: string])[];
  /** Since it was last looked into. */
  readonly requests: number;
  /** Seconds of user and system time so far. */
  readonly cpu: number;
};

/** An object that is written at this moment, in milliseconds since 1970. */
export type Stored = { readonly key: string; readonly at: number };

export type Store = {
  /** The environment variables that a client needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly empty: () => Promise<Held>;
  readonly count: () => Promise<Held>;
  readonly look: () => Promise<Held>;
  readonly stop: () => Promise<void>;
};

const PROCESS = fileURLToPath(new URL("./store-process.ts", import.meta.url));

/** `isWatched` says of which keys `onStored` is told. */
export async function startStore(
  isWatched: RegExp | null = null,
  onStored: (stored: Stored) => void = () => {},
): Promise<Store> {
  const args = isWatched === null ? [] : [isWatched.source];
  const child = fork(PROCESS, args, { execArgv: ["--import", import.meta.resolve("tsx")] });
  const ended = once(child, "exit");
  let take: (told: unknown) => void = () => {};
  child.on("message", (told: object) => ("key" in told ? onStored(told as Stored) : take(told)));
  const next = async <T>() => {
    const told = new Promise((resolve) => {
      take = resolve;
    });
    const first = await Promise.race([told, ended.then(() => null)]);
    if (first === null) throw new Error("The store has ended.");
    return first as T;
  };
  const ask = (what: Asked) => {
    const told = next<Held>();
    child.send(what);
    return told;
  };
  return {
    env: await next<Store["env"]>(),
    empty: () => ask("empty"),
    count: () => ask("count"),
    look: () => ask("look"),
    stop: async () => {
      child.disconnect();
      await ended;
    },
  };
}
