/** Purges Cloudflare's cache by tags. Source: Cloudflare API, "Purge cached content". */
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi, chunksOf, isJson } from "./api.ts";
import { changedTags } from "./changed-tags.ts";

/** Maximum number of tags per request. */
const MAX_TAGS = 100;

export type CloudflareOptions = { readonly endpoint: string | null; readonly zone: string; readonly token: string };

/** Returns the number of requests. */
export async function purgeCloudflare(
  changed: readonly TreeFile[],
  { endpoint, zone, token }: CloudflareOptions,
  retryPolicy: Api["retryPolicy"],
): Promise<number> {
  const base = endpoint ?? "https://api.cloudflare.com/client/v4";
  const url = new URL(`${base}/zones/${encodeURIComponent(zone)}/purge_cache`);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const api = { name: "Cloudflare", deniedHint: "CLOUDFLARE_API_TOKEN", missingHint: "--cloudflare-zone", retryPolicy };
  const batches = chunksOf(changedTags(changed), MAX_TAGS);
  for (const tags of batches) {
    const request = { method: "POST", url, headers, body: JSON.stringify({ tags }) };
    const isDone = (value: Readonly<Record<string, unknown>>) => value.success === true;
    await callApi(
      api,
      () => request,
      ({ status, body }) => status === 200 && isJson(body, isDone),
    );
  }
  return batches.length;
}
