/**
 * Lists the narrowest tags of the changed files. Answers that no file holds, such as a page after the last, have the
 * tag of their type, so purging it purges them too.
 */
import { ownTag } from "../../shared/api/answer.ts";
import type { TreeFile } from "../../shared/tree.ts";
import {
  type Credentials,
  exchange,
  isRetryableStatus,
  type OutgoingRequest,
  openSigner,
  type Received,
  RemoteFault,
  type RetryPolicy,
  type Verdict,
} from "./http.ts";

function changedTags(changed: readonly TreeFile[]): string[] {
  const tags = changed.flatMap(({ app, type }) => (app === null ? [] : [ownTag(app, type)]));
  return [...new Set(tags)].sort();
}

// Calls the API of a CDN and turns its refusals into faults.

export type Api = {
  /** For messages. */
  readonly name: string;
  /** What the user should check when the API denies access. */
  readonly deniedHint: string;
  /** What the user should check when the API answers 404. */
  readonly missingHint: string;
  readonly retryPolicy: RetryPolicy;
};

/** Resolves when `isDone` accepts the response. Throws RemoteFault. */
export async function callApi(
  api: Api,
  make: () => OutgoingRequest | Promise<OutgoingRequest>,
  isDone: (received: Received) => boolean,
): Promise<void> {
  await exchange(
    make,
    (received) => (isDone(received) ? { done: null } : readRefusal(received, api)),
    api.name,
    api.retryPolicy,
  );
}

function readRefusal(received: Received, { name, deniedHint, missingHint }: Api): Verdict<null> {
  const { status } = received;
  const description = `${status}${errorMessageIn(received.body.toString("utf8", 0, 2_048))}`;
  const fault = (message: string) => ({ fault: new RemoteFault(message), isRetryable: false });
  if (status === 401 || status === 403) return fault(`${name} denies access (${description}). Check ${deniedHint}.`);
  if (status === 404) return fault(`${name} cannot find the resource to purge (${description}). Check ${missingHint}.`);
  if (isRetryableStatus(status) || received.body.includes("TooManyInvalidationsInProgress")) {
    return {
      fault: new RemoteFault(`${name} is overloaded or failing (${description}). Try again later.`),
      isRetryable: true,
    };
  }
  return fault(`${name} refused the purge (${description}).`);
}

/** The error message in a JSON or XML response, after a colon; empty if there is none. */
function errorMessageIn(text: string): string {
  const why =
    /"(?:message|msg|detail)"\s*:\s*"([^"]{1,200})"/.exec(text)?.[1] ?? /<Message>([^<]{1,200})</.exec(text)?.[1];
  return why === undefined ? "" : `: ${why}`;
}

/** Whether a body is a JSON object or array for which `holds` is true. */
function isJson(body: Buffer, holds: (value: Readonly<Record<string, unknown>>) => boolean): boolean {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && holds(value as Record<string, unknown>);
  } catch {
    return false;
  }
}

function chunksOf<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, index) => all.slice(index * size, (index + 1) * size));
}

// Purges Cloudflare's cache by tags. Source: Cloudflare API, "Purge cached content".

/** Maximum number of tags per request. */
const MAX_TAGS = 100;

type CloudflareOptions = { readonly endpoint: string | null; readonly zone: string; readonly token: string };

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

// Purges Fastly's cache by surrogate keys. Source: Fastly API, "Purge multiple surrogate key tags".

/** Maximum number of surrogate keys per request. */
const MAX_KEYS = 256;

type FastlyOptions = { readonly endpoint: string | null; readonly service: string; readonly token: string };

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

// Purges CloudFront's cache by path. Source: Amazon CloudFront API Reference, CreateInvalidation.

/** CloudFront's limits for invalidations in progress: all paths, and those of them that end in a wildcard. */
const MAX_PATHS = 3_000;
const MAX_WILDCARDS = 15;
/** More changed files of a type than this become one wildcard: paths cost money beyond 1,000 a month. */
const MAX_FILES_OF_TYPE = 20;

type CloudfrontOptions = {
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
  for (const { path } of changed)
    byType.set(writeWildcard(path), [...(byType.get(writeWildcard(path)) ?? []), encodePath(path)]);
  const files = [...byType].flatMap(([wildcard, paths]) => (paths.length > MAX_FILES_OF_TYPE ? [wildcard] : paths));
  const requests = changed.map(({ type }) => `/api/v1/${type ?? "_schemas"}*`);
  const paths = [...new Set([...files, ...requests])].sort();
  const wildcards = paths.filter((path) => path.endsWith("*"));
  return paths.length > MAX_PATHS || wildcards.length > MAX_WILDCARDS ? ["/*"] : paths;
}

/** A file whose name is a hash is requested with the filter in its query, which a path without a wildcard does not cover. */
function encodePath(path: string): string {
  return /\/h-[0-9a-f]{64}\.json$/.test(path) ? `/${path}*` : `/${path}`;
}

/** The path that covers all files of a type, or catalog and schemas of an app: `/s-atlas/v1/cities*`. */
function writeWildcard(path: string): string {
  const [app, version, first = ""] = path.split("/");
  return `/${app}/${version}/${first.replace(/\.json$/, "")}*`;
}

function batchXml(paths: readonly string[], reference: string): string {
  const items = paths.map((path) => `<Path>${path.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</Path>`).join("");
  const list = `<Paths><Quantity>${paths.length}</Quantity><Items>${items}</Items></Paths>`;
  const name = `<CallerReference>${reference}</CallerReference>`;
  return `<InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">${list}${name}</InvalidationBatch>`;
}
