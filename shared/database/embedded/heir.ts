/**
 * Makes a guest of the embedded database outlive its host: when the host has ended, the next request joins the process
 * that has the database open by then, or opens it in this process.
 */
import type { Database } from "../database.ts";
import { DatabaseFault } from "../fault.ts";
import { keepListening, type Listening } from "../listening.ts";
import type { Guest } from "./guest.ts";

/** `open` opens or joins the database again. When it fails, requests throw a DatabaseFault `unavailable`. */
export function outlive(guest: Guest, open: () => Promise<Database | Guest>): Database {
  let current: Database | Guest = guest;
  let opening: Promise<Database | Guest> | null = null;
  let closed = false;
  const endings = new Set<() => Promise<void>>();

  async function living(): Promise<Database | Guest> {
    if (closed || !("hasEnded" in current && current.hasEnded())) return current;
    opening ??= open().finally(() => {
      opening = null;
    });
    current = await opening.catch(refuse);
    return current;
  }

  async function connect(heard: () => void): Promise<Listening> {
    let lost = () => {};
    const ended = new Promise<void>((resolve) => {
      lost = resolve;
    });
    const stop = await (await living()).listen(heard, lost);
    return { ended, close: () => void stop().finally(lost) };
  }

  async function listen(heard: () => void): Promise<() => Promise<void>> {
    const stop = await keepListening(() => connect(heard), heard);
    const end = () => {
      endings.delete(end);
      return stop();
    };
    endings.add(end);
    return end;
  }

  return {
    kind: "embedded",
    query: async (query, signal) => (await living()).query(query, signal),
    execute: async (script) => (await living()).execute(script),
    transaction: async (access, run) => (await living()).transaction(access, run),
    listen,
    probe: async () => (await living()).probe(),
    renewConnections: () => current.renewConnections(),
    connections: () => current.connections(),
    close: async () => {
      closed = true;
      await Promise.all([...endings].map((end) => end()));
      await opening?.catch(() => {});
      await current.close();
    },
  };
}

function refuse(cause: unknown): never {
  throw new DatabaseFault("unavailable", "nobody shares the embedded database", cause);
}
