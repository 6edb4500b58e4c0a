/** Reads sources of other systems, which a test writes as files, and gives what came of them. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create } from "tar";
import { onTestFinished } from "vitest";
import type { SourceCollection, SourceReader, SourceRecord, SourceValue } from "../../cli/convert/record.ts";

export type Conversion = {
  readonly records: readonly SourceRecord[];
  readonly collections: readonly SourceCollection[];
  /** One sentence a loss: `file:line what (times): why`. */
  readonly losses: readonly string[];
  /** How many bytes of the source were said to be read. */
  readonly bytes: number;
};

/** A new folder, for as long as the test runs. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "precast-convert-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Writes files into a new folder, and gives its path. */
export function writeSource(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = makeFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** Packs a folder into an archive that is a file of a new folder, and gives its path. */
export async function packSource(folder: string, name: string, gzip = name.endsWith("z")): Promise<string> {
  const file = join(makeFolder(), name);
  await create({ cwd: folder, file, gzip }, readdirSync(folder).sort());
  return file;
}

export async function readSource(
  reader: SourceReader,
  source: string,
  locale: string | null = null,
): Promise<Conversion> {
  const records: SourceRecord[] = [];
  const collections: SourceCollection[] = [];
  const losses: string[] = [];
  let bytes = 0;
  const context = {
    locale,
    scratch: makeFolder(),
    lose: ({ place, what, why, times = 1 }: Parameters<Parameters<SourceReader>[1]["lose"]>[0]) => {
      losses.push(`${place.file}${place.line === null ? "" : `:${place.line}`} ${what} (${times}): ${why}`);
    },
    advance: (read: number) => {
      bytes += read;
    },
  };
  for await (const one of reader(source, context)) {
    if (one.kind === "record") records.push(one);
    else collections.push(one);
  }
  return { records, collections, losses, bytes };
}

/** The record of a key in a collection. */
export function findRecord({ records }: Conversion, collection: string, key: string): SourceRecord {
  const found = records.filter((record) => record.collection === collection && record.key === key);
  if (found.length !== 1) throw new Error(`${found.length} records ${collection}/${key}`);
  return found[0] as SourceRecord;
}

/** The HTML of a field. */
export function htmlOf(value: SourceValue | undefined): string {
  if (typeof value === "object" && value !== null && "kind" in value && value.kind === "html") return value.html;
  throw new Error(`${JSON.stringify(value)} is no HTML`);
}

export function refer(collection: string, key: string): SourceValue {
  return { kind: "reference", collection, key };
}
