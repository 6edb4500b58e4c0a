/**
 * Checks content and requests: filters with too many values, fields without a slot, requests that could be free or
 * fast.
 */
import { type Column, type ContentType, type Field, findColumn } from "../../shared/api/catalog.ts";
import { defaultSort } from "../../shared/api/columns.ts";
import { QUERY_SECONDS } from "../../shared/api/errors.ts";
import type { Database } from "../../shared/database/database.ts";
import { readSlots, type Slots, slotsQuery } from "../../shared/sql/columns.ts";
import { MAX_PLACEHOLDERS } from "../../shared/sql/query.ts";
import { IS_PUBLISHED, keySql, PUBLISHED_TYPE } from "../../shared/sql/tree.ts";
import { formatCount } from "../../shared/text.ts";
import { countUnfilteredFiles } from "../builder/answers.ts";
import { readRow } from "../database.ts";
import { adviseOn, readUsage, type SavingSum, sumBySaving, sumByShape, sumCounts, type UsageRow } from "../usage.ts";
import { type CheckContext, defineCheck, type Found, LARGE_TYPE, type TypeSize } from "./check.ts";

/** What a remedy that changes the slots of a type says of its price (schema/0004_slots.sql). */
const CHANGE_WRITES =
  "A change of these lists may write all entries of the type in one transaction, about 0.2 ms each, and writers of the type wait meanwhile.";

// Finds filterable fields in which nearly every entry has a different value: each value becomes a file of the tree
// that lists one entry.

export const filtersCheck = defineCheck({
  name: "filters",
  gather: readFilters,
  judge: (types) => types.flatMap(findFilters),
});

type Filter = {
  readonly column: Column;
  /** Number of values (each has a file), and of entries with a value. Estimated unless the whole type was read. */
  readonly values: number;
  readonly entries: number;
};
type TypeFilters = TypeSize & { readonly filters: readonly Filter[]; readonly exact: boolean };

/** Entries. The numbers of a larger type are estimated from a sample of about this size. */
const SAMPLE = 50_000;

async function readFilters({ database, types }: CheckContext): Promise<TypeFilters[]> {
  const found: TypeFilters[] = [];
  const all = types.reduce((sum, { entries }) => sum + entries, 0);
  for (const size of types) {
    const share = sampleShare(size.entries, all);
    const filters: Filter[] = [];
    for (const name of size.entries < FEW ? [] : size.type.filterable_fields) {
      const column = findColumn(size.type, name);
      if (column !== undefined) filters.push(await readFilter(database, size, column, share));
    }
    found.push({ ...size, filters, exact: share === 1 });
  }
  return found;
}

/**
 * The share of a type's entries to read. A sample is taken of the table, which holds the entries of all types: `all`.
 * It is only worth reading when it is smaller than the type.
 */
export function sampleShare(entries: number, all: number): number {
  const share = SAMPLE / entries;
  return share * all < entries ? share : 1;
}

async function readFilter(database: Database, { app, type }: TypeSize, column: Column, share: number): Promise<Filter> {
  const sample = await readRow<Sample & { entries: number }>(database, facetSql(column, share), [app.key, type.slug]);
  return {
    column,
    values: estimateDistinct(sample, sample.occurrences / share),
    entries: Math.round(sample.entries / share),
  };
}

/** Returns one row: distinct values, those that occur once, occurrences of all values, and entries with a value. */
function facetSql(column: Column, share: number): string {
  const { key, elements } = keySql(column);
  const part = share < 1 ? ` TABLESAMPLE SYSTEM (${(share * 100).toFixed(6)})` : "";
  return `WITH ${PUBLISHED_TYPE},
held AS MATERIALIZED (
  SELECT ${key} AS value, e.id FROM precast.entries AS e${part} ${elements} WHERE ${IS_PUBLISHED} AND (${key})::text <> ''),
facet AS (SELECT count(*) AS times FROM held GROUP BY value)
SELECT count(*) AS values, count(*) FILTER (WHERE times = 1) AS "valuesSeenOnce", coalesce(sum(times), 0) AS occurrences,
  (SELECT count(DISTINCT id) FROM held) AS entries
FROM facet`;
}

/** Distinct values as a share of the entries with a value. */
const NEARLY_UNIQUE = 0.9;
/** Fewer values, and so fewer files, are not worth a finding. */
const FEW = 1_000;
/** From this number of values on the finding is advice: below, a lookup by slug, for example, is worth its files. */
const MANY = 10_000;

function findFilters(size: TypeFilters): Found[] {
  const files = countFiles(size);
  const nearlyUnique = size.filters.filter(({ values, entries }) => values >= FEW && values >= entries * NEARLY_UNIQUE);
  return nearlyUnique.map((filter) => describeFilter(size, filter, files));
}

/** Number of files of the type in the tree, including its schema. */
function countFiles({ type, entries, filters }: TypeFilters): number {
  return 1 + countUnfilteredFiles(type, entries) + filters.reduce((sum, { values }) => sum + values, 0);
}

function describeFilter({ app, type, exact }: TypeFilters, { column, values, entries }: Filter, files: number): Found {
  const count = `${exact ? "" : "about "}${formatCount(values)}`;
  const share = `${((values / files) * 100).toFixed(0)} %`;
  return {
    kind: values >= MANY ? "advice" : "information",
    subject: `${app.key}/${type.slug}: filter on ${column.name}`,
    problem: `The field has ${count} values in ${formatCount(entries)} entries, and each value is a file in the tree: ${share} of the type's files.`,
    gain: `A full build writes ${count} fewer files, and a build after an edit of the field two fewer.`,
    remedy: `If no client filters by ${column.name}, remove it from filterable_fields: requests that filter by it are then refused. ${CHANGE_WRITES} If clients do filter by it, keep it: the filter justifies its files.`,
  };
}

// Estimates the number of distinct values from a sample.

/** Number of distinct values in the sample, of those that occur once in it, and of occurrences of all values. */
type Sample = { readonly values: number; readonly valuesSeenOnce: number; readonly occurrences: number };

/**
 * `totalOccurrences` is the number of occurrences of all values in the whole. Uses the estimator of PostgreSQL (Haas and Stokes,
 * "Duj1"): the more values occur once in the sample, the more values it lacks. Exact when the sample is complete.
 */
export function estimateDistinct({ values, valuesSeenOnce, occurrences }: Sample, totalOccurrences: number): number {
  return occurrences === 0
    ? 0
    : Math.round(
        (occurrences * values) / (occurrences - valuesSeenOnce + (valuesSeenOnce * occurrences) / totalOccurrences),
      );
}

// Finds filterable and sortable fields of large types that have no slot: lists that use them may read every entry.

export const slotsCheck = defineCheck({
  name: "slots",
  gather: readSlotless,
  judge: (types) => types.flatMap(findSlots),
});

/** Settings of a content type by which a field is sorted or filtered, those that sort first. */
const NAMING = ["sortable_fields", "default_sort", "filterable_fields"] as const;
type Naming = (typeof NAMING)[number];

type Slotless = {
  readonly name: string;
  readonly type: Field["type"];
  /** The settings of the type that name the field. */
  readonly namedIn: readonly Naming[];
  /** Whether the field lost its slot because an entry had texts too long for an index, alone or together. */
  readonly isLong: boolean;
};
type TypeSlots = TypeSize & { readonly typeId: string; readonly slotless: readonly Slotless[] };

/** Of the types that have enough entries for their indexes to matter. */
async function readSlotless({ database, types }: CheckContext): Promise<TypeSlots[]> {
  const found: TypeSlots[] = [];
  for (const size of types.filter(({ entries }) => entries >= LARGE_TYPE)) {
    const [row] = await database.query(slotsQuery(size.app.key, size.type.slug));
    const slots = readSlots(row);
    if (slots !== null) found.push({ ...size, typeId: slots.typeId, slotless: findSlotless(size, slots) });
  }
  return found;
}

function findSlotless({ type }: TypeSize, { slotOf, map }: Slots): Slotless[] {
  const { long = [] } = JSON.parse(map) as { long?: readonly string[] };
  // Leaves out `multiple` fields: another index serves equality filters on them.
  return type.fields
    .filter((field) => !field.multiple && slotOf(field) === null)
    .map(({ name, type: kind }) => ({
      name,
      type: kind,
      namedIn: settingsWith(type, name),
      isLong: long.includes(name) && !isNumeric(kind),
    }))
    .filter(({ namedIn }) => namedIn.length > 0);
}

function settingsWith(type: ContentType, name: string): readonly Naming[] {
  const { sortable_fields, filterable_fields } = type;
  const named = { sortable_fields, default_sort: [defaultSort(type).column.name], filterable_fields };
  return NAMING.filter((setting) => named[setting].includes(name));
}

const TOO_LONG =
  "an entry was too long for an index, either by its text in this field (more than 2,000 bytes) or by all its texts in slots together (more than 2,400 bytes)";

function findSlots({ app, type, typeId, entries, slotless }: TypeSlots): Found[] {
  return slotless.map((field) => {
    const { name, type: kind, namedIn, isLong } = field;
    // Most filters ask for a value, which needs no slot, so a field that is only filterable is no reason for advice.
    const sorts = namedIn.some((setting) => setting !== "filterable_fields");
    return {
      kind: sorts ? "advice" : "information",
      subject: `${app.key}/${type.slug}: ${name}`,
      problem: `The field has no slot, because ${isLong ? TOO_LONG : "all slots are taken"}: ${sorts ? "a sort by it" : readBy(kind)} reads ${formatCount(entries)} entries.`,
      gain: "Pages and their totals are read from an index.",
      remedy: `${isLong ? longRemedy(field, typeId) : takenRemedy(kind)} ${CHANGE_WRITES}`,
    };
  });
}

function longRemedy({ name, namedIn }: Slotless, typeId: string): string {
  const settings = namedIn.join(" and ");
  return `Remove it from ${settings}, or name a field with shorter texts there. Or shorten the texts, then run UPDATE precast.slots SET map = jsonb_set(map, '{long}', (map -> 'long') - '${name}') WHERE content_type_id = ${typeId}; SELECT precast.assign_slots(${typeId}); as the owner of the tables.`;
}

function takenRemedy(type: Field["type"]): string {
  return `Remove ${describePeers(type)} field that no client uses from filterable_fields and sortable_fields. Its slot goes to the next field without one, sortable fields first.`;
}

/** The filters that read every entry, for a field that is not sortable: all that the index of values does not find. */
function readBy(type: Field["type"]): string {
  return type === "number"
    ? "a filter on it"
    : `a filter on it, except eq and in with up to ${MAX_PLACEHOLDERS} values,`;
}

/** The field types that share slots with this one, in words. */
function describePeers(type: Field["type"]): string {
  return isNumeric(type) ? "a number or boolean" : "a text, select, media, relation, date or datetime";
}

function isNumeric(type: Field["type"]): boolean {
  return type === "number" || type === "boolean";
}

// Finds counted requests that would be free, with the same answer, without a superfluous part of their query.

export const savingsCheck = defineCheck({
  name: "savings",
  gather: readRecentUsage,
  judge: findFreeEquivalents,
});

/** Share of all counted requests, and number of requests, below which it is not worth changing a client. */
const MIN_SHARE = 0.05;
const MIN_REQUESTS = 100;

function findFreeEquivalents(rows: readonly UsageRow[]): Found[] {
  const total = sumCounts(rows);
  const worth = sumBySaving(rows).filter(({ count }) => count >= MIN_REQUESTS && count >= total * MIN_SHARE);
  return worth.map((sum) => describeFreeEquivalent(sum, total));
}

function describeFreeEquivalent({ app, saving, count }: SavingSum, total: number): Found {
  const share = `${((count / total) * 100).toFixed(1)} %`;
  const advice = adviseOn(saving);
  return {
    subject: `${app}: requests that could be free`,
    problem: `${formatCount(count)} of ${formatCount(total)} counted requests of the last ${RECENT_DAYS} days (${share}) could be free: a simpler request has the same answer.`,
    gain: `${formatCount(count)} fewer counted requests in ${RECENT_DAYS} days, with the same answers, served from the tree.`,
    remedy: `Change the client: ${advice}. \`precast usage --app ${app}\` shows more.`,
  };
}

// Finds shapes of requests whose live queries often exceed the time limit.

export const timeoutsCheck = defineCheck({ name: "timeouts", gather: readRecentUsage, judge: findTimeouts });

const TIMEOUT_STATUS = 504;
/** A few in a month may come from an outage or a lock. */
const MIN_TIMEOUTS = 10;

function findTimeouts(rows: readonly UsageRow[]): Found[] {
  const slow = sumByShape(rows.filter(({ status }) => status === TIMEOUT_STATUS)).filter(
    ({ count }) => count >= MIN_TIMEOUTS,
  );
  return slow.map(({ app, shape, count }) => {
    const all = sumCounts(rows.filter((row) => row.app === app && row.shape === shape));
    return {
      subject: `${app}: slow ${shape} requests`,
      problem: `${formatCount(count)} of ${formatCount(all)} requests in the last ${RECENT_DAYS} days got 504 QUERY_TIMEOUT: their queries took longer than ${QUERY_SECONDS} seconds.`,
      gain: "Clients get answers, and the database has capacity for other queries.",
      remedy: `Take their URLs from the server's log (status 504), and run \`precast explain '<path and query>' --app ${app}\` to see what they read.`,
    };
  });
}

// Reads the recent counted requests, which are those that `precast doctor` considers.

/** Older requests are no reason to change anything today. */
const RECENT_DAYS = 30;
const DAY = 86_400_000;

/** Without those of apps that exist no longer. */
async function readRecentUsage({ database, now, types }: CheckContext): Promise<UsageRow[]> {
  const since = new Date(now.getTime() - RECENT_DAYS * DAY).toISOString().slice(0, 10);
  const keys = new Set(types.map(({ app }) => app.key));
  return (await readUsage(database, { app: null, since, until: null })).filter(({ app }) => keys.has(app));
}
