/** Checks that the database keeps and shows what answers rely on: rows, triggers, collations, totals and numbers. */
import { LOCAL_MEDIA } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import {
  type ChangedCollation,
  changedCollations,
  readSchemaTriggers,
  type Trigger,
} from "../../shared/schema/drift.ts";
import type { Row } from "../../shared/sql/query.ts";
import { unaddressedMediaQuery } from "../../shared/sql/tree.ts";
import { formatCount, formatCounted } from "../../shared/text.ts";
import { readRows } from "../database.ts";
import { shorten } from "../import/report.ts";
import { type CheckContext, defineCheck, type Found } from "./check.ts";

// Checks that no rows are hidden. Sessions set row_security = off, so that what is hidden is an error.

export const rowSecurityCheck = defineCheck({
  name: "row-security",
  gather: ({ database }) =>
    readRows<{ table: string }>(
      database,
      `SELECT relname AS table FROM pg_class WHERE relnamespace = 'precast'::regnamespace AND relrowsecurity ORDER BY relname`,
    ),
  judge: (tables: readonly { readonly table: string }[]) =>
    tables.map(({ table }) => ({
      subject: `precast.${table}: row-level security`,
      problem:
        "Row-level security is on: Precast refuses to read the table as a role from which it may hide rows, because these would count as deleted.",
      gain: "Builds and servers run as any role that has the rights.",
      remedy: `Run ALTER TABLE precast.${table} DISABLE ROW LEVEL SECURITY; as the owner of the table, or give BYPASSRLS to the roles that build and serve.`,
    })),
});

// Checks that answers name media where clients find them.

export const mediaCheck = defineCheck({
  name: "media",
  gather: ({ database, types, mediaBaseUrl }) =>
    mediaBaseUrl === null
      ? database.query(unaddressedMediaQuery(types.map(({ app }) => app.key)))
      : Promise.resolve([]),
  judge: (unaddressed: readonly Row[]) =>
    unaddressed.map(([key, slug, field]) => ({
      subject: `${key}: address of media`,
      problem: `${slug}.${field} has values, but no address of media is set: answers lead to ${LOCAL_MEDIA}, which is the machine of whoever reads them.`,
      gain: "Clients find the files.",
      remedy: `Set media_base_url of the app, or --media-base-url (PRECAST_MEDIA_BASE_URL) for every command, and run \`precast build\`.`,
    })),
});

// Checks that every trigger of the schema exists and fires when it should. The triggers maintain what filters,
// searches, totals and builds read.

type TriggerFacts = {
  readonly expected: readonly Trigger[];
  /** Maps `table.trigger` to `pg_trigger.tgenabled`, for the triggers that exist. */
  readonly firing: ReadonlyMap<string, string>;
  /** The tables on which triggers of PostgreSQL's own are off, which check keys (`DISABLE TRIGGER ALL`). */
  readonly unchecked: readonly string[];
};

export const triggersCheck = defineCheck({
  name: "triggers",
  gather: readFacts,
  judge: ({ expected, firing, unchecked }: TriggerFacts) => {
    const wrong = expected.filter(({ name, fires }) => firing.get(name) !== fires);
    return [
      ...unchecked.map((table) => keysFinding(table, expected)),
      ...(wrong.length === 0 ? [] : [finding(wrong, firing)]),
    ];
  },
});

async function readFacts({ database }: CheckContext): Promise<TriggerFacts> {
  const found = await readRows<{ table: string; name: string; fires: string; ofKeys: boolean }>(
    database,
    `SELECT relname AS table, relname || '.' || tgname AS name, tgenabled AS fires, tgisinternal AS "ofKeys"
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE relnamespace = 'precast'::regnamespace ORDER BY relname`,
  );
  const off = found.filter(({ ofKeys, fires }) => ofKeys && fires !== "O");
  return {
    expected: (await readSchemaTriggers()).toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    firing: new Map(found.filter(({ ofKeys }) => !ofKeys).map(({ name, fires }) => [name, fires])),
    unchecked: [...new Set(off.map(({ table }) => table))],
  };
}

/** The statement that switches them on sets every trigger of the table to the same mode, which is not that of some. */
function keysFinding(table: string, expected: readonly Trigger[]): Found {
  const others = expected.filter(({ name, fires }) => name.startsWith(`${table}.`) && fires !== "O");
  const statements = [`ALTER TABLE precast.${table} ENABLE TRIGGER ALL;`, ...others.map(({ enable }) => enable)];
  return {
    subject: `precast.${table}: unchecked keys`,
    problem:
      "The triggers by which PostgreSQL checks its foreign keys are off: rows may refer to others that do not exist.",
    gain: "The database refuses such rows.",
    remedy: `Run ${statements.join(" ")} as a superuser.`,
  };
}

function finding(wrong: readonly Trigger[], firing: TriggerFacts["firing"]): Found {
  const names = wrong.map(({ name }) => (firing.has(name) ? name : `${name} (dropped)`));
  const statements = wrong.map((trigger) => repairStatement(trigger, firing.has(trigger.name)));
  return {
    subject: `triggers: ${names.join(", ")}`,
    problem: `${wrong.length === 1 ? "This trigger does not fire as it should" : "These triggers do not fire as they should"}: changes may be missing from filters, searches, totals and builds.`,
    gain: "All changes are found and counted, whoever makes them.",
    remedy: `Run ${statements.join(" ")} SELECT precast.keep_anew(); as the owner of the tables. It blocks writers for about a millisecond per entry.`,
  };
}

function repairStatement({ create, enable, fires }: Trigger, exists: boolean): string {
  if (exists) return enable;
  return fires === "O" ? create : `${create} ${enable}`;
}

// Finds collations that have changed since the indexes on them were built: such an index is in the wrong order.

type CollationFacts = { readonly kind: Database["kind"]; readonly changed: readonly ChangedCollation[] };

export const collationsCheck = defineCheck({
  name: "collations",
  gather: async ({ database }): Promise<CollationFacts> => ({
    kind: database.kind,
    changed: await changedCollations(database),
  }),
  judge: ({ kind, changed }) => changed.map((one) => findCollations(one, kind)),
});

function findCollations({ name, before, now }: ChangedCollation, kind: CollationFacts["kind"]): Found {
  const [reindex, refresh] = ["REINDEX SCHEMA CONCURRENTLY precast", `ALTER COLLATION ${name} REFRESH VERSION`];
  const embeddedRemedy = {
    remedy: "Run `precast doctor --fix`, restart the servers, and run `precast verify`.",
    fix: [reindex, refresh],
  };
  // No fix: REFRESH VERSION would hide that other indexes of the database with this collation are out of order too.
  const postgresRemedy = {
    remedy:
      `Have the owner of the schema run ${reindex}. Reindex whatever else in this database uses the collation. Then have a superuser run ` +
      `${refresh}, restart the servers, and run \`precast verify\`. The two statements do not block writers.`,
    fix: null,
  };
  return {
    subject: `Collation ${name}`,
    problem: `The indexes were built with version ${before} of the collation, but the server now has version ${now}. Queries may miss entries whose position differs between the two versions.`,
    gain: "Live answers contain all entries, in the right order.",
    ...(kind === "embedded" ? embeddedRemedy : postgresRemedy),
  };
}

// Finds types whose kept number of entries is wrong, as after writes while triggers were off.

/** A type by the key of its app and its slug, with its published entries as they are kept and as they are counted now. */
type Wrong = { readonly type: string; readonly kept: number; readonly counted: number };

export const totalsCheck = defineCheck({
  name: "totals",
  gather: readWrong,
  judge: ([first, ...others]) => [first === undefined ? null : findTotals(first, others.length)],
});

/** In one statement, so that both are of one moment. Leaves out a logical copy, where counts arrive by themselves. */
function readWrong({ database }: CheckContext): Promise<Wrong[]> {
  return readRows(
    database,
    `SELECT app.key || '/' || type.slug AS type, kept.total AS kept, coalesce(counted.total, 0) AS counted
FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(change), 0) AS total FROM precast.entry_counts WHERE content_type_id = type.id) AS kept
LEFT JOIN (
  SELECT content_type_id, count(*) AS total FROM precast.entries WHERE status = 'published' GROUP BY content_type_id
) AS counted ON counted.content_type_id = type.id
WHERE kept.total <> coalesce(counted.total, 0) AND NOT precast.counts_are_brought()
ORDER BY app.key COLLATE "C", type.slug COLLATE "C"`,
  );
}

function findTotals({ type, kept, counted }: Wrong, more: number): Found {
  const others = more === 0 ? "" : ` The same goes for ${formatCount(more)} more of the types.`;
  return {
    subject: "precast.entry_counts: wrong totals",
    problem: `${type} has ${formatCount(counted)} published entries, and ${formatCount(kept)} are kept.${others} Entries were written while triggers were off, so filters, searches and builds may miss them too.`,
    gain: "Totals are right, and every entry is found.",
    remedy:
      "Run SELECT precast.keep_anew(); as the owner of the tables. It blocks writers for about a millisecond per entry.",
  };
}

// Finds number fields with values that filters and sorts do not tell from others, because they compare numbers as doubles
// (shared/contract.md section 4).

type Inexact = { readonly field: string; readonly entries: number; readonly example: string; readonly taken: string };

export const numbersCheck = defineCheck({
  name: "numbers",
  gather: readInexact,
  judge: (fields: readonly Inexact[]) =>
    fields.map(({ field, entries, example, taken }) => ({
      kind: "information" as const,
      subject: `${field}: long numbers`,
      problem: `${formatCounted(entries, "entry has a number", "entries have numbers")} in this field that filters and sorts do not tell from others, because they compare numbers as doubles: they take ${shorten(example)} for ${Number(taken)}. Answers show every digit.`,
      gain: "Filters find exactly the entries with a value.",
      remedy:
        "If these are codes or ids, make the field a text or a select, whose values are compared as they are written.",
    })),
});

/** A number of at most 15 digits is told from all others. */
function readInexact({ database }: CheckContext): Promise<Inexact[]> {
  return readRows(
    database,
    `WITH long AS (
  SELECT e.content_type_id, field.name, e.data -> field.name AS value, precast.double(e.data -> field.name) AS taken
  FROM precast.fields AS field JOIN precast.entries AS e USING (content_type_id)
  WHERE field.type = 'number' AND e.status = 'published' AND length(e.data ->> field.name) > 15)
SELECT app.key || '/' || type.slug || ': ' || long.name AS field, count(*) AS entries,
  min(value::text) AS example, (array_agg(taken::text ORDER BY value::text))[1] AS taken
FROM long JOIN precast.content_types AS type ON type.id = long.content_type_id JOIN precast.apps AS app ON app.id = type.app_id
WHERE CASE WHEN taken IS NULL THEN false WHEN taken IN ('Infinity', '-Infinity') THEN true
  ELSE value::numeric <> taken::text::numeric END
GROUP BY app.key, type.slug, long.name
ORDER BY app.key COLLATE "C", type.slug COLLATE "C", long.name COLLATE "C"`,
  );
}
