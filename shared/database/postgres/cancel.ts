/** Asks PostgreSQL to cancel what runs on a connection. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** What `pg` knows of a connection and of how to reach its server, and does not declare. */
type Inner = {
  readonly host: string;
  readonly port: number;
  readonly ssl: pg.ConnectionConfig["ssl"];
  readonly sslNegotiation: string;
  readonly processID: number;
  readonly secretKey: number;
};
type Wire = pg.Connection & {
  readonly connect: (port: number, hostOrPath?: string) => void;
  readonly requestSsl: () => void;
  readonly cancel: (processID: number, secretKey: number) => void;
};

/** Resolves when a query may be cancelled: to false when it has ended by then. */
export type AwaitTurn = (ended: Promise<unknown>) => Promise<boolean>;

/** Milliseconds between two cancellations. */
const APART = 10;

/**
 * PostgreSQL starts a process for each cancellation. What is given up at one moment, as all that has begun together is when its time
 * is over, is cancelled one by one: else those processes hold up everybody else.
 */
export function openCancellations(): AwaitTurn {
  let next = 0;
  return async (ended) => {
    const now = performance.now();
    const wait = next - now;
    next = Math.max(now, next) + APART;
    if (wait <= 0) return true;
    const over = new AbortController();
    const isTurn = await Promise.race([ended.then(() => false), sleep(wait, true, over).catch(() => false)]);
    // Else those that end by themselves would hold up those that do not.
    if (!isTurn) next -= APART;
    over.abort();
    return isTurn;
  };
}

/**
 * Resolves when the server has passed the request on: from then on it cannot hit a later query of the connection. It
 * goes over a connection of its own, as the protocol has it, through TLS where the other does. Throws when the server
 * cannot be told, or has not taken it in so many milliseconds.
 */
export function cancelQuery(client: pg.ClientBase, milliseconds: number): Promise<void> {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as unknown as Inner;
  const wire = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as Wire;
  const send = () => wire.cancel(processID, secretKey);
  return new Promise<void>((resolve, reject) => {
    const limit = setTimeout(
      () => wire.stream.destroy(new Error("the server did not take the cancellation")),
      milliseconds,
    );
    // `pg` itself begins TLS where it is negotiated directly.
    if (!ssl) wire.once("connect", send);
    else if (sslNegotiation !== "direct") wire.once("connect", () => wire.requestSsl());
    wire.once("sslconnect", send);
    wire.on("error", reject);
    // The server closes the connection when it has sent its signal.
    wire.once("end", () => {
      clearTimeout(limit);
      resolve();
    });
    if (host.startsWith("/")) wire.connect(`${host}/.s.PGSQL.${port}` as unknown as number);
    else wire.connect(port, host);
  });
}
