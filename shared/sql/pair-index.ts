/**
 * An index for one large type that holds its entries by the value in one slot and, for each value, in the order of
 * another. Operators create it where `doctor` says that it pays, and queries rely on it once it exists.
 */

/** Two slots of a type: the entries with one value in the first are in the order of the second. */
export type SlotPair = { readonly value: string; readonly order: string };

export function pairIndexName(typeId: string, { value, order }: SlotPair): string {
  return `entries_of_${typeId}_by_${value}_${order}`;
}

/** SQL of a boolean: whether the index exists and is complete. */
export function hasPairIndexSql(typeId: string, pair: SlotPair): string {
  const index = `to_regclass('precast.${pairIndexName(typeId, pair)}')`;
  return `EXISTS (SELECT FROM pg_catalog.pg_index WHERE indexrelid = ${index} AND indisvalid)`;
}

/** SQL of a JSON array with the names of the type's complete indexes. `typeId` is SQL of its id. */
export function pairIndexesSql(typeId: string): string {
  return `SELECT coalesce(json_agg(class.relname), '[]') FROM pg_catalog.pg_index AS index
  JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
  WHERE index.indrelid = 'precast.entries'::regclass AND index.indisvalid
    AND starts_with(class.relname, 'entries_of_' || ${typeId} || '_by_')`;
}
