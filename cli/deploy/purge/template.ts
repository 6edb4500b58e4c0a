/** Purges by calling a URL for each request whose answer has changed, as Varnish, nginx and many CDNs allow. */
import { runConcurrently } from "../concurrency.ts";
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi } from "./api.ts";

export type TemplateOptions = {
  /** URL with `{path}` (path and query), `{url}` (the same, encoded as a parameter value) and `{key}` (the app key). */
  readonly template: string;
  readonly method: string;
  readonly header: readonly [name: string, value: string] | null;
  readonly concurrency: number;
};

/** Returns the number of requests. Files without a known request are skipped. 404 (not in the cache) is a success. */
export async function purgeByTemplate(
  changed: readonly TreeFile[],
  { template, method, header, concurrency }: TemplateOptions,
  retryPolicy: Api["retryPolicy"],
): Promise<number> {
  const name = new URL(fill(template, "", "/")).host;
  const api = { name, deniedHint: "PRECAST_PURGE_HEADER", missingHint: "--purge", retryPolicy };
  let requests = 0;
  await runConcurrently(changed, concurrency, async ({ app, request }) => {
    if (app === null || request === null) return;
    const url = new URL(fill(template, app, request));
    const headers = { "x-app-key": app, ...(header === null ? {} : { [header[0]]: header[1] }) };
    await callApi(
      api,
      () => ({ method, url, headers }),
      ({ status }) => status < 300 || status === 404,
    );
    requests += 1;
  });
  return requests;
}

function fill(template: string, app: string, path: string): string {
  const values: Readonly<Record<string, string>> = {
    path,
    url: encodeURIComponent(path),
    key: encodeURIComponent(app),
  };
  return template.replace(/\{(path|url|key)\}/g, (_, name: string) => values[name] ?? "");
}
