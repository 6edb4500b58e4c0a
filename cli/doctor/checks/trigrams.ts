/** Finds missing trigram indexes, which find parts of words and of texts. `migrate` creates them when it may. */
import { sql } from "../../../shared/query.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck, LARGE_TYPE, type TypeSize } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

const EXTENSION = "pg_trgm";

type Index = {
  /** What is read without the index, and by which requests. */
  readonly spares: string;
  /** What follows ON in its definition. `operators` is the operator class of the extension. */
  readonly on: (operators: string) => string;
};
const INDEXES: Readonly<Record<string, Index>> = {
  terms_by_part: {
    spares: "every different word of a type for a search",
    on: (operators) => `precast.terms USING gin (term ${operators})`,
  },
  entries_by_texts: {
    spares: "every entry of a type for a contains filter",
    on: (operators) => `precast.entries USING gin (texts ${operators}) WHERE status = 'published'`,
  },
};

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
    AND has_database_privilege(current_database(), 'CREATE'))::text,
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
  const searched = types.filter(
    ({ type, entries }) => entries >= LARGE_TYPE && type.fields.some((field) => field.searchable),
  );
  if (missing.length === 0 || !available || searched.length === 0) return [];
  const most = Math.max(...searched.map(({ entries }) => entries));
  const read = missing.flatMap((name) => INDEXES[name]?.spares ?? []).join(" and ");
  const statements = missing.map((name) => statementOf(name, operators));
  return [
    {
      kind: "advice",
      subject: `${missing.join(", ")}: missing`,
      problem: `The database reads ${read}, and the largest type has ${formatCount(most)} entries.`,
      gain: "An index finds parts of three or more letters.",
      ...statementRemedy(mayCreate, "an administrator", statements, "This does not block writers."),
    },
  ];
}

function statementOf(name: string, operators: string): string {
  const index = INDEXES[name];
  return index === undefined
    ? `CREATE EXTENSION IF NOT EXISTS ${name}`
    : `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${index.on(operators)}`;
}
