/** Purges a CDN of what a deploy has changed: by tags, by paths, or by calling a URL for each changed request. */
import * as z from "zod";
import { ownTag } from "../../shared/api/answer.ts";
import { runConcurrently } from "../../shared/async.ts";
import { ConfigError, type Settings } from "../../shared/config.ts";
import { parseJson } from "../../shared/settings/zod.ts";
import type { TreeFile } from "../../shared/tree-file.ts";
import {
  type CREDENTIAL_SETTINGS,
  credentialsIn,
  exchange,
  type Fault,
  isRetryableStatus,
  makeFault,
  missingCredentials,
  type OutgoingRequest,
  overloadedFault,
  type Received,
  type RetryPolicy,
} from "./http.ts";
import { openSigner } from "./signature.ts";

export const PURGE_SETTINGS = [
  "purge",
  "purgeMethod",
  "purgeHeader",
  "purgeEndpoint",
  "cloudflareZone",
  "cloudflareToken",
  "fastlyService",
  "fastlyToken",
  "cloudfrontDistribution",
] as const;
export type PurgeSettings = Settings<
  (typeof PURGE_SETTINGS)[number] | (typeof CREDENTIAL_SETTINGS)[number] | "concurrency"
>;

/** Returns the number of requests. Throws RemoteFault. */
export type Purge = (changed: readonly TreeFile[]) => Promise<number>;

/** Null when no CDN is configured. Throws ConfigError for missing or invalid settings; sends nothing itself. */
export function openPurge(settings: PurgeSettings, retryPolicy: RetryPolicy): Purge | null {
  switch (settings.purge) {
    case null:
      return null;
    case "cloudflare":
      return openCloudflare(settings, retryPolicy);
    case "fastly":
      return openFastly(settings, retryPolicy);
    case "cloudfront":
      return openCloudfront(settings, retryPolicy);
    default:
      return openTemplate(settings.purge, settings, retryPolicy);
  }
}

/** The problems of settings that are missing: pairs of a value and what to say when it is null. */
function missingSettings(...needed: readonly (readonly [value: string | null, problem: string])[]): string[] {
  return needed.flatMap(([value, problem]) => (value === null ? [problem] : []));
}

// Calls the API of a CDN and turns its refusals into faults.

type Api = {
  /** For messages. */
  readonly name: string;
  /** What the user should check when the API denies access, and when it answers 404. */
  readonly deniedHint: string;
  readonly missingHint: string;
  readonly retryPolicy: RetryPolicy;
};

/** Resolves when `isDone` accepts the response. Throws RemoteFault. */
async function callApi(api: Api, make: () => OutgoingRequest, isDone: (received: Received) => boolean): Promise<void> {
  const judge = (received: Received) => (isDone(received) ? { done: null } : readRefusal(received, api));
  await exchange(make, judge, api.name, api.retryPolicy);
}

function readRefusal({ status, body }: Received, { name, deniedHint, missingHint }: Api): Fault {
  const description = `${status}${errorMessageIn(body.toString("utf8", 0, 2_048))}`;
  if (status === 401 || status === 403)
    return makeFault(`${name} denies access (${description}). Check ${deniedHint}.`);
  if (status === 404)
    return makeFault(`${name} cannot find the resource to purge (${description}). Check ${missingHint}.`);
  if (isRetryableStatus(status) || body.includes("TooManyInvalidationsInProgress"))
    return overloadedFault(name, description, true);
  return makeFault(`${name} refused the purge (${description}).`);
}

/** The error message in a JSON or XML response, after a colon; empty if there is none. */
function errorMessageIn(text: string): string {
  const why =
    /"(?:message|msg|detail)"\s*:\s*"([^"]{1,200})"/.exec(text)?.[1] ?? /<Message>([^<]{1,200})</.exec(text)?.[1];
  return why === undefined ? "" : `: ${why}`;
}

// By tags. Answers that no file holds, such as a page after the last, have the tag of their type, so purging it purges
// them too.

/** Source: Cloudflare API, "Purge cached content". */
function openCloudflare(settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const { purgeEndpoint, cloudflareZone: zone, cloudflareToken: token } = settings;
  if (zone === null || token === null) {
    const noZone = "--cloudflare-zone is missing (or CLOUDFLARE_ZONE_ID in the environment)";
    throw new ConfigError(
      missingSettings([zone, noZone], [token, "CLOUDFLARE_API_TOKEN is missing in the environment"]),
    );
  }
  const base = purgeEndpoint ?? "https://api.cloudflare.com/client/v4";
  const api = { name: "Cloudflare", deniedHint: "CLOUDFLARE_API_TOKEN", missingHint: "--cloudflare-zone", retryPolicy };
  return purgeByTags(api, {
    url: new URL(`${base}/zones/${encodeURIComponent(zone)}/purge_cache`),
    headers: { authorization: `Bearer ${token}` },
    most: 100,
    member: "tags",
    answer: z.object({ success: z.literal(true) }),
  });
}

/** Source: Fastly API, "Purge multiple surrogate key tags". */
function openFastly(settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const { purgeEndpoint, fastlyService: service, fastlyToken: token } = settings;
  if (service === null || token === null) {
    const noService = "--fastly-service is missing (or FASTLY_SERVICE_ID in the environment)";
    throw new ConfigError(
      missingSettings([service, noService], [token, "FASTLY_API_TOKEN is missing in the environment"]),
    );
  }
  const base = purgeEndpoint ?? "https://api.fastly.com";
  const api = { name: "Fastly", deniedHint: "FASTLY_API_TOKEN", missingHint: "--fastly-service", retryPolicy };
  return purgeByTags(api, {
    url: new URL(`${base}/service/${encodeURIComponent(service)}/purge`),
    headers: { "fastly-key": token, accept: "application/json" },
    most: 256,
    member: "surrogate_keys",
    answer: z.looseObject({}),
  });
}

type TagRequest = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Maximum number of tags per request. */
  readonly most: number;
  /** The name of the list of tags in the body. */
  readonly member: string;
  /** What a successful response contains. */
  readonly answer: z.ZodType;
};

function purgeByTags(api: Api, { url, headers, most, member, answer }: TagRequest): Purge {
  return async (changed) => {
    const tags = [...new Set(changed.flatMap(({ app, type }) => (app === null ? [] : [ownTag(app, type)])))].sort();
    let requests = 0;
    for (; requests * most < tags.length; requests++) {
      const body = JSON.stringify({ [member]: tags.slice(requests * most, (requests + 1) * most) });
      const request = { method: "POST", url, headers: { ...headers, "content-type": "application/json" }, body };
      await callApi(
        api,
        () => request,
        ({ status, body }) => status === 200 && parseJson(body.toString("utf8"), answer) !== null,
      );
    }
    return requests;
  };
}

// By paths. Source: Amazon CloudFront API Reference, CreateInvalidation.

/** CloudFront's limits for invalidations in progress: all paths, and those of them that end in a wildcard. */
const MAX_PATHS = 3_000;
const MAX_WILDCARDS = 15;
/** More changed files of a type than this become one wildcard: paths cost money beyond 1,000 a month. */
export const MAX_FILES_OF_TYPE = 20;

function openCloudfront(settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const { purgeEndpoint, cloudfrontDistribution: distribution } = settings;
  const none = "--cloudfront-distribution is missing (or CLOUDFRONT_DISTRIBUTION_ID in the environment)";
  const problems = [...missingSettings([distribution, none]), ...missingCredentials(settings)];
  if (distribution === null || problems.length > 0) throw new ConfigError(problems);
  const base = purgeEndpoint ?? "https://cloudfront.amazonaws.com";
  const url = new URL(`${base}/2020-05-31/distribution/${encodeURIComponent(distribution)}/invalidation`);
  const sign = openSigner(credentialsIn(settings), { service: "cloudfront", region: "us-east-1" });
  const deniedHint = "AWS_ACCESS_KEY_ID and its permissions";
  const api = { name: "CloudFront", deniedHint, missingHint: "--cloudfront-distribution", retryPolicy };
  return async (changed) => {
    // The caller reference: the same in all tries of this purge, different in every other purge.
    const reference = `precast-${retryPolicy.now().toISOString()}-${process.pid}`;
    const body = writeBatch(invalidationPaths(changed), reference);
    const request = { method: "POST", url, headers: { "content-type": "application/xml" }, body };
    await callApi(
      api,
      () => sign(request, retryPolicy.now()),
      ({ status }) => status === 201,
    );
    return 1;
  };
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

function writeBatch(paths: readonly string[], reference: string): string {
  const items = paths.map((path) => `<Path>${path.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</Path>`).join("");
  const list = `<Paths><Quantity>${paths.length}</Quantity><Items>${items}</Items></Paths>`;
  const name = `<CallerReference>${reference}</CallerReference>`;
  return `<InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">${list}${name}</InvalidationBatch>`;
}

// By calling a URL for each request whose answer has changed, as Varnish, nginx and many CDNs allow.

/**
 * `template` is a URL with `{path}` (path and query), `{url}` (the same, encoded as a parameter value) and `{key}` (the app
 * key). Files without a known request are skipped. 404 (not in the cache) is a success.
 */
function openTemplate(template: string, settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const { purgeMethod: method, purgeHeader, concurrency } = settings;
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*([\x20-\x7e]+)$/.exec(purgeHeader ?? "") ?? [];
  if (purgeHeader !== null && (name === undefined || value === undefined)) {
    throw new ConfigError(["PRECAST_PURGE_HEADER must be a header such as `AccessKey: …`."]);
  }
  if (!/\{(path|url)\}/.test(template)) {
    throw new ConfigError(["The URL of --purge must contain {path} or {url}: it is called for each changed request."]);
  }
  const header = name === undefined || value === undefined ? {} : { [name]: value };
  return async (changed) => {
    const { host } = new URL(fill(template, "", "/"));
    const api = { name: host, deniedHint: "PRECAST_PURGE_HEADER", missingHint: "--purge", retryPolicy };
    let requests = 0;
    await runConcurrently(changed, concurrency, async ({ app, request }) => {
      if (app === null || request === null) return;
      const url = new URL(fill(template, app, request));
      await callApi(
        api,
        () => ({ method, url, headers: { "x-app-key": app, ...header } }),
        ({ status }) => status < 300 || status === 404,
      );
      requests += 1;
    });
    return requests;
  };
}

function fill(template: string, app: string, path: string): string {
  const values: Readonly<Record<string, string>> = {
    path,
    url: encodeURIComponent(path),
    key: encodeURIComponent(app),
  };
  return template.replace(/\{(path|url|key)\}/g, (_, name: string) => values[name] ?? "");
}
