/**
 * Connects to PGlite with the PostgreSQL client, so that recurring queries are prepared: PGlite takes several times as
 * long to plan a query as to answer it.
 */
import type { PGlite } from "@electric-sql/pglite";
import { createPgConfig } from "@electric-sql/pglite/node-postgres";
import pg from "pg";
import type { Query, Row } from "../../sql/query.ts";
import type { Access } from "../database.ts";
import { begin, rollBack } from "../postgres/planning.ts";
import { AS_TEXT } from "../postgres/pool.ts";
import { openPrepared } from "../postgres/prepared.ts";
import { runStatement } from "../postgres/statement.ts";

export type Connection = {
  readonly query: (query: Query) => Promise<Row[]>;
  readonly begin: (access: Access) => Promise<void>;
  readonly end: (how: "commit" | "rollback") => Promise<void>;
};

export async function openConnection(database: PGlite): Promise<Connection> {
  const prepared = openPrepared<pg.Client>();
  const client = new pg.Client({ ...createPgConfig(database), types: AS_TEXT });
  await client.connect();
  return {
    query: (query) => runStatement(client, query, prepared),
    begin: (access) => begin(client, access),
    end: async (how) => void (await (how === "commit" ? client.query("COMMIT") : rollBack(client))),
  };
}
