/**
 * Reads the slots of a type: the shared, indexed columns of the entries table that hold its filtered and sorted fields.
 * The database assigns them (schema/0004_slots.sql) and may reassign them at any time, so each query names the map that
 * it was written for.
 */
import type { Column } from "../catalog.ts";
import type { Query, Row } from "../query.ts";
import { TYPE_OF_APP } from "./app-types.ts";
import { isSmallSql } from "./counts.ts";
import { pairIndexesSql } from "./pair-index.ts";

export type Slots = {
  /** The `id` of the type's row in `content_types`. */
  readonly typeId: string;
  /** The map from slots to fields, as the JSON text that the database returned. */
  readonly map: string;
  readonly slotOf: (column: Column) => string | null;
  /** The slot under which the elements of a `multiple` field are counted, or null. Such a slot is not a column. */
  readonly elementsOf: (column: Column) => string | null;
  /** The slots whose values are counted in pairs (schema/0007_counts.sql). */
  readonly paired: readonly string[];
  /** Names of the indexes on two slots of the type (pair-index.ts) that existed when the slots were read. */
  readonly pairIndexes: readonly string[];
  /** Whether the type was small when the slots were read (isSmallSql in counts.ts). */
  readonly isSmall: boolean;
};

/** The slots of each type as they were last read, by app key and slug. */
export type SlotCache = Map<string, Slots>;

type StoredMap = Readonly<Record<string, readonly [field: string, type: string] | readonly string[]>>;

const LONG = "long";
/** The first letter of the slots of `multiple` fields. */
const ELEMENTS_PREFIX = "m";

export const NO_SLOTS: Slots = {
  typeId: "0",
  map: "{}",
  slotOf: () => null,
  elementsOf: () => null,
  paired: [],
  pairIndexes: [],
  isSmall: false,
};

/**
 * The slots of a published type: one row of [type id, slot map, slots counted in pairs, is it small, indexes on pairs],
 * or none.
 */
export function slotsQuery(appKey: string, slug: string): Query {
  const text = `SELECT type.id::text, slots.map::text, array_to_json(slots.paired)::text, (${isSmallSql("type.id")})::text,
  (${pairIndexesSql("type.id")})::text
FROM precast.slots, ${TYPE_OF_APP} AND slots.content_type_id = type.id`;
  return { text, values: [appKey, slug] };
}

/** Reads a row of slotsQuery; null when there is no row, because the type does not exist or is not published. */
export function readSlots(row: Row | undefined): Slots | null {
  const [typeId, map, paired, isSmall, pairIndexes] = row ?? [];
  if (typeId == null || map == null || paired == null || pairIndexes == null) return null;
  const slots = new Map(
    Object.entries(JSON.parse(map) as StoredMap)
      .filter(([slot]) => slot !== LONG)
      .map(([slot, [field, type]]) => [`${field} ${type} ${slot.startsWith(ELEMENTS_PREFIX)}`, slot]),
  );
  const slotOf = ({ name, type }: Column, multiple: boolean) => slots.get(`${name} ${type} ${multiple}`) ?? null;
  // The key includes the type: a field that has changed its type since the tree was built has a slot of another
  // meaning.
  return {
    typeId,
    map,
    slotOf: (column) => (column.multiple ? null : slotOf(column, false)),
    elementsOf: (column) => (column.multiple ? slotOf(column, true) : null),
    paired: JSON.parse(paired) as string[],
    pairIndexes: JSON.parse(pairIndexes) as string[],
    isSmall: isSmall === "true",
  };
}

const MAX_TYPES = 10_000;

export function cacheSlots(cache: SlotCache, key: string, slots: Slots): void {
  if (cache.size >= MAX_TYPES) cache.clear();
  cache.set(key, slots);
}
