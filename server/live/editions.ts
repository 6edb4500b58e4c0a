/**
 * Reads the edition of content types, which identifies the current state of their entries. No caller gets an edition
 * that was read before it asked.
 */
import type { Session } from "../../shared/database/database.ts";
import type { Refusal } from "../../shared/refusal.ts";
import { editionQuery } from "../../shared/sql/edition.ts";
import type { Ask } from "../load/source.ts";
import { openFreshFlight } from "./fresh-flight.ts";
import { tenthsLeft } from "./time-left.ts";

/** The text that editionQuery returns; null when the app has none of these types. */
export type Edition = string | null;

/** `deadline` is the performance.now() at which the query is given up. Resolves with a Refusal when none may start. */
export type Editions = (
  appKey: string,
  slugs: readonly string[],
  deadline: number,
  gone: AbortSignal,
) => Promise<Edition | Refusal>;

export type EditionsOptions = {
  /** Queries the database, and gives the query up after `left` milliseconds. */
  readonly ask: <T>(controller: AbortController, run: Ask<T>, left: number) => Promise<T>;
  /** Returns the refusal to answer with when no new query may start; null when one may. */
  readonly instead: () => Refusal | null;
  /** Maximum time for an answer, in milliseconds. */
  readonly limit: number;
};

export function openEditions({ ask, instead, limit }: EditionsOptions): Editions {
  const readings = openFreshFlight<Edition | Refusal>();

  return (appKey, slugs, deadline, gone) => {
    const left = () => Math.max(0, deadline - performance.now());
    const read = (controller: AbortController) =>
      ask(controller, (session) => readEdition(session, appKey, slugs), left());
    return readings(`${appKey} ${slugs.join(" ")} ${tenthsLeft(left(), limit)}`, null, gone, read, instead);
  };
}

async function readEdition(
  session: Pick<Session, "query">,
  appKey: string,
  slugs: readonly string[],
): Promise<Edition> {
  const [row] = await session.query(editionQuery(appKey, slugs));
  return row?.[0] ?? null;
}
