/** Runs one statement over a node-postgres connection, prepared under a name if it is asked often. */
import type pg from "pg";
import type { Query, Row } from "../../sql/query.ts";
import { planFor } from "./planning.ts";
import type { Prepared } from "./prepared.ts";
import { CONNECT_TIMEOUT } from "./session.ts";

export async function runStatement<Client extends pg.ClientBase>(
  client: Client,
  query: Query,
  prepared: Prepared<Client>,
): Promise<Row[]> {
  if (prepared.isFull(client)) await deallocateAll(client, prepared);
  const name = prepared.nameFor(client, query);
  await planFor(client, name !== undefined && query.recurringPlan === "generic" ? "generic" : "auto");
  const named = name === undefined ? {} : { name };
  const { text, values } = query;
  const { rows } = await client.query({ ...named, text, values: values as unknown[], rowMode: "array" });
  return rows as Row[];
}

/** Where node-postgres records which statements are prepared; it has no method that removes one. */
type PreparedStatements = { readonly connection: { parsedStatements: object; submittedNamedStatements: object } };

async function deallocateAll<Client extends pg.ClientBase>(client: Client, prepared: Prepared<Client>): Promise<void> {
  // DEALLOCATE is slow only on a connection whose other end has vanished.
  const all = { text: "DEALLOCATE ALL", query_timeout: CONNECT_TIMEOUT };
  await client.query(all);
  const { connection } = client as unknown as PreparedStatements;
  connection.parsedStatements = {};
  connection.submittedNamedStatements = {};
  prepared.forget(client);
}
