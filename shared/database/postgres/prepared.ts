/**
 * Prepared statements: the queries that come again, so that a connection plans them once. Which those are is known when they
 * have come a few times, and what a connection holds is given up when it is much: its memory stays bounded whatever is asked.
 */
import type { Query } from "../database.ts";

export type Prepared<Connection extends object> = {
  /** The name under which the connection is to keep the query; undefined for one that is not worth it. */
  readonly nameFor: (connection: Connection, query: Query) => string | undefined;
  /** Whether the connection holds as many as it may. */
  readonly isFull: (connection: Connection) => boolean;
  /** The connection holds none any more. */
  readonly forget: (connection: Connection) => void;
};

/** To keep one costs more than to plan it once or twice. */
const FREQUENT = 3;
const MAX_TEXTS = 2_000;
const MAX_HELD = 200;

export function openPrepared<Connection extends object>(): Prepared<Connection> {
  /** How often each text was asked, those that were asked last at the end. */
  const texts = new Map<string, Asked>();
  const held = new WeakMap<Connection, Set<string>>();
  let made = 0;

  function countOf(text: string): Asked {
    const asked = texts.get(text) ?? { name: `precast_${++made}`, times: 0 };
    texts.delete(text);
    const [oldest] = texts.size < MAX_TEXTS ? [] : texts.keys();
    if (oldest !== undefined) texts.delete(oldest);
    texts.set(text, asked);
    asked.times++;
    return asked;
  }

  return {
    nameFor: (connection, { text, recurs }) => {
      if (recurs === undefined) return undefined;
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

type Asked = { readonly name: string; times: number };
