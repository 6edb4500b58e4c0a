/**
 * Decides which queries a connection prepares: those that have been asked a few times. Limits how many statements a
 * connection holds and how many texts are remembered, so that memory stays bounded whatever is asked.
 */
import type { Query } from "../../sql/query.ts";

export type Prepared<Connection extends object> = {
  /** The name under which the connection must prepare the query; undefined for a query that is not worth preparing. */
  readonly nameFor: (connection: Connection, query: Query) => string | undefined;
  /** Whether the connection holds as many prepared statements as it may. */
  readonly isFull: (connection: Connection) => boolean;
  /** Records that the connection no longer holds any prepared statement. */
  readonly forget: (connection: Connection) => void;
};

/** A query is prepared when it is asked this often: keeping one costs more than planning it once or twice. */
const FREQUENT = 3;
const MAX_TEXTS = 2_000;
const MAX_HELD = 200;

export function openPrepared<Connection extends object>(): Prepared<Connection> {
  /** The count and the name of each text, least recently asked first. */
  const texts = new Map<string, AskedText>();
  const held = new WeakMap<Connection, Set<string>>();
  let made = 0;

  function countOf(text: string): AskedText {
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
      const { name, times } = countOf(text);
      if (times < FREQUENT) return undefined;
      const own = held.get(connection) ?? new Set();
      held.set(connection, own.add(name));
      return name;
    },
    isFull: (connection) => (held.get(connection)?.size ?? 0) >= MAX_HELD,
    forget: (connection) => void held.delete(connection),
  };
}

type AskedText = { readonly name: string; times: number };
