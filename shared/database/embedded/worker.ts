/** The worker thread of the embedded database: opens PGlite and runs one job after the other. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { pg_trgm } from "@electric-sql/pglite/contrib/pg_trgm";
import type { Row } from "../../sql/query.ts";
import { CHANNEL } from "../database.ts";
import { type Connection, openConnection } from "./connection.ts";
import { explainOpenFailure } from "./open-failure.ts";
import type { ChangeReport, Job, OpenFailure, Reply, SqlError } from "./thread.ts";

const port = parentPort;
if (port === null) throw new Error("the worker of the embedded database must run in a worker thread");

const folder = workerData as string;
/** A file with the identity of the folder in which a database is being created; removed once that has opened. */
const creationMark = `${folder}.begun`;

/** By this file PGlite tells a folder that holds a database from one that does not. */
const VERSION_FILE = "PG_VERSION";

/**
 * Opening writes to all shared buffers, even for a command that needs none: PGlite's default of 128 MB costs as much
 * memory, and a quarter of the time that opening takes. The operating system caches the files anyway.
 */
const START_PARAMS = [...PGlite.defaultStartParams, "-c", "shared_buffers=32MB"];

type Opened = { readonly database: PGlite; readonly connection: Connection };

const opening = open();
opening.catch((error: unknown) => {
  port.postMessage({ unopened: explainOpenFailure(folder, describe(error).message) } satisfies OpenFailure);
});
let turn: Promise<void> = Promise.resolve();

port.on("message", (job: Job) => {
  turn = turn.then(async () => port.postMessage(await replyTo(job)));
});

/**
 * Opens or creates the database. Removes what a process that died while creating it has left: that cannot be opened and
 * holds no data. A folder with another identity is a copy that a user has put in its place, and is kept.
 */
async function open(): Promise<Opened> {
  if (identityOf(folder) === textOf(creationMark)) rmSync(folder, { recursive: true, force: true });
  // PGlite makes files that anybody may write: only the folder keeps other users of the machine from the content.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = readdirSync(folder);
  if (names.length === 0) writeFileSync(creationMark, identityOf(folder) ?? "");
  // PGlite would make a new database over what is left of one, as after a restore that was interrupted.
  else if (!names.includes(VERSION_FILE)) throw new Error(`${VERSION_FILE} is missing`);
  const database = await PGlite.create(folder, { extensions: { pg_trgm }, startParams: START_PARAMS });
  rmSync(creationMark, { force: true });
  return { database, connection: await openConnection(database) };
}

/** Inode and birth time: these differ even for a folder that reuses the inode of another. Null if nothing is there. */
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

const reportChange = () => port.postMessage({ heard: true } satisfies ChangeReport);

async function replyTo(job: Job): Promise<Reply> {
  try {
    return { id: job.id, rows: await run(await opening, job) };
  } catch (error) {
    return { id: job.id, error: describe(error) };
  }
}

async function run({ database, connection }: Opened, job: Job): Promise<Row[]> {
  if ("close" in job) await database.close();
  else if ("listen" in job) await database.listen(CHANNEL, reportChange);
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
