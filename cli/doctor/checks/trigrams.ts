/** Finds missing trigram indexes, which find parts of words and of texts. `migrate` creates them when it may. */
import type { ContentType } from "../../../shared/catalog.ts";
import { sql } from "../../../shared/query.ts";
import { isTextual } from "../../../shared/sql/column.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck, LARGE_TYPE, type TypeSize } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

const EXTENSION = "pg_trgm";

type Index = {
  /** Whether requests to the type use the index. */
  readonly serves: (type: ContentType) => boolean;
  /** What is read without the index, and by which requests. */
  readonly spares: string;
  /** What follows ON in its definition. `operators` is the operator class of the extension. */
  readonly on: (operators: string) => string;
};
const INDEXES: Readonly<Record<string, Index>> = {
  terms_by_part: {
    serves: isSearchable,
    spares: "every different word of a type for a search",
    on: (operators) => `precast.terms USING gin (term ${operators})`,
  },
  entries_by_texts: {
    serves: isFilteredByText,
    spares: "every entry of a type for a contains filter",
    on: (operators) => `precast.entries USING gin (texts ${operators}) WHERE status = 'published'`,
  },
};

function isSearchable({ fields }: ContentType): boolean {
  return fields.some(({ searchable }) => searchable);
}

function isFilteredByText({ fields, filterable_fields }: ContentType): boolean {
  return fields.some((field) => filterable_fields.includes(field.name) && !field.multiple && isTextual(field));
}

type Facts = {
  /** The name of the extension, if it does not exist, and those of the indexes that do not. */
  readonly missing: readonly string[];
  /** Whether the server has the files of the extension, so that it can be created. */
  readonly available: boolean;
  readonly mayCreate: boolean;
  /** Name of the operator class, with the schema of the extension once that exists. */
  readonly operators: string;
  readonly types: readonly TypeSize[];
};

export const trigramsCheck = defineCheck({
  name: "trigrams",
  gather: readMissing,
  judge: (facts) => findingsOf(facts),
});

async function readMissing({ database, types }: CheckContext): Promise<Facts> {
  const [row] = await database.query(
    sql(
      `SELECT array_to_string(ARRAY(
    SELECT $1::text WHERE $1 NOT IN (SELECT extname FROM pg_extension)
    UNION ALL
    SELECT name FROM unnest($2::text[]) AS name WHERE to_regclass('precast.' || name) IS NULL), ','),
  (EXISTS (SELECT FROM pg_available_extensions WHERE name = $1))::text,
  (pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'precast.entries'::regclass), 'USAGE')
    AND ($1 IN (SELECT extname FROM pg_extension) OR has_database_privilege(current_database(), 'CREATE')))::text,
  coalesce((SELECT quote_ident(nspname) || '.' FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE extname = $1), '')`,
      [EXTENSION, Object.keys(INDEXES)],
    ),
  );
  const [missing = "", available, mayCreate, schema = ""] = row ?? [];
  return {
    missing: missing === null || missing === "" ? [] : missing.split(","),
    available: available === "true",
    mayCreate: mayCreate === "true",
    operators: `${schema}gin_trgm_ops`,
    types,
  };
}

function findingsOf({ missing, available, mayCreate, operators, types }: Facts): Finding[] {
  const large = types.filter(({ entries }) => entries >= LARGE_TYPE);
  const served = (name: string) => large.filter(({ type }) => INDEXES[name]?.serves(type));
  const indexes = missing.filter((name) => served(name).length > 0);
  if (indexes.length === 0) return [];
  const needed = missing.filter((name) => name === EXTENSION || indexes.includes(name));
  const most = Math.max(...indexes.flatMap(served).map(({ entries }) => entries));
  const read = indexes.flatMap((name) => INDEXES[name]?.spares ?? []).join(" and ");
  const statements = needed.map((name) => statementOf(name, operators));
  const how = statementRemedy(mayCreate, "an administrator", statements, "This does not block writers.");
  return [
    {
      // Who cannot install the extension cannot follow advice.
      kind: available ? "advice" : "information",
      subject: `${needed.join(", ")}: missing`,
      problem: `The database reads ${read}, and the largest type has ${formatCount(most)} entries.`,
      gain: "An index finds parts of three or more letters.",
      ...(available ? how : { remedy: `${INSTALL} ${how.remedy}`, fix: null }),
    },
  ];
}

const INSTALL = "Install the package of PostgreSQL's additional modules (postgresql-contrib) on its server.";

function statementOf(name: string, operators: string): string {
  const index = INDEXES[name];
  return index === undefined
    ? `CREATE EXTENSION IF NOT EXISTS ${name}`
    : `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${index.on(operators)}`;
}
