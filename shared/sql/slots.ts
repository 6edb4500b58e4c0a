/**
 * Slots: which columns of the entries table hold which fields of a type, for filters and sorts to find in indexes. The
 * database gives them out (schema/0008_slots.sql) and may do so anew at any time, so a query says which map it means.
 */
import type { Column } from "../catalog.ts";
import type { Row } from "../database/database.ts";

export type Slots = {
  /** The number of the type's row. */
  readonly typeId: string;
  /** The map as the database spells it. */
  readonly map: string;
  readonly slotOf: (column: Column) => string | null;
  /** As slotOf, for a `multiple` field whose elements are counted: it is no column. */
  readonly elementsOf: (column: Column) => string | null;
  /** Those whose values are counted in pairs (schema/0016_value_counts.sql). */
  readonly paired: readonly string[];
  /** Whether the type had few entries when this was read (query.ts). */
  readonly isSmall: boolean;
};

/** What was last known of each type's slots, by app and slug. */
export type SlotBook = Map<string, Slots>;

type StoredMap = Readonly<Record<string, readonly [field: string, type: string] | readonly string[]>>;

const LONG = "long";
/** What the slots of `multiple` fields begin with. */
const ELEMENTS = "m";

export const NO_SLOTS: Slots = {
  typeId: "0",
  map: "{}",
  slotOf: () => null,
  elementsOf: () => null,
  paired: [],
  isSmall: false,
};

/** A row of slotsQuery; null where there is none. */
export function readSlots(row: Row | undefined): Slots | null {
  const [typeId, map, paired, isSmall] = row ?? [];
  if (typeId == null || map == null || paired == null) return null;
  const slots = new Map(
    Object.entries(JSON.parse(map) as StoredMap)
      .filter(([slot]) => slot !== LONG)
      .map(([slot, [field, type]]) => [`${field} ${type} ${slot.startsWith(ELEMENTS)}`, slot]),
  );
  const slotOf = ({ name, type }: Column, multiple: boolean) => slots.get(`${name} ${type} ${multiple}`) ?? null;
  // A field that has changed its type since the tree was built means another thing to the database.
  return {
    typeId,
    map,
    slotOf: (column) => (column.multiple ? null : slotOf(column, false)),
    elementsOf: (column) => (column.multiple ? slotOf(column, true) : null),
    paired: JSON.parse(paired) as string[],
    isSmall: isSmall === "true",
  };
}

const MAX_TYPES = 10_000;

export function remember(book: SlotBook, key: string, slots: Slots): void {
  if (book.size >= MAX_TYPES) book.clear();
  book.set(key, slots);
}
