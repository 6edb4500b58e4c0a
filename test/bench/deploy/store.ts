/** Starts the tests' stand-in for S3 as a process, empties it and looks into it. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export type Held = {
  readonly objects: readonly (readonly [key: string, hash: string])[];
  /** Since it was last looked into. */
  readonly requests: number;
  /** Seconds of user and system time so far. */
  readonly cpu: number;
};

export type Store = {
  /** The environment variables that a client needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly empty: () => Promise<Held>;
  readonly look: () => Promise<Held>;
  readonly stop: () => Promise<void>;
};

const PROCESS = fileURLToPath(new URL("./store-process.ts", import.meta.url));

export async function startStore(): Promise<Store> {
  const child = fork(PROCESS, { execArgv: ["--import", import.meta.resolve("tsx")] });
  const ended = once(child, "exit");
  const next = async <T>() => {
    const told = await Promise.race([once(child, "message"), ended.then(() => null)]);
    if (told === null) throw new Error("The store has ended.");
    return told[0] as T;
  };
  const ask = (what: "look" | "empty") => {
    const told = next<Held>();
    child.send(what);
    return told;
  };
  return {
    env: await next<Store["env"]>(),
    empty: () => ask("empty"),
    look: () => ask("look"),
    stop: async () => {
      child.disconnect();
      await ended;
    },
  };
}
