/**
 * Finds pairs of fields for which a filter on a value of one and a range of the other is slow: to compute the total,
 * the database reads all entries with the value.
 */
import { type Column, findColumn } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import type { Slots } from "../../shared/sql/columns.ts";
import { pairIndexName } from "../../shared/sql/list.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatCount } from "../../shared/text.ts";
import { type CheckContext, defineCheck, type Finding, readLargeTypes, type TypeSize } from "./check.ts";

export const rangesCheck = defineCheck({
  name: "ranges",
  gather: readTypes,
  judge: (types) => types.flatMap(findingsOf),
});

type SlottedField = { readonly name: string; readonly slot: string };
/** A select or relation field, with the average number of entries per value. */
type EqualityField = SlottedField & { readonly entries: number };
type TypeRanges = TypeSize & {
  readonly typeId: string;
  readonly equalityFields: readonly EqualityField[];
  readonly rangeFields: readonly SlottedField[];
  /** Names of all indexes on the entries table. */
  readonly indexes: readonly string[];
};

/** Fewer entries per value are read in less than a millisecond. */
const MANY = 1_000;

async function readTypes(context: CheckContext): Promise<TypeRanges[]> {
  const { database } = context;
  const large = await readLargeTypes(context);
  const indexes = large.length === 0 ? [] : await readIndexes(database);
  const found: TypeRanges[] = [];
  for (const { size, slots } of large) {
    const sizes = await readSizes(database, slots.typeId);
    const equalityFields = slottedFields(size, slots, ["select", "relation"]);
    found.push({
      ...size,
      typeId: slots.typeId,
      equalityFields: equalityFields.map((one) => ({ ...one, entries: sizes.get(one.slot) ?? 0 })),
      rangeFields: slottedFields(size, slots, ["number", "date", "datetime"]),
      indexes,
    });
  }
  return found;
}

/** Filterable fields that have one of these field types and a slot. */
function slottedFields({ type }: TypeSize, { slotOf }: Slots, types: readonly Column["type"][]): SlottedField[] {
  return type.filterable_fields.flatMap((name) => {
    const column = findColumn(type, name);
    const slot = column !== undefined && types.includes(column.type) ? slotOf(column) : null;
    return slot === null ? [] : [{ name, slot }];
  });
}

/** Average number of entries per value, by slot. */
async function readSizes(database: Database, typeId: string): Promise<Map<string, number>> {
  const rows = await database.query(
    sql(
      `SELECT slot, avg(entries)::bigint::text FROM (
  SELECT slot, sum(change) AS entries FROM precast.value_counts
  WHERE content_type_id = $1::integer AND value IS NOT NULL GROUP BY slot, value HAVING sum(change) > 0) AS held
GROUP BY slot`,
      [typeId],
    ),
  );
  return new Map(rows.map(([slot, entries]) => [slot as string, Number(entries)]));
}

async function readIndexes(database: Database): Promise<string[]> {
  const rows = await database.query(
    sql("SELECT indexname::text FROM pg_indexes WHERE schemaname = 'precast' AND tablename = 'entries'"),
  );
  return rows.map(([name]) => name as string);
}

type Pair = { readonly equalityField: EqualityField; readonly rangeField: SlottedField; readonly index: string };

function findingsOf(type: TypeRanges): Finding[] {
  const pairs = pairsOf(type);
  const [largest] = pairs;
  return largest === undefined ? [] : [findingOf(type, pairs, largest)];
}

/** Pairs without an index on both fields. Those with the most entries per value come first. */
function pairsOf({ typeId, equalityFields, rangeFields, indexes }: TypeRanges): Pair[] {
  const many = equalityFields.filter(({ entries }) => entries >= MANY).sort((a, b) => b.entries - a.entries);
  const pairs = many.flatMap((one) =>
    rangeFields.map((other) => ({
      equalityField: one,
      rangeField: other,
      index: pairIndexName(typeId, { value: one.slot, order: other.slot }),
    })),
  );
  return pairs.filter(({ index }) => !indexes.includes(index));
}

function findingOf(
  { app, type, typeId }: TypeRanges,
  pairs: readonly Pair[],
  { equalityField: largest }: Pair,
): Finding {
  const names = (fields: readonly SlottedField[]) => [...new Set(fields.map(({ name }) => name))].join(", ");
  const [equal, within] = [names(pairs.map((pair) => pair.equalityField)), names(pairs.map((pair) => pair.rangeField))];
  const indexes = pairs.map(
    (pair) => `for ${pair.equalityField.name} and ${pair.rangeField.name}: ${statementOf(typeId, pair)}`,
  );
  return {
    kind: "information",
    subject: `${app.key}/${type.slug}: an equality filter combined with a range filter`,
    problem: `To count the entries that match a value (${equal}) and a range (${within}), the database reads all entries with the value: about ${formatCount(largest.entries)} for each value of ${largest.name}.`,
    gain: "To count, it reads only the entries in the range, and for a page in the order of the second field as many for each value as the page holds.",
    remedy: `If clients combine such filters, create an index on the two fields. Its creation does not block writers, but from then on every write to the type updates it. Drop it when one of the fields is removed from filterable_fields. The statement is, ${indexes.join("; ")}.`,
    fix: null,
  };
}

/**
 * A partial index for one type. Its key leaves out the type's id, because PostgreSQL makes no use of a key column whose
 * value the condition of the index fixes. It includes what an order needs: without that, a list of few entries reads all
 * entries with the value after all, in an index that has it.
 */
function statementOf(
  typeId: string,
  { equalityField: { slot: equal }, rangeField: { slot: range }, index }: Pair,
): string {
  return `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${index} ON precast.entries (${equal}, ${range}) INCLUDE (published_at, id) WHERE content_type_id = ${typeId} AND status = 'published' AND ${equal} IS NOT NULL AND ${range} IS NOT NULL`;
}
