/**
 * Remembers which entries end the pages of long lists that have been answered, so that later pages are read from there on
 * (sql/seek.ts). A query that does so relies on the edition: once that has changed, the slots are read again, and with
 * the old ones all places of the type are forgotten.
 */
import { oncePerObject } from "./per-object.ts";
import type { ListPlan } from "./plan.ts";
import { isWalked } from "./sql/access-path.ts";
import { offsetOf } from "./sql/page-query.ts";
import type { Place } from "./sql/seek.ts";
import type { Slots } from "./sql/slots.ts";
import { storedIn } from "./sql/stored.ts";

/** The places of each list, in ascending order. All of them are of one edition. */
type Places = Map<string, Place[]>;

const placesOf = oncePerObject((_: Slots): Places => new Map());

/** Before this many entries, reading from the start takes no time that matters. */
const NEAR = 500n;
/** A page is read from a place on if that passes so many times fewer entries than from the start. */
const WORTH = 4n;
const MAX_LISTS = 20;
const MAX_PLACES = 100;

/** The last place before the page, if it is close enough to be of use. */
export function findPlace(slots: Slots, plan: ListPlan): Place | null {
  const offset = offsetOf(plan);
  if (!isUseful(slots, plan, offset)) return null;
  const places = placesOf(slots).get(keyOf(plan)) ?? [];
  const place = places[countUpTo(places, offset) - 1];
  return place !== undefined && (offset - place.after) * WORTH <= offset ? place : null;
}

/** Remembers the last entry of a full page. */
export function rememberPlace(slots: Slots, plan: ListPlan, edition: string, id: string): void {
  const after = offsetOf(plan) + BigInt(plan.perPage);
  if (!isUseful(slots, plan, after)) return;
  const lists = placesOf(slots);
  const key = keyOf(plan);
  const known = lists.get(key) ?? [];
  const places = known[0]?.edition === edition ? known : [];
  const index = countUpTo(places, after);
  if (places[index - 1]?.after !== after) places.splice(index, 0, { edition, after, id: copyOf(id) });
  lists.delete(key);
  lists.set(key, places.length > MAX_PLACES ? places.filter((_, number) => number % 2 === 0) : places);
  if (lists.size > MAX_LISTS) lists.delete(lists.keys().next().value as string);
}

/** A part of a text keeps all of that text in memory: here, the whole page. */
function copyOf(part: string): string {
  return Buffer.from(part, "latin1").toString("latin1");
}

/** Whether it pays to know who stands at a place of the list, so many entries from its start. */
function isUseful(slots: Slots, plan: ListPlan, place: bigint): boolean {
  return place >= NEAR && isWalked(plan) && storedIn(plan.sort.column, slots) !== null && !slots.isSmall;
}

/** How many of the places are not behind the offset. */
function countUpTo(places: readonly Place[], offset: bigint): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] as Place).after <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Of the columns with their types: one that has changed its type gives another order. */
function keyOf({ sort, conditions }: ListPlan): string {
  return JSON.stringify([sort, conditions]);
}
