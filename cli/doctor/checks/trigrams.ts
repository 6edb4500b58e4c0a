/** The extension pg_trgm, by which parts of words are found in large types. */
import { sql } from "../../../shared/database/database.ts";
import { formatCount } from "../../format.ts";
import { defineCheck, type Patient, type TypeSize } from "../check.ts";
import type { Finding } from "../finding.ts";

type Facts = {
  readonly installed: boolean;
  readonly available: boolean;
  readonly mayCreate: boolean;
  readonly types: readonly TypeSize[];
};

export const trigramsCheck = defineCheck({
  name: "trigrams",
  gather: readExtension,
  judge: (facts) => findingsOf(facts),
});

async function readExtension({ database, types }: Patient): Promise<Facts> {
  const [row] = await database.query(
    sql(`SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm')::text,
  EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm')::text,
  (current_setting('is_superuser') = 'on' OR has_database_privilege(current_database(), 'CREATE'))::text`),
  );
  const [installed, available, mayCreate] = (row ?? []).map((answer) => answer === "true");
  return { installed: installed === true, available: available === true, mayCreate: mayCreate === true, types };
}

/** Smaller types are searched from end to end in a few milliseconds. */
const LARGE = 10_000;
const STATEMENT = "CREATE EXTENSION IF NOT EXISTS pg_trgm";

function findingsOf({ installed, available, mayCreate, types }: Facts): Finding[] {
  const searched = types.filter(
    ({ type, entries }) => entries >= LARGE && type.fields.some((field) => field.searchable),
  );
  if (installed || !available || searched.length === 0) return [];
  const most = Math.max(...searched.map(({ entries }) => entries));
  return [
    {
      kind: "advice",
      subject: "pg_trgm: missing extension",
      problem: `Search and contains read every entry of a type, and the largest has ${formatCount(most)}.`,
      gain: "Parts of words of three letters and more can be found by an index.",
      remedy: mayCreate ? `Run ${STATEMENT}.` : `Have an administrator run ${STATEMENT} in this database.`,
      fix: mayCreate ? [STATEMENT] : null,
    },
  ];
}
