/** One statement over a connection of node-postgres, which keeps it prepared under a name where it comes again. */
import type pg from "pg";
import type { Query, Row } from "../database.ts";
import { planFor } from "./planning.ts";

/** `name` is of the connection's `nameFor`. */
export async function runStatement(client: pg.ClientBase, query: Query, name: string | undefined): Promise<Row[]> {
  await planFor(client, name !== undefined && query.recurs === "any" ? "once" : "by value");
  const named = name === undefined ? {} : { name };
  const { text, values } = query;
  const { rows } = await client.query({ ...named, text, values: values as unknown[], rowMode: "array" });
  return rows as Row[];
}
