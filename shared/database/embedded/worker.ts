/** The thread of the embedded database: opens PGlite and runs one job after the other. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { pg_trgm } from "@electric-sql/pglite/contrib/pg_trgm";
import { CHANNEL, type Row } from "../database.ts";
import { type Connection, openConnection } from "./connection.ts";
import type { Heard, Job, Reply, SqlError, Unopened } from "./thread.ts";
import { whyUnopened } from "./unopened.ts";

const port = parentPort;
if (port === null) throw new Error("the worker of the embedded database runs as a worker thread");

const folder = workerData as string;
/** Names the folder in which a database is being made, until it has been opened once. */
const begun = `${folder}.begun`;

/**
 * All of the buffers is written to when the database opens, for a command that needs none of it as well: 128 MB of memory, and a
 * quarter of the time it takes. The system keeps the files in its own memory anyway.
 */
const START = [...PGlite.defaultStartParams, "-c", "shared_buffers=32MB"];

type Opened = { readonly database: PGlite; readonly connection: Connection };

const opening = open();
opening.catch((error: unknown) => {
  port.postMessage({ unopened: whyUnopened(folder, describe(error).message) } satisfies Unopened);
});
let turn: Promise<void> = Promise.resolve();

port.on("message", (job: Job) => {
  turn = turn.then(async () => port.postMessage(await replyTo(job)));
});

/**
 * A process that died on making the database has left a part of it, which nobody can open and which holds nothing. What stands in
 * its place by now is a copy that somebody has put there.
 */
async function open(): Promise<Opened> {
  if (identityOf(folder) === textOf(begun)) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length === 0) writeFileSync(begun, identityOf(folder) ?? "");
  const database = await PGlite.create(folder, { extensions: { pg_trgm }, startParams: START });
  rmSync(begun, { force: true });
  return { database, connection: await openConnection(database) };
}

/** No two folders have the same, also where one has taken the number of another. */
function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.ino} ${found.birthtimeMs}`;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

const tell = () => port.postMessage({ heard: true } satisfies Heard);

async function replyTo(job: Job): Promise<Reply> {
  try {
    return { id: job.id, rows: await run(await opening, job) };
  } catch (error) {
    return { id: job.id, error: describe(error) };
  }
}

async function run({ database, connection }: Opened, job: Job): Promise<Row[]> {
  if ("close" in job) await database.close();
  else if ("listen" in job) await database.listen(CHANNEL, tell);
  else if ("script" in job) await database.exec(job.script);
  else if ("begin" in job) await connection.begin(job.begin);
  else if ("end" in job) await connection.end(job.end);
  else return connection.query(job.query);
  return [];
}

function describe(error: unknown): SqlError {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return { message: String(message ?? JSON.stringify(error)), code: String(code ?? "") };
}
