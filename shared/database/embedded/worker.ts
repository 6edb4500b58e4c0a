/**
 * The worker thread of the embedded database: opens PGlite and carries out one order after the other. Queries go through
 * the PostgreSQL client, so that recurring ones are prepared: PGlite takes several times as long to plan a query as to
 * answer it.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { pg_trgm } from "@electric-sql/pglite/contrib/pg_trgm";
import { createPgConfig } from "@electric-sql/pglite/node-postgres";
import pg from "pg";
import { makeFolders } from "../../files.ts";
import type { Row } from "../../sql/query.ts";
import { CHANNEL } from "../database.ts";
import { openPrepared, runStatement } from "../postgres/query.ts";
import { AS_TEXT, begin, rollBack } from "../postgres/session.ts";
import { explainOpenFailure } from "./failure.ts";
import { type ChangeReport, type Order, packError, type Reply } from "./orders.ts";
import type { OpenFailure } from "./thread.ts";

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

type Opened = { readonly database: PGlite; readonly client: pg.Client };

const prepared = openPrepared();
const opening = open();
opening.catch((error: unknown) => {
  port.postMessage({ unopened: explainOpenFailure(folder, packError(error).message) } satisfies OpenFailure);
});
let turn: Promise<void> = Promise.resolve();

port.on("message", (order: Order) => {
  turn = turn.then(async () => port.postMessage(await replyTo(order)));
});

/**
 * Opens or creates the database. Removes what a process that died while creating it has left: that cannot be opened and
 * holds no data. A folder with another identity is a copy that a user has put in its place, and is kept.
 */
async function open(): Promise<Opened> {
  if (readIdentity(folder) === readText(creationMark)) rmSync(folder, { recursive: true, force: true });
  // PGlite makes files that anybody may write: only the folder keeps other users of the machine from the content.
  makeFolders(folder, 0o700);
  const names = readdirSync(folder);
  if (names.length === 0) writeFileSync(creationMark, readIdentity(folder) ?? "");
  // PGlite would make a new database over what is left of one, as after a restore that was interrupted.
  else if (!names.includes(VERSION_FILE)) throw new Error(`${VERSION_FILE} is missing`);
  const database = await PGlite.create(folder, { extensions: { pg_trgm }, startParams: START_PARAMS });
  rmSync(creationMark, { force: true });
  const client = new pg.Client({ ...createPgConfig(database), types: AS_TEXT });
  await client.connect();
  return { database, client };
}

/** Inode and birth time: these differ even for a folder that reuses the inode of another. Null if nothing is there. */
function readIdentity(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.ino} ${found.birthtimeMs}`;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

const reportChange = () => port.postMessage({ heard: true } satisfies ChangeReport);

async function replyTo(order: Order): Promise<Reply> {
  try {
    return { rows: await carryOut(await opening, order) };
  } catch (error) {
    return { error: packError(error) };
  }
}

async function carryOut({ database, client }: Opened, order: Order): Promise<Row[]> {
  if ("query" in order) return runStatement(client, order.query, prepared);
  if ("script" in order) await database.exec(order.script);
  else if ("begin" in order) await begin(client, order.begin);
  else if ("listen" in order) await database.listen(CHANNEL, reportChange);
  else if ("close" in order) await database.close();
  else if ("commit" in order) await client.query("COMMIT");
  else await rollBack(client);
  return [];
}
