/** Runs one query over a connection: within its limits, prepared if it is asked often, and cancelled if nobody waits. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Query, Row, Value } from "../../sql/query.ts";
import { DatabaseFault, isConnectionLost, notBegunFault, withFaults } from "../errors.ts";
import { GRACE, planFor, runQuick } from "./session.ts";

type Limits = {
  /** The time limit that the server applies, in milliseconds; null for none. */
  readonly limit: number | null;
  readonly signal: AbortSignal | undefined;
  /** Waits for the query's turn to be cancelled. */
  readonly awaitTurn: AwaitTurn;
};

/** Without limits, as in a transaction, the query runs until it ends. */
export async function runQuery(
  client: pg.ClientBase,
  query: Query,
  prepared: Prepared,
  limits?: Limits,
): Promise<Row[]> {
  if (limits?.signal?.aborted) throw notBegunFault();
  const asking = withFaults(() => runStatement(client, query, prepared), limits?.limit);
  if (limits?.signal === undefined) return asking;
  return cancellable(client, asking, limits.signal, limits.awaitTurn);
}

/** Cancels the query in the database when the signal aborts. */
function cancellable<T>(
  client: pg.ClientBase,
  asking: Promise<T>,
  signal: AbortSignal,
  awaitTurn: AwaitTurn,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = () => void cancelled(client, asking, awaitTurn).catch(reject);
    signal.addEventListener("abort", cancel, { once: true });
    const settle = <R>(end: (result: R) => void) => {
      return (result: R) => {
        signal.removeEventListener("abort", cancel);
        // After an abort, `cancelled` decides the outcome, and the result of the query is dropped.
        if (!signal.aborted) end(result);
      };
    };
    asking.then(settle(resolve), settle(reject));
  });
}

/**
 * Cancels a query and throws the fault of an aborted one. Waits until both the query and its cancellation have ended: a
 * late cancellation would hit the next query of the connection. If that takes longer than GRACE, throws a fault that
 * makes the pool discard the connection.
 */
async function cancelled(client: pg.ClientBase, asking: Promise<unknown>, awaitTurn: AwaitTurn): Promise<never> {
  const ended = asking.then(
    () => null,
    (error: unknown) => error,
  );
  const ending = (await awaitTurn(ended)) ? [ended, cancelQuery(client, GRACE)] : [ended];
  const [error] = await withFaults(() => withDeadline(GRACE, Promise.all(ending)));
  if (isConnectionLost(error)) throw error;
  throw new DatabaseFault("timeout", "the query was cancelled");
}

async function withDeadline<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the query could not be cancelled")), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Runs one statement, prepared under a name if it is asked often. */
export async function runStatement(client: pg.ClientBase, query: Query, prepared: Prepared): Promise<Row[]> {
  if (prepared.isFull(client)) await deallocateAll(client, prepared);
  const name = prepared.nameFor(client, query);
  await planFor(client, name !== undefined && query.recurringPlan === "generic" ? "generic" : "auto");
  const named = name === undefined ? {} : { name };
  const { text, values } = query;
  const { rows } = await client.query({ ...named, text, values: values as unknown[], rowMode: "array" });
  return rows as Row[];
}

/** Where node-postgres records which statements are prepared; it has no method that removes one. */
type PreparedStatements = { readonly connection: { parsedStatements: object; submittedNamedStatements: object } };

async function deallocateAll(client: pg.ClientBase, prepared: Prepared): Promise<void> {
  await runQuick(client, "DEALLOCATE ALL");
  const { connection } = client as unknown as PreparedStatements;
  connection.parsedStatements = {};
  connection.submittedNamedStatements = {};
  prepared.forget(client);
}

/**
 * Decides which queries a connection prepares: those that have been asked a few times. Limits how many statements a
 * connection holds and how many texts are remembered, so that memory stays bounded whatever is asked.
 */
export type Prepared = {
  /** The name under which the connection must prepare the query; undefined for a query that is not worth preparing. */
  readonly nameFor: (connection: pg.ClientBase, query: Query) => string | undefined;
  /** Whether the connection holds as many prepared statements as it may. */
  readonly isFull: (connection: pg.ClientBase) => boolean;
  /** Records that the connection no longer holds any prepared statement. */
  readonly forget: (connection: pg.ClientBase) => void;
};

type AskedText = { readonly name: string; times: number };

/** A query is prepared when it is asked this often: keeping one costs more than planning it once or twice. */
const FREQUENT = 3;
const MAX_TEXTS = 2_000;
const MAX_HELD = 200;

export function openPrepared(): Prepared {
  /** The count and the name of each text, least recently asked first. */
  const texts = new Map<string, AskedText>();
  const held = new WeakMap<pg.ClientBase, Set<string>>();
  let made = 0;

  function countText(text: string): AskedText {
    const asked = texts.get(text) ?? { name: `precast_${++made}`, times: 0 };
    texts.delete(text);
    const [oldest] = texts.size < MAX_TEXTS ? [] : texts.keys();
    if (oldest !== undefined) texts.delete(oldest);
    texts.set(text, asked);
    asked.times++;
    return asked;
  }

  return {
    nameFor: (connection, { text, recurringPlan }) => {
      if (recurringPlan === undefined) return undefined;
      const { name, times } = countText(text);
      if (times < FREQUENT) return undefined;
      const own = held.get(connection) ?? new Set();
      held.set(connection, own.add(name));
      return name;
    },
    isFull: (connection) => (held.get(connection)?.size ?? 0) >= MAX_HELD,
    forget: (connection) => void held.delete(connection),
  };
}

/** Resolves to true when it is the query's turn to be cancelled, to false when `ended` resolves before that. */
type AwaitTurn = (ended: Promise<unknown>) => Promise<boolean>;

/** Milliseconds between two cancellations. */
const CANCEL_INTERVAL = 10;

/**
 * Spaces out cancellations. PostgreSQL starts a process for each one, and queries that began together reach their time
 * limit together: cancelled at once, those processes would slow down every other query.
 */
export function openCancellations(): AwaitTurn {
  let next = 0;
  return async (ended) => {
    const now = performance.now();
    const wait = next - now;
    next = Math.max(now, next) + CANCEL_INTERVAL;
    if (wait <= 0) return true;
    const over = new AbortController();
    const isTurn = await Promise.race([ended.then(() => false), sleep(wait, true, over).catch(() => false)]);
    // Frees the turn of a query that ended by itself, which would otherwise delay the cancellation of others.
    if (!isTurn) next -= CANCEL_INTERVAL;
    over.abort();
    return isTurn;
  };
}

/** Members of `pg` that its types do not declare: how to reach the server, and what identifies the connection there. */
type ClientInternals = {
  readonly host: string;
  readonly port: number;
  readonly ssl: pg.ConnectionConfig["ssl"];
  readonly sslNegotiation: string;
  readonly processID: number;
  readonly secretKey: number;
};
type ConnectionInternals = pg.Connection & {
  readonly connect: (port: number, hostOrPath?: string) => void;
  readonly requestSsl: () => void;
  readonly cancel: (processID: number, secretKey: number) => void;
};

/**
 * Cancels the query that `client` runs, over a separate connection as the protocol demands, with TLS if `client` uses
 * it. Resolves when the server has handled the request: from then on it cannot hit a later query of `client`. Rejects
 * when the server cannot be reached, or does not handle the request within `milliseconds`.
 */
function cancelQuery(client: pg.ClientBase, milliseconds: number): Promise<void> {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as unknown as ClientInternals;
  const connection = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as ConnectionInternals;
  const send = () => connection.cancel(processID, secretKey);
  return new Promise<void>((resolve, reject) => {
    const limit = setTimeout(
      () => connection.stream.destroy(new Error("the server did not accept the cancel request")),
      milliseconds,
    );
    // With direct negotiation, `pg` starts TLS by itself.
    if (!ssl) connection.once("connect", send);
    else if (sslNegotiation !== "direct") connection.once("connect", () => connection.requestSsl());
    connection.once("sslconnect", send);
    connection.on("error", reject);
    // The server closes the connection when it has signalled the process that runs the query.
    connection.once("end", () => {
      clearTimeout(limit);
      resolve();
    });
    if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}` as unknown as number);
    else connection.connect(port, host);
  });
}

/** Formats a value as an SQL literal, for the statements that take no parameters. */
export function writeLiteral(value: Value): string {
  if (value === null) return "NULL";
  return pg.escapeLiteral(typeof value === "string" ? value : arrayText(value));
}

function arrayText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
