/** Calls an address for each request whose answer has changed: what Varnish, nginx and many CDNs take. */
import { sideBySide } from "../side-by-side.ts";
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi } from "./api.ts";

export type TemplateOptions = {
  /** With `{path}` (path and query), `{url}` (the same as the value of a parameter) and `{key}` (the app's). */
  readonly template: string;
  readonly method: string;
  readonly header: readonly [name: string, value: string] | null;
  readonly concurrency: number;
};

/** Gives the number of requests. One that the cache does not have is purged. */
export async function purgeByTemplate(
  changed: readonly TreeFile[],
  { template, method, header, concurrency }: TemplateOptions,
  patience: Api["patience"],
): Promise<number> {
  const name = new URL(fill(template, "", "/")).host;
  const api = { name, proof: "PRECAST_PURGE_HEADER", place: "--purge", patience };
  let requests = 0;
  await sideBySide(changed, concurrency, async ({ app, request }) => {
    if (app === null || request === null) return;
    const url = new URL(fill(template, app, request));
    const headers = { "x-app-key": app, ...(header === null ? {} : { [header[0]]: header[1] }) };
    await callApi(
      api,
      () => ({ method, url, headers }),
      ({ status }) => (status >= 200 && status < 300) || status === 404,
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
