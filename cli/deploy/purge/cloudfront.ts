/** Purges CloudFront's cache by path. Source: Amazon CloudFront API Reference, CreateInvalidation. */
import { type Credentials, openSigner } from "../sign.ts";
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi } from "./api.ts";

/** CloudFront's limits for invalidations in progress: all paths, and those of them that end in a wildcard. */
const MAX_PATHS = 3_000;
const MAX_WILDCARDS = 15;
/** More changed files of a type than this become one wildcard: paths cost money beyond 1,000 a month. */
const MAX_FILES_OF_TYPE = 20;

export type CloudfrontOptions = {
  readonly endpoint: string | null;
  readonly distribution: string;
  readonly credentials: Credentials;
};

/** Returns the number of requests. */
export async function purgeCloudfront(
  changed: readonly TreeFile[],
  { endpoint, distribution, credentials }: CloudfrontOptions,
  retryPolicy: Api["retryPolicy"],
): Promise<number> {
  const base = endpoint ?? "https://cloudfront.amazonaws.com";
  const url = new URL(`${base}/2020-05-31/distribution/${encodeURIComponent(distribution)}/invalidation`);
  const sign = openSigner(credentials, { service: "cloudfront", region: "us-east-1" });
  // The caller reference: the same in all tries of this purge, different in every other purge.
  const body = batchXml(invalidationPaths(changed), `precast-${retryPolicy.now().toISOString()}-${process.pid}`);
  const request = { method: "POST", url, headers: { "content-type": "application/xml" }, body };
  const missingHint = "--cloudfront-distribution";
  const api = { name: "CloudFront", deniedHint: "AWS_ACCESS_KEY_ID and its permissions", missingHint, retryPolicy };
  await callApi(
    api,
    () => sign(request, retryPolicy.now()),
    ({ status }) => status === 201,
  );
  return 1;
}

/**
 * Paths to invalidate, sorted: the files, which the edge function requests by their path in the tree, and wildcards
 * that cover every spelling of the API requests for them. `/*` alone when there are too many.
 */
export function invalidationPaths(changed: readonly TreeFile[]): string[] {
  const byType = new Map<string, string[]>();
  for (const { path } of changed) byType.set(wildcardOf(path), [...(byType.get(wildcardOf(path)) ?? []), pathOf(path)]);
  const files = [...byType].flatMap(([wildcard, paths]) => (paths.length > MAX_FILES_OF_TYPE ? [wildcard] : paths));
  const requests = changed.map(({ type }) => `/api/v1/${type ?? "_schemas"}*`);
  const paths = [...new Set([...files, ...requests])].sort();
  const wildcards = paths.filter((path) => path.endsWith("*"));
  return paths.length > MAX_PATHS || wildcards.length > MAX_WILDCARDS ? ["/*"] : paths;
}

/** A file whose name is a hash is requested with the filter in its query, which a path without a wildcard does not cover. */
function pathOf(path: string): string {
  return /\/h-[0-9a-f]{64}\.json$/.test(path) ? `/${path}*` : `/${path}`;
}

/** The path that covers all files of a type, or catalog and schemas of an app: `/s-atlas/v1/cities*`. */
function wildcardOf(path: string): string {
  const [app, version, first = ""] = path.split("/");
  return `/${app}/${version}/${first.replace(/\.json$/, "")}*`;
}

function batchXml(paths: readonly string[], reference: string): string {
  const items = paths.map((path) => `<Path>${path.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</Path>`).join("");
  const list = `<Paths><Quantity>${paths.length}</Quantity><Items>${items}</Items></Paths>`;
  const name = `<CallerReference>${reference}</CallerReference>`;
  return `<InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">${list}${name}</InvalidationBatch>`;
}
