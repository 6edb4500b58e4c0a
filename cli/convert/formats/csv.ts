/** Reads CSV and TSV: one file is one collection, named like the file; a folder has one in each file. */
import { basename, extname } from "node:path";
import { Readable } from "node:stream";
import { CsvError, type Info, parse } from "csv-parse";
import { takeColumns } from "../columns.ts";
import { type Place, type ReadContext, SourceError, type SourceRecord, type SourceValue } from "../record.ts";
import { listSources, readTextPieces, type SourceFile } from "../source.ts";

export async function* readCsv(source: string, context: ReadContext): AsyncGenerator<SourceRecord> {
  const files = await listSources(source, ["*.csv", "*.tsv"], "a .csv or .tsv file, or a folder of them");
  for (const file of files) yield* readFile(file, context);
}

type Row = { readonly record: readonly string[]; readonly info: Info };

async function* readFile(file: SourceFile, context: ReadContext): AsyncGenerator<SourceRecord> {
  const collection = basename(file.name, extname(file.name));
  let header: readonly string[] | null = null;
  for await (const { record, info } of readRows(file, context)) {
    const place = { file: file.name, line: info.lines };
    if (header === null) {
      header = checkHeader(record, place);
      continue;
    }
    if (record.length !== header.length) {
      context.lose({
        place,
        what: "the row",
        why: `has more or fewer cells than the header, which has ${header.length}`,
      });
    }
    const fields = header.map((name, index): [string, SourceValue] => [
      name,
      { kind: "cell", text: record[index] ?? "" },
    ]);
    yield { kind: "record", collection, key: null, place, ...takeColumns(Object.fromEntries(fields)) };
  }
  if (header === null)
    throw new SourceError({ file: file.name, line: null }, "is empty: its first line must name the columns");
}

/** The rows with the number of the line on which each ends. */
async function* readRows(file: SourceFile, context: ReadContext): AsyncGenerator<Row> {
  const pieces = readTextPieces(file, context);
  const first = await pieces.next();
  if (first.done === true) return;
  const delimiter = /\.tsv$/i.test(file.name) ? "\t" : findDelimiter(first.value);
  const parser = parse({ bom: true, delimiter, info: true, relax_column_count: true, skip_empty_lines: true });
  const bytes = Readable.from(chain(first.value, pieces));
  bytes.on("error", (error) => parser.destroy(error));
  try {
    for await (const row of bytes.pipe(parser)) yield row as Row;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = (error as CsvError & { readonly lines?: number }).lines ?? null;
    throw new SourceError({ file: file.name, line }, `is not CSV: ${error.message}`);
  } finally {
    bytes.destroy();
  }
}

async function* chain(first: string, others: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* others;
}

/** The sign that the first line has most often outside of quotes. */
function findDelimiter(text: string): string {
  const [line = ""] = text.replaceAll(/"[^"]*"/g, "").split("\n");
  const count = (sign: string) => line.split(sign).length;
  return [",", ";", "\t", "|"].reduce((best, sign) => (count(sign) > count(best) ? sign : best));
}

/** A column without a name is called by its number. */
function checkHeader(cells: readonly string[], place: Place): readonly string[] {
  const names = cells.map((cell, index) => cell.trim() || `column_${index + 1}`);
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated === undefined) return names;
  throw new SourceError(
    place,
    `names the column ${JSON.stringify(repeated)} twice: give each column a name of its own`,
  );
}
