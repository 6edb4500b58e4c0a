/** Reads a large result a batch at a time, inside a transaction, at memory that does not grow with it. */
import { type Query, type Row, type Session, sql } from "./database.ts";

const BATCH = 250;
let opened = 0;

/** The next batch is asked for before one is given: the database reads while the batch is worked on. */
export async function* readBatches(session: Session, { text, values }: Query): AsyncGenerator<Row[]> {
  const name = `cursor_${++opened}`;
  const fetch = () => {
    const fetched = session.query(sql(`FETCH ${BATCH} FROM ${name}`));
    // What goes wrong while a batch is worked on is thrown where the next is waited for, and ends nothing before.
    fetched.catch(() => {});
    return fetched;
  };
  await session.query(sql(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values));
  let next = fetch();
  try {
    for (let rows = await next; rows.length > 0; rows = await next) {
      if (rows.length === BATCH) next = fetch();
      else next = Promise.resolve([]);
      yield rows;
    }
  } finally {
    // Whoever stops early leaves a batch on its way.
    await next.catch(() => {});
    await session.query(sql(`CLOSE ${name}`)).catch(() => {});
  }
}
