/** Reads a large result a batch at a time, inside a transaction, at memory that does not grow with it. */
import { type Query, type Row, type Session, sql } from "./database.ts";

const BATCH = 1_000;
let opened = 0;

export async function* readBatches(session: Session, { text, values }: Query): AsyncGenerator<Row[]> {
  const name = `cursor_${++opened}`;
  await session.query(sql(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values));
  try {
    for (;;) {
      const rows = await session.query(sql(`FETCH ${BATCH} FROM ${name}`));
      if (rows.length > 0) yield rows;
      if (rows.length < BATCH) return;
    }
  } finally {
    await session.query(sql(`CLOSE ${name}`)).catch(() => {});
  }
}
