/**
 * Translates paths of the tree to requests, for a CDN that asks a bucket first and this server, with the same path,
 * when the bucket lacks the file. The path decides what is answered, so that no query string can make the CDN cache one
 * file as another. Only a hash hides its value: the query must then contain it. Source: contract.md section 8.
 */
import { addressOfFile, requestOf, segment } from "./address.ts";
import { readRequest } from "./request.ts";

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
  return address === null ? target : requestOf(address);
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
  return meant === undefined ? target : requestOf({ kind: "filter", slug, field: field as string, value: meant.value });
}
