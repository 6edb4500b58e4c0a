/** Reads the slots of the types that have enough entries for their indexes to matter. */
import { readSlots, type Slots, slotsQuery } from "../../shared/sql/slots.ts";
import { type CheckContext, LARGE_TYPE, type TypeSize } from "./check.ts";

export type LargeType = { readonly size: TypeSize; readonly slots: Slots };

export async function readLargeTypes({ database, types }: CheckContext): Promise<LargeType[]> {
  const found: LargeType[] = [];
  for (const size of types) {
    if (size.entries < LARGE_TYPE) continue;
    const [row] = await database.query(slotsQuery(size.app.key, size.type.slug));
    const slots = readSlots(row);
    if (slots !== null) found.push({ size, slots });
  }
  return found;
}
