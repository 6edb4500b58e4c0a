/**
 * Reads the rows of a mapping's SELECTs and writes them as a bundle, in batches: `import` then checks and compares them.
 * An id that is no UUID becomes one, in the same way wherever a relation leads to it.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { readBatches, type Session } from "../../shared/database/database.ts";
import { type Row, sql } from "../../shared/sql/query.ts";
import { makeId } from "../convert/names.ts";
import type { BundleType } from "../import/shape.ts";
import type { MappedType, SourceMap } from "./map.ts";

export type Spool = {
  /** The bundle. */
  readonly folder: string;
  readonly rows: number;
  /** Equal rows in the same order have the same. */
  readonly digest: string;
};

/** Times and text as JSON has them, whatever the settings of the role; names without a schema as the role has them. */
const SETTINGS = "SET LOCAL TimeZone = 'UTC'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL search_path TO DEFAULT";

/** `session` must read one snapshot. The rows lie in `folder` then, which must be empty. */
export async function spoolRows(session: Session, map: SourceMap, folder: string): Promise<Spool> {
  await session.execute(SETTINGS);
  for (const part of ["bundle/content_types", "bundle/entries", "keys"])
    await mkdir(join(folder, part), { recursive: true });
  const bundle = join(folder, "bundle");
  const digest = createHash("sha1");
  await writeFile(join(bundle, "app.json"), JSON.stringify(map.app));
  let rows = 0;
  for (const mapped of map.types) await checkSelect(session, mapped);
  for (const mapped of map.types) {
    const { slug } = mapped.content_type;
    await writeFile(join(bundle, "content_types", `${slug}.json`), JSON.stringify(mapped.content_type));
    const entries = await open(join(bundle, "entries", `${slug}.ndjson`), "w");
    const keys = await open(join(folder, "keys", slug), "w");
    try {
      rows += await spoolType(session, map, mapped, { entries, keys, digest });
    } finally {
      await entries.close();
      await keys.close();
    }
  }
  return { folder: bundle, rows, digest: digest.digest("hex") };
}

type Outlets = {
  readonly entries: FileHandle;
  readonly keys: FileHandle;
  readonly digest: { readonly update: (text: string) => unknown };
};

async function spoolType(
  session: Session,
  { app }: SourceMap,
  mapped: MappedType,
  { entries, keys, digest }: Outlets,
): Promise<number> {
  const { content_type: type } = mapped;
  const special = type.fields.filter(isSpecial);
  const query = sql(writeQuery(mapped, special));
  const write = (row: Row) => writeLine(row, type, special, (slug, key) => makeId(app.key, slug, key));
  let count = 0;
  try {
    for await (const rows of readBatches(session, query)) {
      const lines = rows.map((row, index) => {
        if (row[0] === null) throw new Error(`row ${count + index + 1} has no id`);
        return write(row);
      });
      const text = `${lines.join("\n")}\n`;
      digest.update(text);
      await entries.writeFile(text);
      await keys.writeFile(`${rows.map(([key]) => JSON.stringify(key)).join("\n")}\n`);
      count += rows.length;
    }
  } catch (error) {
    throw withType(error, type.slug);
  }
  return count;
}

// Writes the query: JSON is made of a row in the database, so that numbers keep every digit.

const COLUMNS = ["id", "status", "published_at", "created_at", "updated_at"];
type Field = BundleType["fields"][number];

/** Whether values are not taken as they are. */
function isSpecial({ type }: Field): boolean {
  return type === "relation" || type === "datetime";
}

function writeQuery({ select }: MappedType, special: readonly Field[]): string {
  const literal = (name: string) => `'${name}'`;
  const apart = [...COLUMNS, ...special.map(({ name }) => name)].map(literal).join(", ");
  const elements = (name: string) =>
    `CASE jsonb_typeof(line -> '${name}') WHEN 'array' THEN (SELECT coalesce(jsonb_agg(value ORDER BY place), '[]')
       FROM jsonb_array_elements_text(line -> '${name}') WITH ORDINALITY AS one (value, place)) ELSE line -> '${name}' END::text`;
  const values = [
    "line ->> 'id'",
    "CASE WHEN line ? 'status' THEN coalesce(line ->> 'status', 'draft') ELSE 'published' END",
    ...COLUMNS.slice(2).map((name) => `line ->> '${name}'`),
    `(line - ARRAY[${apart}])::text`,
    ...special.map(({ name, multiple }) => (multiple ? elements(name) : `line ->> '${name}'`)),
  ];
  // OFFSET 0 keeps the database from making the JSON anew for each value.
  return `SELECT ${values.join(", ")} FROM (
    SELECT to_jsonb(source) AS line FROM (\n${writeInner(select)}\n) AS source OFFSET 0) AS source`;
}

function writeInner(select: readonly string[]): string {
  return select.join("\n").replace(/;\s*$/, "");
}

/** What its status is called elsewhere. */
const STATUSES: Readonly<Record<string, string>> = { true: "published", false: "draft" };
const NEVER = "1970-01-01T00:00:00.000+00:00";

function writeLine(
  [key, status, published, created, updated, rest, ...values]: Row,
  type: BundleType,
  special: readonly Field[],
  idOf: (slug: string, key: string) => string,
): string {
  const stamps = [published, created, updated].map((text) => (text == null ? null : writeInstant(text)));
  const [published_at = null, created_at = null, updated_at = null] = stamps;
  const first = created_at ?? published_at ?? updated_at ?? NEVER;
  const named = STATUSES[status as string] ?? status;
  const line = {
    id: idOf(type.slug, key as string),
    status: named,
    published_at: published_at ?? (named === "published" ? first : null),
    created_at: first,
    updated_at: updated_at ?? first,
  };
  const told = special.flatMap(({ name, type: kind, multiple, target }, index) => {
    const value = values[index] ?? null;
    if (value === null) return [];
    if (kind === "datetime") return [`"${name}":${JSON.stringify(writeInstant(value))}`];
    const refer = (one: unknown) => (typeof one === "string" ? idOf(target as string, one) : one);
    const found: unknown = multiple ? JSON.parse(value) : value;
    return [`"${name}":${JSON.stringify(Array.isArray(found) ? found.map(refer) : refer(found))}`];
  });
  const data = [(rest as string).slice(1, -1), ...told].filter((part) => part !== "").join(",");
  return `${JSON.stringify(line).slice(0, -1)},"data":{${data}}}`;
}

const INSTANT = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.(\d+))?)?(?:\+00:00)?$/;

/** As Precast stores it. A time without a zone is one of UTC. What is no time stays as it is, for `import` to refuse. */
function writeInstant(text: string): string {
  const [, day, time = "00:00:00", fraction = ""] = INSTANT.exec(text) ?? [];
  return day === undefined ? text : `${day}T${time}.${fraction.slice(0, 3).padEnd(3, "0")}+00:00`;
}

// Says what is wrong, in words of the mapping.

type DatabaseError = Error & { readonly code?: string; readonly position?: string };

/** Asks for no row: a mistake in the SQL, and a field that it does not yield, are told before anything is read. */
async function checkSelect(session: Session, { select, content_type: { slug, fields } }: MappedType): Promise<void> {
  const names = ["id", ...fields.map(({ name }) => name)];
  const start = `SELECT ${names.map((name) => `source."${name}"`).join(", ")} FROM (\n`;
  try {
    await session.query(sql(`${start}${writeInner(select)}\n) AS source LIMIT 0`));
  } catch (error) {
    const { message, code, position } = error as DatabaseError;
    const [, missing] = /^column source\."?([^"\s]+)"? does not exist$/.exec(message) ?? [];
    const place = Number(position ?? 0) - start.length;
    if (code === "42703" && missing !== undefined && place <= 0) {
      const what = missing === "id" ? "which every type needs" : `but the content type has a field "${missing}"`;
      throw new Error(`The SELECT of "${slug}" yields no column "${missing}", ${what}.`);
    }
    if (position === undefined) throw withType(error, slug);
    const before = [...writeInner(select)]
      .slice(0, Math.max(place - 1, 0))
      .join("")
      .split("\n");
    const line = before.length;
    const column = (before.at(-1) as string).length + 1;
    throw new Error(
      `The SELECT of "${slug}" is wrong in line ${line}, column ${column}: ${message}.\n  ${select[line - 1] ?? ""}`,
    );
  }
}

/** A fault of the connection is none of the type. */
function withType(error: unknown, slug: string): unknown {
  if (!(error instanceof Error) || error.name === "DatabaseFault") return error;
  return new Error(`The SELECT of "${slug}" failed: ${error.message}.`, { cause: error });
}

const PLACE = /^entries\/(.+)\.ndjson:(\d+): (.*?)(?:( \(on [\d,]+ )lines(: .*\)))?$/s;

/** What an import says of lines of the spool, in words of rows: `posts, id 17: field "price" must be a number`. */
export async function describeRows(text: string, { folder }: Spool): Promise<string> {
  const sentences: string[] = [];
  for (const sentence of text.split("\n")) {
    const [, slug, line, what, many = "", which = ""] = PLACE.exec(sentence) ?? [];
    const key = slug === undefined ? null : await findKey(folder, slug, Number(line));
    sentences.push(key === null ? sentence : `${slug}, id ${key}: ${what}${many === "" ? "" : `${many}rows${which}`}`);
  }
  return sentences.join("\n");
}

/** The key of the row of a line. */
async function findKey(folder: string, slug: string, line: number): Promise<string | null> {
  let number = 0;
  for await (const key of createInterface(createReadStream(join(folder, "..", "keys", slug))))
    if (++number === line) return JSON.parse(key) as string;
  return null;
}
