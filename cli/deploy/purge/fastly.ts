/** Purges Fastly's cache by surrogate keys. Source: Fastly API, "Purge multiple surrogate key tags". */
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi, chunksOf, isJson } from "./api.ts";
import { changedTags } from "./changed-tags.ts";

/** Maximum number of surrogate keys per request. */
const MAX_KEYS = 256;

export type FastlyOptions = { readonly endpoint: string | null; readonly service: string; readonly token: string };

/** Returns the number of requests. */
export async function purgeFastly(
  changed: readonly TreeFile[],
  { endpoint, service, token }: FastlyOptions,
  retryPolicy: Api["retryPolicy"],
): Promise<number> {
  const url = new URL(`${endpoint ?? "https://api.fastly.com"}/service/${encodeURIComponent(service)}/purge`);
  const headers = { "fastly-key": token, "content-type": "application/json", accept: "application/json" };
  const api = { name: "Fastly", deniedHint: "FASTLY_API_TOKEN", missingHint: "--fastly-service", retryPolicy };
  const batches = chunksOf(changedTags(changed), MAX_KEYS);
  for (const keys of batches) {
    const request = { method: "POST", url, headers, body: JSON.stringify({ surrogate_keys: keys }) };
    await callApi(
      api,
      () => request,
      ({ status, body }) => status === 200 && isJson(body, () => true),
    );
  }
  return batches.length;
}
