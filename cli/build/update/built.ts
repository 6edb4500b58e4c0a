/** Reads what an earlier build wrote: the entries and lists of the tree as they stand. */
import { join } from "node:path";
import { type Address, addressOfFile, fileOf, folderOf, segment } from "../../../shared/address.ts";
import { elementsOf, membersOf } from "../../../shared/raw.ts";
import { readOrNull, readText } from "../stage/folder.ts";

export type BuiltTree = {
  readonly read: (address: Address) => string | null;
  /** The bytes of a file, each as a character: cut and joined without decoding. */
  readonly readBinary: (address: Address) => string | null;
  /** Resolves when those of these files are here that were not. */
  readonly bring: (addresses: readonly Address[]) => Promise<void>;
};

/** The tree is not what its state says, somebody else has been at its files: it has to be built in full. */
export class ForeignTreeError extends Error {
  constructor(file: string) {
    super(`${file} is not as it was built`);
    this.name = "ForeignTreeError";
  }
}

/** The files of an app below `out`; `bring` fetches what of them is elsewhere, by path relative to `out`. */
export function openBuilt(out: string, appKey: string, bring: (paths: readonly string[]) => Promise<void>): BuiltTree {
  const root = join(out, folderOf(appKey));
  return {
    read: (address) => readText(join(root, fileOf(address))),
    readBinary: (address) => readOrNull(join(root, fileOf(address)))?.toString("latin1") ?? null,
    bring: (addresses) => bring(addresses.map((address) => `${folderOf(appKey)}/${fileOf(address)}`)),
  };
}

const ENTRY_START = '{"data":';

/** The values of an entry's file as JSON texts. */
export function valuesIn(entryFile: string): Map<string, string> {
  return membersOf(entryFile.slice(ENTRY_START.length, -1), "answer");
}

const LIST_START = '{"data":[';
const ITEM_START = '{"id":"';
const ID_LENGTH = 36;

/** The items of a list, each as JSON text. */
export function itemsIn(listFile: string): string[] {
  return elementsOf(listFile.slice(LIST_START.length, listFile.lastIndexOf('],"meta":')));
}

/** How many entries a list tells of. */
export function totalIn(listFile: string): number {
  return Number(/"total":(\d+),"last_page":\d+\}\}$/.exec(listFile)?.[1]);
}

export function idOfItem(item: string): string {
  return item.slice(ITEM_START.length, ITEM_START.length + ID_LENGTH);
}

/** The address of a file below `root`, found in what it shows where its name does not tell. Null for a stranger's file. */
export function addressIn(root: string, file: string): Address | null {
  const address = addressOfFile(file);
  const [, slug, field, name] = /^([^/]+)\/filter\/([^/]+)\/(h-[0-9a-f]+)\.json$/.exec(file) ?? [];
  if (address !== null || slug === undefined || field === undefined) return address;
  const value = shownIn(readText(join(root, file)) ?? "", field).find((text) => segment(text) === name);
  return value === undefined ? null : { kind: "filter", slug, field, value };
}

/** The texts that the items of a list show in a field. */
function shownIn(listFile: string, field: string): string[] {
  try {
    const { data } = JSON.parse(listFile) as { data: Record<string, unknown>[] };
    return data.flatMap((item) => item[field]).filter((value) => typeof value === "string");
  } catch {
    return [];
  }
}
