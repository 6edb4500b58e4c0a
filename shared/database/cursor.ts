/** Reads a large result in batches, inside a transaction, with memory that does not grow with the result. */
import { type Query, type Row, sql } from "../sql/query.ts";
import type { Session } from "./database.ts";

/** Rows of the first batch; rows of a batch at most; characters that a batch of large rows should have. */
const FIRST_ROWS = 50;
const MAX_ROWS = 250;
const BATCH_CHARACTERS = 1 << 22;
let opened = 0;

/**
 * Yields the rows of a query in batches. Requests the next batch before it yields one, so that the database reads while
 * the caller works.
 */
export async function* readBatches(session: Session, { text, values }: Query): AsyncGenerator<Row[]> {
  const name = `cursor_${++opened}`;
  const fetch = (size: number) => {
    const fetched = session.query(sql(`FETCH ${size} FROM ${name}`));
    // A failure is thrown where the batch is awaited. Unhandled until then, it would end the process.
    fetched.catch(() => {});
    return fetched;
  };
  await session.query(sql(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values));
  let size = FIRST_ROWS;
  let next = fetch(size);
  try {
    for (let rows = await next; rows.length > 0; rows = await next) {
      const isLast = rows.length < size;
      size = sizeAfter(rows);
      next = isLast ? Promise.resolve([]) : fetch(size);
      yield rows;
    }
  } finally {
    // A caller that stops early leaves a batch that is still being fetched.
    await next.catch(() => {});
    await session.query(sql(`CLOSE ${name}`)).catch(() => {});
  }
}

/** Number of rows of the next batch, if its rows are as large as these. */
function sizeAfter(rows: readonly Row[]): number {
  const characters = rows.flat().reduce((sum, value) => sum + (value?.length ?? 0), 1);
  return Math.max(1, Math.min(MAX_ROWS, Math.floor((BATCH_CHARACTERS * rows.length) / characters)));
}
