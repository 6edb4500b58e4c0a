/** Reads a large result a batch at a time, inside a transaction, at memory that does not grow with it. */
import { type Query, type Row, type Session, sql } from "./database.ts";

/** Rows of the first batch, and of each at most; of large ones as many as come near so many characters. */
const FIRST = 50;
const MOST = 250;
const CHARACTERS = 1 << 22;
let opened = 0;

/** The next batch is asked for before one is given: the database reads while the batch is worked on. */
export async function* readBatches(session: Session, { text, values }: Query): AsyncGenerator<Row[]> {
  const name = `cursor_${++opened}`;
  const fetch = (size: number) => {
    const fetched = session.query(sql(`FETCH ${size} FROM ${name}`));
    // What goes wrong while a batch is worked on is thrown where the next is waited for, and ends nothing before.
    fetched.catch(() => {});
    return fetched;
  };
  await session.query(sql(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values));
  let size = FIRST;
  let next = fetch(size);
  try {
    for (let rows = await next; rows.length > 0; rows = await next) {
      const isLast = rows.length < size;
      size = sizeAfter(rows);
      next = isLast ? Promise.resolve([]) : fetch(size);
      yield rows;
    }
  } finally {
    // Whoever stops early leaves a batch on its way.
    await next.catch(() => {});
    await session.query(sql(`CLOSE ${name}`)).catch(() => {});
  }
}

/** How many rows are worth a batch if they are as large as these. */
function sizeAfter(rows: readonly Row[]): number {
  const characters = rows.flat().reduce((sum, value) => sum + (value?.length ?? 0), 1);
  return Math.max(1, Math.min(MOST, Math.floor((CHARACTERS * rows.length) / characters)));
}
