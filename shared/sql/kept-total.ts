/** How many entries match, where the database counts them as they are written (schema/0012_totals.sql, 0016_value_counts.sql). */
import type { Column } from "../catalog.ts";
import type { Condition } from "../condition.ts";
import { storedOperand } from "./indexed.ts";
import { totalOf } from "./query.ts";
import type { Slots } from "./slots.ts";
import type { Place } from "./where.ts";

/** SQL of one row `total`, or null where they have to be counted. */
export function keptTotal(conditions: readonly Condition[], slots: Slots, place: Place): string | null {
  const [only, ...others] = conditions;
  if (only === undefined) return totalOf(slots.typeId);
  if (only.kind !== "equals" || others.length > 0 || !isCounted(only.column)) return null;
  const slot = slots.slotOf(only.column);
  if (slot === null) return null;
  const values = place(only.values.map((value) => storedOperand(only.column, value)));
  const equal = `${heldOf(slots.typeId, slot)} AND value = ANY (${values}::text[])`;
  return only.negated
    ? `SELECT all_of_them.total - equal.total AS total FROM (${totalOf(slots.typeId)}) AS all_of_them, (${equal}) AS equal`
    : equal;
}

/** As keptTotal, of those that have a value in the column. */
export function keptValued(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : heldOf(slots.typeId, slot);
}

/** The fields that are counted by value. */
function isCounted({ type }: Column): boolean {
  return type === "select" || type === "boolean" || type === "relation";
}

function heldOf(typeId: string, slot: string): string {
  return `SELECT coalesce(sum(change), 0) AS total FROM precast.value_counts WHERE content_type_id = ${typeId} AND slot = '${slot}'`;
}
