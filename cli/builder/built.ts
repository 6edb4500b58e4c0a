/** Reads what an earlier build wrote: the entries and lists of the tree as they stand. */
import { join } from "node:path";
import { type Address, nameFile, nameFolder } from "../../shared/api/address.ts";
import { type ContentType, TIMESTAMPS } from "../../shared/api/catalog.ts";
import { readElements, readMembers } from "../../shared/api/json.ts";
import { readOrNull, readText } from "../../shared/files.ts";

export type BuiltTree = {
  readonly read: (address: Address) => string | null;
  /** The file as a latin1 string, one character per byte: it can be cut and joined without decoding UTF-8. */
  readonly readBinary: (address: Address) => string | null;
  /** Fetches those of these files that exist only where the tree was deployed. */
  readonly fetchFiles: (addresses: readonly Address[]) => Promise<void>;
};

/** Thrown when files of the tree are not as a build left them: somebody else changed them, and a full build is due. */
export class ForeignTreeError extends Error {
  readonly file: string;

  /** `file` is relative to the folder of the app, or to the tree. */
  constructor(file: string) {
    super(`${file} was changed or removed after it was built`);
    this.name = "ForeignTreeError";
    this.file = file;
  }
}

/** Opens the files of an app. `fetchFiles` fetches those that are elsewhere, by paths relative to `out`. */
export function openBuiltTree(
  out: string,
  appKey: string,
  fetchFiles: (paths: readonly string[]) => Promise<void>,
): BuiltTree {
  const root = join(out, nameFolder(appKey));
  return {
    read: (address) => readText(join(root, nameFile(address))),
    readBinary: (address) => readOrNull(join(root, nameFile(address)))?.toString("latin1") ?? null,
    fetchFiles: (addresses) => fetchFiles(addresses.map((address) => `${nameFolder(appKey)}/${nameFile(address)}`)),
  };
}

const ENTRY_START = '{"data":';
const ENTRY_END = '"}}';
/** A power failure may leave this character in a file; no file that a build writes contains it. */
const ZERO = "\0";

/** The values of an entry's file as JSON texts. */
export function valuesIn(entryFile: string): Map<string, string> {
  return readMembers(entryFile.slice(ENTRY_START.length, -1));
}

/** Like valuesIn, for a file of the tree. Throws ForeignTreeError when it is not the complete file of this entry. */
export function builtValuesIn(entryFile: string, type: ContentType, id: string): Map<string, string> {
  const isFramed = entryFile.startsWith(`${ENTRY_START}${ITEM_START}${id}"`) && entryFile.endsWith(ENTRY_END);
  const values = isFramed && !entryFile.includes(ZERO) ? valuesIn(entryFile) : new Map<string, string>();
  const names = [...type.fields.map(({ name }) => name), ...TIMESTAMPS];
  if (names.every((name) => values.has(name))) return values;
  throw new ForeignTreeError(nameFile({ kind: "entry", slug: type.slug, id }));
}

/** `items` are JSON texts; `total` is the total number of entries that the list states. */
type BuiltList = { readonly items: readonly string[]; readonly total: number };

const LIST_START = '{"data":[';
const LIST_END = /^\],"meta":\{"current_page":(\d+),"per_page":(\d+),"total":(\d+),"last_page":\d+\}\}$/;
const ITEM_START = '{"id":"';
const ID_LENGTH = 36;

/** Parses the file of a list. Throws ForeignTreeError when it is not complete. */
export function listIn(listFile: string, address: Address): BuiltList {
  const end = listFile.lastIndexOf('],"meta":');
  const [, page, perPage, total] = (LIST_END.exec(listFile.slice(end)) ?? []).map(Number);
  const isFramed = listFile.startsWith(LIST_START) && !listFile.includes(ZERO);
  if (!isFramed || page === undefined || perPage === undefined || total === undefined)
    throw new ForeignTreeError(nameFile(address));
  const items = readElements(listFile.slice(LIST_START.length, end), "answer");
  if (items.length !== Math.max(0, Math.min(perPage, total - perPage * (page - 1))))
    throw new ForeignTreeError(nameFile(address));
  return { items, total };
}

export function idOfItem(item: string): string {
  return item.slice(ITEM_START.length, ITEM_START.length + ID_LENGTH);
}

// Reads a default page of a type out of the tree, and makes the bytes of new ones.

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
export function encodeText(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

export function foreignPage(type: ContentType, number: number): ForeignTreeError {
  return new ForeignTreeError(`${type.slug}/page/${number}.json`);
}
