/** Reads a default page of a type out of the tree, and makes the bytes of new ones. */
import type { Address } from "../../../shared/address.ts";
import type { ContentType } from "../../../shared/catalog.ts";
import { type BuiltTree, ForeignTreeError, listIn } from "./built.ts";

/** Number of entries of the type in the tree (`before`), and in the database. */
export type Totals = { readonly before: number; readonly total: number };

/** A touched entry that is published: its index in the order of the pages, from 0, and its item as a latin1 string. */
export type PlacedItem = { readonly index: number; readonly item: string };

export function pageAddress({ slug }: ContentType, number: number): Address {
  return { kind: "page", slug, page: BigInt(number) };
}

/** `size` is in bytes. Throws ForeignTreeError when the page is missing or its total is not `before`. */
export function readPage(type: ContentType, built: BuiltTree, number: number, before: number) {
  const address = pageAddress(type, number);
  const file = built.readBinary(address);
  if (file === null) throw foreignPage(type, number);
  const { items, total } = listIn(file, address);
  if (total !== before) throw foreignPage(type, number);
  return { items, size: file.length };
}

/** Items and bodies are latin1 strings, whose characters are the bytes. */
export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

export function foreignPage(type: ContentType, number: number): ForeignTreeError {
  return new ForeignTreeError(`${type.slug}/page/${number}.json`);
}
