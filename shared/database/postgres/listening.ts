/** Opens connections that hear of changes of content. */
import pg from "pg";
import { CHANNEL } from "../database.ts";
import { withConnectFaults, withFaults } from "../fault.ts";
import type { Listening } from "../listening.ts";
import { closeInBackground, KEEP_ALIVE } from "./pool.ts";
import { CONNECT_TIMEOUT, NO_LIMITS } from "./session.ts";

/** Milliseconds between two checks of a listening connection, and for the answer to one. */
const HEARTBEAT = 5_000;
const HEARTBEAT_TIMEOUT = 3_000;

/** Opens a connection that listens. It is not one of the pool, which would lend it to others and close it when idle. */
export async function openListening(url: string, onChange: () => void): Promise<Listening> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "precast watch",
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: HEARTBEAT_TIMEOUT,
    ...KEEP_ALIVE,
  });
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  client.on("error", () => {});
  client.on("notification", onChange);
  const close = () => closeInBackground(client);
  try {
    await withConnectFaults(() => client.connect());
    await withFaults(() => client.query(NO_LIMITS));
    await withFaults(() => client.query(`LISTEN ${CHANNEL}`));
  } catch (error) {
    close();
    throw error;
  }
  const heartbeat = setInterval(() => client.query("SELECT 1").catch(close), HEARTBEAT);
  return { ended: ended.finally(() => clearInterval(heartbeat)), close };
}
