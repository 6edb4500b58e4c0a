/** Maps a free request to the file of the tree that holds its answer, and back. Source: contract.md section 8. */
import { hash } from "node:crypto";
import { type App, type ContentType, findColumn } from "./catalog.ts";
import { equalOperand } from "./filter.ts";
import type { FreeShape } from "./pricing.ts";
import { type ApiRequest, readRequest } from "./request.ts";
import { readUuid, readWhole } from "./value.ts";

export type Address =
  | { readonly kind: "catalog" }
  | { readonly kind: "schema"; readonly slug: string }
  | { readonly kind: "page"; readonly slug: string; readonly page: bigint }
  | { readonly kind: "filter"; readonly slug: string; readonly field: string; readonly value: string }
  | { readonly kind: "sort"; readonly slug: string; readonly sort: string }
  | { readonly kind: "entry"; readonly slug: string; readonly id: string };

/**
 * The address of a free request that planning has accepted. Null when no file can hold the answer: the type is unknown,
 * the id is not a UUID, or the filter's value equals nothing.
 */
export function findAddress(request: ApiRequest, shape: FreeShape, type: ContentType | undefined): Address | null {
  const { route, parameters } = request;
  if (route.kind === "catalog") return { kind: "catalog" };
  if (type === undefined) return null;
  const { slug } = type;
  switch (shape) {
    case "catalog":
    case "schema":
      return { kind: "schema", slug };
    case "page":
      return { kind: "page", slug, page: BigInt(parameters.page ?? "1") };
    case "sort":
      return { kind: "sort", slug, sort: parameters.sort as string };
    case "entry":
      return entryAddress(slug, route.kind === "entry" ? route.id : "");
    case "filter":
      return filterAddress(type, parameters.filters[0]?.field ?? "", parameters.filters[0]?.value ?? "");
  }
}

function entryAddress(slug: string, text: string): Address | null {
  const id = readUuid(text);
  return id === null ? null : { kind: "entry", slug, id };
}

function filterAddress(type: ContentType, field: string, text: string): Address | null {
  const column = findColumn(type, field);
  const value = column === undefined ? null : equalOperand(column, text);
  return value === null ? null : { kind: "filter", slug: type.slug, field, value };
}

/** The folder of an app in the tree, relative to the tree. */
export function nameFolder(appKey: string): string {
  return `${segment(appKey)}/v1`;
}

/** All folders in which an app has files, relative to the folder of the app. */
export function listFolders({ types }: App): string[] {
  const foldersOf = ({ slug, filterable_fields: fields }: ContentType) =>
    ["page", "filter", "sort", "entry", ...fields.map((field) => `filter/${field}`)].map((name) => `${slug}/${name}`);
  return ["_schemas", ...types.flatMap((type) => [type.slug, ...foldersOf(type)])];
}

/** The path of an address's file, relative to the folder of its app. */
export function nameFile(address: Address): string {
  switch (address.kind) {
    case "catalog":
      return "_schemas.json";
    case "schema":
      return `_schemas/${address.slug}.json`;
    case "page":
      return `${address.slug}/page/${address.page}.json`;
    case "filter":
      return `${address.slug}/filter/${address.field}/${segment(address.value)}.json`;
    case "sort":
      return `${address.slug}/sort/${address.sort}.json`;
    case "entry":
      return `${address.slug}/entry/${address.id}.json`;
  }
}

/**
 * The address of a file, given by its path relative to the folder of its app. Null when no answer has that path, and
 * for a hashed filter value (`h-`), which the name does not reveal. An empty value has no address: no request can ask
 * for it, because an empty parameter counts as not sent.
 */
export function addressOfFile(file: string): Address | null {
  if (file === "_schemas.json") return { kind: "catalog" };
  if (!file.endsWith(".json")) return null;
  const parts = file.slice(0, -5).split("/");
  if (parts.includes("")) return null;
  const [first = "", kind = "", name = "", value = ""] = parts;
  const address = first === "_schemas" ? schemaAddress(kind) : listAddress(first, kind, name, value);
  return address !== null && nameFile(address) === file ? address : null;
}

function schemaAddress(slug: string): Address {
  return { kind: "schema", slug };
}

function listAddress(slug: string, kind: string, name: string, value: string): Address | null {
  switch (kind) {
    case "page": {
      const page = readWhole(name) ?? 0n;
      return page < 1n ? null : { kind, slug, page };
    }
    case "sort":
      return { kind, slug, sort: name };
    case "entry":
      // Only a UUID: `/<type>/search` is another endpoint.
      return readUuid(name) === null ? null : { kind, slug, id: name };
    case "filter": {
      const text = unsegment(value);
      return text === "" ? null : { kind, slug, field: name, value: text };
    }
    default:
      return null;
  }
}

/** The request that the file of an address answers, as path and query. */
export function writeRequest(address: Address): string {
  switch (address.kind) {
    case "catalog":
      return "/api/v1/_schemas";
    case "schema":
      return `/api/v1/_schemas/${address.slug}`;
    case "page":
      return `/api/v1/${address.slug}${address.page === 1n ? "" : `?page=${address.page}`}`;
    case "filter":
      return `/api/v1/${address.slug}?filter[${address.field}]=${encodeURIComponent(address.value)}`;
    case "sort":
      return `/api/v1/${address.slug}?sort=${address.sort}`;
    case "entry":
      return `/api/v1/${address.slug}/${address.id}`;
  }
}

/** Encodes any string as a file name. No two strings share one, even where file systems fold case or normalise. */
export function segment(text: string): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length > 64) return `h-${hash("sha256", bytes, "hex")}`;
  return /^[a-z0-9_-]*$/.test(text) ? `s-${text}` : `x-${bytes.toString("hex")}`;
}

/** Whether a name begins like those that `segment` makes. */
export function isSegment(name: string): boolean {
  return /^[shx]-/.test(name);
}

/** Decodes a name that `segment` made; null for a hash. */
export function textOfSegment(name: string): string | null {
  return name.startsWith("h-") ? null : unsegment(name);
}

function unsegment(name: string): string {
  return name.startsWith("x-") ? Buffer.from(name.slice(2), "hex").toString("utf8") : name.slice(2);
}

// Translates paths of the tree to requests, for a CDN that asks a bucket first and this server, with the same path,
// when the bucket lacks the file. The path decides what is answered, so that no query string can make the CDN cache
// one file as another. Only a hash hides its value: the query must then contain it. Source: contract.md section 8.

/** Allows no character that has a special meaning in a path or a query. */
const TREE_PATH = /^\/([shx]-[a-z0-9_-]+)\/v1\/([a-z0-9_/-]+\.json)(?:\?(.*))?$/s;
const HASHED = /^([a-z0-9_-]+)\/filter\/([a-z0-9_]+)\/(h-[0-9a-f]{64})\.json$/;

/**
 * Translates `/s-atlas/v1/cities/page/2.json` to `/api/v1/cities?page=2` if `appKey` is the key of that folder. Returns
 * every other target unchanged; a path of the tree then matches no route.
 */
export function targetOfTreePath(target: string, appKey: string | undefined): string {
  const [, folder, file = "", query = ""] = TREE_PATH.exec(target) ?? [];
  if (folder === undefined || appKey === undefined || segment(appKey) !== folder) return target;
  const hashed = HASHED.exec(file);
  if (hashed !== null) return hashedTarget(target, query, hashed, appKey);
  const address = addressOfFile(file);
  return address === null ? target : writeRequest(address);
}

/** Takes the value that was hashed from the query, and ignores everything else in the query. */
function hashedTarget(
  target: string,
  query: string,
  [, slug = "", field, name]: RegExpExecArray,
  appKey: string,
): string {
  const request = readRequest({ method: "GET", target: `/api/v1/${slug}?${query}`, appKey });
  const filters = request.kind === "request" ? request.parameters.filters : [];
  const meant = filters.find((filter) => filter.field === field && segment(filter.value) === name);
  return meant === undefined
    ? target
    : writeRequest({ kind: "filter", slug, field: field as string, value: meant.value });
}

export type FreeAnswer = { readonly address: Address; readonly body: string };
