/** Invalidates what CloudFront caches, by path. Source: Amazon CloudFront API Reference, CreateInvalidation. */
import { type Credentials, openSigner } from "../sign.ts";
import type { TreeFile } from "../tree-file.ts";
import { type Api, callApi } from "./api.ts";

/** Paths, and among them those that end in a wildcard, that may be under way at once. */
const MOST = 3_000;
const MOST_WILDCARDS = 15;
/** Paths cost money beyond a thousand a month: more files of a type than this are one wildcard. */
const FEW = 20;

export type CloudfrontOptions = {
  readonly endpoint: string | null;
  readonly distribution: string;
  readonly credentials: Credentials;
};

/** Gives the number of requests. */
export async function purgeCloudfront(
  changed: readonly TreeFile[],
  { endpoint, distribution, credentials }: CloudfrontOptions,
  patience: Api["patience"],
): Promise<number> {
  const base = endpoint ?? "https://cloudfront.amazonaws.com";
  const url = new URL(`${base}/2020-05-31/distribution/${encodeURIComponent(distribution)}/invalidation`);
  const sign = openSigner(credentials, { service: "cloudfront", region: "us-east-1" });
  // The same in all tries of this purge, and in no other.
  const body = batchXml(invalidationPaths(changed), `precast-${patience.now().toISOString()}-${process.pid}`);
  const request = { method: "POST", url, headers: { "content-type": "application/xml" }, body };
  const place = "--cloudfront-distribution";
  const api = { name: "CloudFront", proof: "AWS_ACCESS_KEY_ID and what it may do", place, patience };
  await callApi(
    api,
    () => sign(request, patience.now()),
    ({ status }) => status === 201,
  );
  return 1;
}

/**
 * The files, as a function at the edge asks for them, and every spelling of the requests that are for them. Sorted.
 */
export function invalidationPaths(changed: readonly TreeFile[]): string[] {
  const byType = new Map<string, string[]>();
  for (const { path } of changed) byType.set(wildcardOf(path), [...(byType.get(wildcardOf(path)) ?? []), `/${path}`]);
  const files = [...byType].flatMap(([wildcard, paths]) => (paths.length > FEW ? [wildcard] : paths));
  const requests = changed.map(({ type }) => `/api/v1/${type ?? "_schemas"}*`);
  const paths = [...new Set([...files, ...requests])].sort();
  const wildcards = paths.filter((path) => path.endsWith("*"));
  return paths.length > MOST || wildcards.length > MOST_WILDCARDS ? ["/*"] : paths;
}

/** Of the files of a type, and of the schemas of an app: `/s-atlas/v1/cities/*`. */
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
