/**
 * Reads the edition of types: which state of their content the database has. One reading runs at a time for the same types, unless
 * it takes long. Who asks meanwhile gets the next, for the one that runs may have seen what was true before he asked.
 */
import type { Session } from "../../shared/database/database.ts";
import type { Refusal } from "../../shared/refusal.ts";
import { editionQuery } from "../../shared/sql/query.ts";
import type { Ask } from "../load/source.ts";
import { openSingleFlight } from "./single-flight.ts";

/** As editionQuery tells it; null where there are no such types. */
export type Edition = string | null;

export type Editions = (appKey: string, slugs: readonly string[], gone: AbortSignal) => Promise<Edition | Refusal>;

export type EditionsOptions = {
  /** Asks the database, for so many milliseconds at most. */
  readonly ask: <T>(controller: AbortController, run: Ask<T>, left: number) => Promise<T>;
  /** Milliseconds that a reading may take, its waiting included. */
  readonly limit: number;
  /** What is answered where nothing may begin; null where it may. */
  readonly instead: () => Refusal | null;
};

/** The readings of the same types. */
type Line = {
  /** The one that can be joined: it has not begun. No other reading ever has its number. */
  next: number;
  /** Resolves when the last that has begun is over. */
  running: Promise<unknown>;
  /** Those that are not over. */
  open: number;
};

export function openEditions({ ask, limit, instead }: EditionsOptions): Editions {
  const readings = openSingleFlight<Edition | Refusal>();
  const lines = new Map<string, Line>();
  let last = 0;

  async function readInTurn<T>(name: string, number: number, read: (left: number) => Promise<T>): Promise<T> {
    const deadline = performance.now() + limit;
    const line = lines.get(name) ?? { next: number, running: Promise.resolve(), open: 0 };
    lines.set(name, line);
    line.open++;
    await orLate(line.running);
    line.next = ++last;
    const reading = read(Math.max(0, deadline - performance.now()));
    line.running = reading.catch(() => {});
    return reading.finally(() => {
      line.open--;
      if (line.open === 0) lines.delete(name);
    });
  }

  return (appKey, slugs, gone) => {
    const name = `${appKey} ${slugs.join(" ")}`;
    const number = lines.get(name)?.next ?? ++last;
    const read = (controller: AbortController) =>
      readInTurn(name, number, (left) => ask(controller, (session) => readEdition(session, appKey, slugs), left));
    return readings(`${name} ${number}`, null, gone, read, instead);
  };
}

/** Milliseconds after which the next begins beside one that runs still: its connection may be dead, and others wait. */
const LATE = 500;

async function orLate(running: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LATE);
  });
  await Promise.race([running, late]).finally(() => clearTimeout(timer));
}

async function readEdition(
  session: Pick<Session, "query">,
  appKey: string,
  slugs: readonly string[],
): Promise<Edition> {
  const [row] = await session.query(editionQuery(appKey, slugs));
  return row?.[0] ?? null;
}
