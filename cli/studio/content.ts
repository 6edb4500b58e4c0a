/**
 * What the studio's page on content shows: all entries, drafts and those of unpublished types too, what an entry refers to,
 * and the files of the tree in which it stands.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Address, findAddress, nameFile, nameFolder, writeRequest } from "../../shared/api/address.ts";
import {
  type App,
  type ContentType,
  type Field,
  findType,
  isLocalAddress,
  listSortable,
} from "../../shared/api/catalog.ts";
import { mediaFolder } from "../../shared/api/entry.ts";
import { priceRequest } from "../../shared/api/pricing.ts";
import { readRequest } from "../../shared/api/request.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { isFile, namesIn } from "../../shared/files.ts";
import { findMediaFolder, isMediaName, nameMediaFolder } from "../../shared/media.ts";
import { readRow, readRows } from "../database.ts";
import { readViewedApp, requireParameter, type StudioSite } from "./view.ts";

export type TypeHead = { readonly slug: string; readonly name: string; readonly published: boolean };

/** `title` is the text that stands for the entry; empty where it has none. Times are ISO 8601. */
export type EntryHead = {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly status: "draft" | "published";
  readonly published_at: string | null;
  readonly updated_at: string;
};

export type ContentPage = {
  readonly types: readonly TypeHead[];
  readonly type: string;
  readonly entries: readonly EntryHead[];
  readonly total: number;
  readonly per_page: number;
};

const PER_PAGE = 25;

/** The entries of a type, those edited last first: those that `status` and `search` (in the title, or an id) let through. */
export async function readContent({ database }: StudioSite, query: URLSearchParams): Promise<ContentPage> {
  const app = requireParameter(query, "app");
  return database.transaction("read", async (session) => {
    const types = await readRows<TypeHead>(session, TYPES, [app]);
    const type = query.get("type") ?? types[0]?.slug ?? "";
    const offset = (Math.max(1, Math.trunc(Number(query.get("page"))) || 1) - 1) * PER_PAGE;
    const values = [app, type, query.get("status") ?? "", query.get("search") ?? ""];
    const { total } = await readRow<{ total: number }>(session, `SELECT count(*) AS total FROM ${FOUND}`, values);
    const page = `SELECT * FROM ${FOUND} ORDER BY updated_at DESC, id LIMIT ${PER_PAGE} OFFSET ${offset}`;
    return { types, type, entries: await readRows<EntryHead>(session, page, values), total, per_page: PER_PAGE };
  });
}

const TYPES = `SELECT type.slug, type.name, type.published FROM precast.content_types AS type
JOIN precast.apps AS app ON app.id = type.app_id WHERE app.key = $1 ORDER BY type.position NULLS LAST, type.slug COLLATE "C"`;

/** As in the summary of a search: the field `title`, or else the first text. */
const TITLE = `coalesce(e.data ->> (SELECT field.name FROM precast.fields AS field
  WHERE field.content_type_id = type.id AND (field.name = 'title' OR field.type = 'text')
  ORDER BY field.name <> 'title', field.position, field.name LIMIT 1), '')`;

const HEADS = `SELECT e.id, type.slug AS type, ${TITLE} AS title, e.status, e.published_at, e.updated_at
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id
JOIN precast.entries AS e ON e.content_type_id = type.id`;

const FOUND = `(SELECT * FROM (${HEADS} WHERE app.key = $1 AND type.slug = $2) AS head
WHERE $3 IN ('', status) AND ($4 = '' OR id::text = lower($4) OR strpos(lower(title), lower($4)) > 0)) AS found`;

// One entry.

/** `related` and `media` belong to the values of a relation or a media field, in their order. */
export type FieldView = {
  readonly field: Field;
  readonly value: unknown;
  readonly related: readonly (EntryHead | null)[];
  readonly media: readonly Medium[];
};

/** Its address in answers, and the one at which this machine has it; null where it has not. */
export type Medium = { readonly url: string; readonly here: string | null };

/** A file of the tree in which an entry stands, and the request that it answers. */
export type EntryFile = { readonly path: string; readonly request: string };

export type EntryView = EntryHead & {
  readonly created_at: string;
  readonly fields: readonly FieldView[];
  readonly files: readonly EntryFile[];
  /** Whether there are so many pages that not all were looked through. */
  readonly more: boolean;
};

type Stored = EntryHead & { readonly created_at: string; readonly data: Readonly<Record<string, unknown>> };

export async function readEntry(site: StudioSite, query: URLSearchParams): Promise<EntryView> {
  const app = await readViewedApp(site, query);
  const [type, id] = [requireParameter(query, "type"), requireParameter(query, "id")];
  const { data, ...entry } = await site.database.transaction("read", async (session) => {
    const [stored] = await readRows<Stored>(session, ENTRY, [app.key, type, id]);
    if (stored === undefined) throw new ConfigError([`No entry of the type ${type} has the id ${id}.`]);
    const fields = await readRows<Field>(session, FIELDS, [app.key, type]);
    const views = fields.map((field) => viewField(session, site, app, field, stored.data[field.name] ?? null));
    return { ...stored, fields: await Promise.all(views) };
  });
  const published = entry.status === "published" ? findType(app, type) : undefined;
  const found = published === undefined ? NOWHERE : await findFiles(site.settings.out, app, published, id, data);
  return { ...entry, ...found };
}

const ENTRY = `SELECT head.*, e.created_at, e.data || e.rich AS data FROM (${HEADS}) AS head
JOIN precast.content_types AS type ON type.slug = head.type
JOIN precast.apps AS app ON app.id = type.app_id
JOIN precast.entries AS e ON e.content_type_id = type.id AND e.id = head.id
WHERE app.key = $1 AND type.slug = $2 AND e.id::text = lower($3)`;

const FIELDS = `SELECT field.name, field.type, field.label, field.required, field.searchable, field.multiple, field.target
FROM precast.fields AS field JOIN precast.content_types AS type ON type.id = field.content_type_id
JOIN precast.apps AS app ON app.id = type.app_id
WHERE app.key = $1 AND type.slug = $2 ORDER BY field.position, field.name`;

async function viewField(
  session: Session,
  site: StudioSite,
  app: App,
  field: Field,
  value: unknown,
): Promise<FieldView> {
  const values = [value].flat().filter((one): one is string => typeof one === "string" && one !== "");
  const related = field.type === "relation" ? await readRelated(session, app, field, values) : [];
  const media = field.type === "media" ? values.map((name) => viewMedium(site, app, name)) : [];
  return { field, value, related, media };
}

function viewMedium({ settings, media }: StudioSite, app: App, name: string): Medium {
  const url = mediaFolder(app) + encodeURIComponent(name);
  const path = join(findMediaFolder(settings.dataDir), nameMediaFolder(app.key), name);
  if (media !== null && isMediaName(name) && isFile(path))
    return { url, here: `${media}/${nameMediaFolder(app.key)}/${encodeURIComponent(name)}` };
  return { url, here: isLocalAddress(url) ? url : null };
}

/** Null stands for an entry that does not exist. */
async function readRelated(session: Session, app: App, { target }: Field, ids: readonly string[]) {
  const text = `${HEADS} WHERE app.key = $1 AND type.slug = $2 AND e.id::text = ANY ($3::text[])`;
  const heads = await readRows<EntryHead>(session, text, [app.key, target ?? "", ids]);
  return ids.map((id) => heads.find((head) => head.id === id) ?? null);
}

// The files of the tree.

type Files = Pick<EntryView, "files" | "more">;
const NOWHERE: Files = { files: [], more: false };
/** Files that are read to look for an entry: some ten megabytes. */
const MAX_PAGES = 2_000;
const AT_ONCE = 50;

/** What is built now: an edit since the last build may have moved the entry. */
async function findFiles(out: string, app: App, type: ContentType, id: string, data: Stored["data"]): Promise<Files> {
  const folder = join(out, nameFolder(app.key));
  const pages = namesIn(join(folder, type.slug, "page")).length;
  const candidates = listCandidates(app.key, type, id, data, Math.min(pages, MAX_PAGES));
  const files: EntryFile[] = [];
  for (let start = 0; start < candidates.length; start += AT_ONCE) {
    const some = candidates.slice(start, start + AT_ONCE).map(async (address) => {
      const path = nameFile(address);
      const body = await readFile(join(folder, path), "utf8").catch(() => "");
      return body.includes(`"id":"${id}"`)
        ? [{ path: `${nameFolder(app.key)}/${path}`, request: writeRequest(address) }]
        : [];
    });
    files.push(...(await Promise.all(some)).flat());
  }
  return { files, more: pages > MAX_PAGES };
}

/** The files in which an entry may stand. */
function listCandidates(
  appKey: string,
  type: ContentType,
  id: string,
  data: Stored["data"],
  pages: number,
): readonly Address[] {
  const { slug } = type;
  const filters = type.filterable_fields.flatMap((name) =>
    [data[name]]
      .flat()
      .flatMap((value) => addressOf(appKey, type, `filter[${name}]=${encodeURIComponent(String(value))}`)),
  );
  const sorts = listSortable(type).flatMap((name) => [name, `-${name}`]);
  return [
    { kind: "entry", slug, id },
    ...Array.from({ length: pages }, (_, index) => ({ kind: "page" as const, slug, page: BigInt(index + 1) })),
    ...sorts.map((sort) => ({ kind: "sort" as const, slug, sort })),
    ...filters,
  ];
}

/** As the server finds the file of a request: with the value in its canonical spelling. */
function addressOf(appKey: string, type: ContentType, query: string): Address[] {
  const request = readRequest({ method: "GET", target: `/api/v1/${type.slug}?${query}`, appKey });
  if (request.kind !== "request") return [];
  const { shape } = priceRequest(request, type);
  const address = shape === "filter" ? findAddress(request, shape, type) : null;
  return address === null ? [] : [address];
}
