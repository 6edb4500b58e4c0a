/** Asks PostgreSQL to cancel the query that runs on a connection. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

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

/** Resolves to true when it is the query's turn to be cancelled, to false when `ended` resolves before that. */
export type AwaitTurn = (ended: Promise<unknown>) => Promise<boolean>;

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

/**
 * Cancels the query that `client` runs, over a separate connection as the protocol demands, with TLS if `client` uses
 * it. Resolves when the server has handled the request: from then on it cannot hit a later query of `client`. Rejects
 * when the server cannot be reached, or does not handle the request within `milliseconds`.
 */
export function cancelQuery(client: pg.ClientBase, milliseconds: number): Promise<void> {
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
