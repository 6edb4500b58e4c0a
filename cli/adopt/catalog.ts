/** Reads what the catalog of a PostgreSQL database tells of its tables: columns, keys, foreign keys and comments. */
import type { Session } from "../../shared/database/database.ts";
import { readRows } from "../database.ts";

export type Column = {
  readonly name: string;
  /** The name as SQL spells it: in quotes where it needs them. */
  readonly sql: string;
  /** As PostgreSQL writes the type: `character varying(20)`. */
  readonly type: string;
  /** The name of the type in the catalog, of its elements for an array, of what it is based on for a domain. */
  readonly base: string;
  /** The category of that type in the catalog: S for text, N for numbers, B, D, E for enums … */
  readonly category: string;
  readonly isArray: boolean;
  readonly required: boolean;
  readonly isUnique: boolean;
  readonly comment: string | null;
  /** The labels of an enum; the values of a text that may tell what is published (the first ones); else null. */
  readonly values: readonly string[] | null;
};

export type ForeignKey = {
  readonly columns: readonly string[];
  /** The table that it refers to, by its key among the tables: `schema.name`. */
  readonly table: string;
  readonly targets: readonly string[];
};

export type Table = {
  readonly schema: string;
  readonly name: string;
  /** `schema.name`, as people write it. */
  readonly id: string;
  /** The same as SQL spells it. */
  readonly sql: string;
  readonly isView: boolean;
  readonly comment: string | null;
  readonly columns: readonly Column[];
  /** The columns of the primary key; none for a table without one. */
  readonly key: readonly string[];
  readonly foreignKeys: readonly ForeignKey[];
};

/** Columns of these names may tell whether a row is published. */
export const STATUS_NAME = /^_?(status|state|publication_?status|publish_?status)$/i;

const columnsOf = (relation: string, numbers: string) =>
  `(SELECT json_agg(attname ORDER BY place) FROM unnest(${numbers}) WITH ORDINALITY AS of_key (number, place)
    JOIN pg_attribute ON attrelid = ${relation} AND attnum = number)`;

const COLUMNS = `
  SELECT json_agg(json_build_object('name', attname, 'sql', quote_ident(attname), 'type', format_type(atttypid, atttypmod),
    'base', core.typname, 'category', core.typcategory, 'isArray', plain.typcategory = 'A', 'required', attnotnull,
    'isUnique', EXISTS (SELECT FROM pg_index WHERE indrelid = class.oid AND indisunique AND indnkeyatts = 1
      AND indkey[0] = attnum AND indpred IS NULL),
    'comment', col_description(class.oid, attnum),
    'values', (SELECT json_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = core.oid)) ORDER BY attnum)
  FROM pg_attribute JOIN pg_type AS own ON own.oid = atttypid
  JOIN pg_type AS plain ON plain.oid = CASE own.typtype WHEN 'd' THEN own.typbasetype ELSE own.oid END
  JOIN pg_type AS core ON core.oid = CASE plain.typcategory WHEN 'A' THEN plain.typelem ELSE plain.oid END
  WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped`;

const TABLES = `
  SELECT nspname AS schema, relname AS name, nspname || '.' || relname AS id,
    quote_ident(nspname) || '.' || quote_ident(relname) AS sql, relkind IN ('v', 'm') AS "isView",
    obj_description(class.oid, 'pg_class') AS comment, coalesce((${COLUMNS}), '[]') AS columns,
    coalesce((SELECT ${columnsOf("conrelid", "conkey")} FROM pg_constraint WHERE conrelid = class.oid AND contype = 'p'),
      '[]') AS key,
    coalesce((
      SELECT json_agg(json_build_object('columns', ${columnsOf("conrelid", "conkey")},
        'table', target_space.nspname || '.' || target.relname, 'targets', ${columnsOf("confrelid", "confkey")})
        ORDER BY conkey, conname)
      FROM pg_constraint JOIN pg_class AS target ON target.oid = confrelid
      JOIN pg_namespace AS target_space ON target_space.oid = target.relnamespace
      WHERE conrelid = class.oid AND contype = 'f'), '[]') AS "foreignKeys"
  FROM pg_class AS class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relispartition AND relpersistence <> 't'
    AND nspname NOT IN ('information_schema', 'precast') AND nspname !~ '^pg_'
    AND has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(class.oid, 'SELECT')
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = class.oid AND deptype = 'e')
  ORDER BY nspname, relname`;

/** The tables and views that the role can read, but those of the system, of extensions and of Precast. */
export async function readTables(session: Session): Promise<Table[]> {
  const tables = await readRows<Table>(session, TABLES);
  const completed: Table[] = [];
  for (const table of tables) completed.push({ ...table, columns: await readStatusValues(session, table) });
  return completed;
}

const MAX_VALUES = 30;

/** Which texts such a column holds decides whether it tells what is published: a state of an order does not. */
async function readStatusValues(session: Session, { sql, columns, isView }: Table): Promise<Column[]> {
  const completed: Column[] = [];
  for (const column of columns) {
    const mayTell = !isView && column.category === "S" && !column.isArray && STATUS_NAME.test(column.name);
    const distinct = `SELECT DISTINCT ${column.sql} AS value FROM ${sql} WHERE ${column.sql} IS NOT NULL ORDER BY 1 LIMIT ${MAX_VALUES}`;
    const rows = mayTell ? await readRows<{ readonly value: string }>(session, distinct) : [];
    completed.push(mayTell ? { ...column, values: rows.map(({ value }) => value) } : column);
  }
  return completed;
}
