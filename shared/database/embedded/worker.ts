/** The thread of the embedded database: opens PGlite and runs one job after the other. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { pg_trgm } from "@electric-sql/pglite/contrib/pg_trgm";
import { CHANNEL, type Row } from "../database.ts";
import type { Heard, Job, Reply, SqlError, Unopened } from "./thread.ts";
import { whyUnopened } from "./unopened.ts";

const port = parentPort;
if (port === null) throw new Error("embedded-worker runs as a worker thread");

const folder = workerData as string;
/** Is there from before the database is made until it has been opened once. */
const begun = `${folder}.begun`;

const opening = open();
opening.catch((error: unknown) => {
  port.postMessage({ unopened: whyUnopened(folder, describe(error).message) } satisfies Unopened);
});
let turn: Promise<void> = Promise.resolve();

port.on("message", (job: Job) => {
  turn = turn.then(async () => port.postMessage(await replyTo(job)));
});

/** A process that died on making the database has left a part of it, which nobody can open and which holds nothing. */
async function open(): Promise<PGlite> {
  if (existsSync(begun)) rmSync(folder, { recursive: true, force: true });
  if (!existsSync(folder)) writeFileSync(begun, "");
  const database = await PGlite.create(folder, { extensions: { pg_trgm } });
  rmSync(begun, { force: true });
  return database;
}

const tell = () => port.postMessage({ heard: true } satisfies Heard);

async function replyTo(job: Job): Promise<Reply> {
  try {
    return { id: job.id, rows: await run(await opening, job) };
  } catch (error) {
    return { id: job.id, error: describe(error) };
  }
}

async function run(database: PGlite, job: Job): Promise<Row[]> {
  if ("close" in job) await database.close();
  else if ("listen" in job) await database.listen(CHANNEL, tell);
  else if ("script" in job) await database.exec(job.script);
  else return (await database.query<Row>(job.query.text, [...job.query.values], { rowMode: "array" })).rows;
  return [];
}

function describe(error: unknown): SqlError {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return { message: String(message ?? JSON.stringify(error)), code: String(code ?? "") };
}
