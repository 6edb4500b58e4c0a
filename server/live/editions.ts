/** Reads the edition of types: which state of their content the database has. Nobody is told one from before he asked. */
import type { Session } from "../../shared/database/database.ts";
import type { Refusal } from "../../shared/refusal.ts";
import { editionQuery } from "../../shared/sql/query.ts";
import type { Ask } from "../load/source.ts";
import { openFreshFlight } from "./fresh-flight.ts";

/** As editionQuery tells it; null where there are no such types. */
export type Edition = string | null;

/** `deadline` is when it must be known at the latest, by performance.now(). */
export type Editions = (
  appKey: string,
  slugs: readonly string[],
  deadline: number,
  gone: AbortSignal,
) => Promise<Edition | Refusal>;

export type EditionsOptions = {
  /** Asks the database, for so many milliseconds at most. */
  readonly ask: <T>(controller: AbortController, run: Ask<T>, left: number) => Promise<T>;
  /** What is answered where nothing may begin; null where it may. */
  readonly instead: () => Refusal | null;
};

export function openEditions({ ask, instead }: EditionsOptions): Editions {
  const readings = openFreshFlight<Edition | Refusal>();

  return (appKey, slugs, deadline, gone) => {
    const read = (controller: AbortController) => {
      const left = Math.max(0, deadline - performance.now());
      return ask(controller, (session) => readEdition(session, appKey, slugs), left);
    };
    return readings(`${appKey} ${slugs.join(" ")}`, null, gone, read, instead);
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
