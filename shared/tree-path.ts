/**
 * Reads paths of the tree as requests: a CDN that asks a bucket first, and this server when the bucket has no such file,
 * asks both for the same path. The path says what is meant, so that no query can have one file cached as another; but a
 * hash says nothing, and there the query must say what was hashed. Source: contract.md section 8.
 */
import { addressOfFile, requestOf, segment } from "./address.ts";
import { readRequest } from "./request.ts";

/** Nothing that has a meaning of its own in a path or a query. */
const TREE_PATH = /^\/([shx]-[a-z0-9_-]+)\/v1\/([a-z0-9_/-]+\.json)(?:\?(.*))?$/s;
const HASHED = /^([a-z0-9_-]+)\/filter\/([a-z0-9_]+)\/(h-[0-9a-f]{64})\.json$/;

/**
 * `/s-atlas/v1/cities/page/2.json` is `/api/v1/cities?page=2`, for who sends the key of that folder. Every other target
 * stays as it is, and what is a path of the tree then leads nowhere.
 */
export function targetOfTreePath(target: string, appKey: string | undefined): string {
  const [, folder, file = "", query = ""] = TREE_PATH.exec(target) ?? [];
  if (folder === undefined || appKey === undefined || segment(appKey) !== folder) return target;
  const hashed = HASHED.exec(file);
  if (hashed !== null) return hashedTarget(target, query, hashed, appKey);
  const address = addressOfFile(file);
  return address === null ? target : requestOf(address);
}

/** The query says what was hashed, and nothing else that it says counts. */
function hashedTarget(
  target: string,
  query: string,
  [, slug = "", field, name]: RegExpExecArray,
  appKey: string,
): string {
  const request = readRequest({ method: "GET", target: `/api/v1/${slug}?${query}`, appKey });
  const filters = request.kind === "request" ? request.asked.filters : [];
  const meant = filters.find((filter) => filter.field === field && segment(filter.value) === name);
  return meant === undefined ? target : requestOf({ kind: "filter", slug, field: field as string, value: meant.value });
}
