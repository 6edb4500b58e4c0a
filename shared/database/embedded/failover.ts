/**
 * Makes a guest of the embedded database outlive its host: when the host has ended, the next request joins the process
 * that has the database open by then, or opens it in this process.
 */
import type { Database } from "../database.ts";
import { DatabaseFault } from "../fault.ts";
import { keepListening, type Listening } from "../listening.ts";
import type { Guest } from "./guest.ts";

/** `open` opens or joins the database again. When it fails, requests throw a DatabaseFault `unavailable`. */
export function withFailover(guest: Guest, open: () => Promise<Database | Guest>): Database {
  let current: Database | Guest = guest;
  let opening: Promise<Database | Guest> | null = null;
  let closed = false;
  const stops = new Set<() => Promise<void>>();

  async function ensureOpen(): Promise<Database | Guest> {
    if (closed || !("hasEnded" in current && current.hasEnded())) return current;
    opening ??= open().finally(() => {
      opening = null;
    });
    current = await opening.catch(throwUnavailable);
    return current;
  }

  async function connect(onChange: () => void): Promise<Listening> {
    let lost = () => {};
    const ended = new Promise<void>((resolve) => {
      lost = resolve;
    });
    const stop = await (await ensureOpen()).listen(onChange, lost);
    return { ended, close: () => void stop().finally(lost) };
  }

  async function listen(onChange: () => void): Promise<() => Promise<void>> {
    const stop = await keepListening(() => connect(onChange), onChange);
    const end = () => {
      stops.delete(end);
      return stop();
    };
    stops.add(end);
    return end;
  }

  return {
    kind: "embedded",
    query: async (query, signal) => (await ensureOpen()).query(query, signal),
    execute: async (script) => (await ensureOpen()).execute(script),
    transaction: async (access, run) => (await ensureOpen()).transaction(access, run),
    listen,
    probe: async () => (await ensureOpen()).probe(),
    renewConnections: () => current.renewConnections(),
    connections: () => current.connections(),
    close: async () => {
      closed = true;
      await Promise.all([...stops].map((end) => end()));
      await opening?.catch(() => {});
      await current.close();
    },
  };
}

function throwUnavailable(cause: unknown): never {
  throw new DatabaseFault("unavailable", "no process shares the embedded database", cause);
}
