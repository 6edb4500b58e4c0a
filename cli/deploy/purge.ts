/** Chooses from the settings how a CDN is purged of what has changed. */
import { runConcurrently } from "../../shared/async.ts";
import { ConfigError, type Settings } from "../../shared/config.ts";
import type { TreeFile } from "../../shared/tree.ts";
import { type Api, callApi, purgeCloudflare, purgeCloudfront, purgeFastly } from "./cdn.ts";
import { type CREDENTIAL_SETTINGS, credentialsIn, missingCredentials, type RetryPolicy } from "./http.ts";

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
type PurgeSettings = Settings<(typeof PURGE_SETTINGS)[number] | (typeof CREDENTIAL_SETTINGS)[number] | "concurrency">;

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

function openCloudflare(
  { purgeEndpoint: endpoint, cloudflareZone, cloudflareToken }: PurgeSettings,
  retryPolicy: RetryPolicy,
): Purge {
  const zone = need(cloudflareZone, "--cloudflare-zone is missing (or CLOUDFLARE_ZONE_ID in the environment)");
  const token = need(cloudflareToken, "CLOUDFLARE_API_TOKEN is missing in the environment");
  refuse(zone, token);
  const options = { endpoint, zone: zone.value, token: token.value };
  return (changed) => purgeCloudflare(changed, options, retryPolicy);
}

function openFastly(
  { purgeEndpoint: endpoint, fastlyService, fastlyToken }: PurgeSettings,
  retryPolicy: RetryPolicy,
): Purge {
  const service = need(fastlyService, "--fastly-service is missing (or FASTLY_SERVICE_ID in the environment)");
  const token = need(fastlyToken, "FASTLY_API_TOKEN is missing in the environment");
  refuse(service, token);
  const options = { endpoint, service: service.value, token: token.value };
  return (changed) => purgeFastly(changed, options, retryPolicy);
}

function openCloudfront(settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const missing = "--cloudfront-distribution is missing (or CLOUDFRONT_DISTRIBUTION_ID in the environment)";
  const distribution = need(settings.cloudfrontDistribution, missing);
  refuse(distribution, { value: "", problems: missingCredentials(settings) });
  const credentials = credentialsIn(settings);
  const options = { endpoint: settings.purgeEndpoint, distribution: distribution.value, credentials };
  return (changed) => purgeCloudfront(changed, options, retryPolicy);
}

function openTemplate(template: string, settings: PurgeSettings, retryPolicy: RetryPolicy): Purge {
  const { purgeMethod: method, purgeHeader, concurrency } = settings;
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*([\x20-\x7e]+)$/.exec(purgeHeader ?? "") ?? [];
  if (purgeHeader !== null && (name === undefined || value === undefined)) {
    throw new ConfigError(["PRECAST_PURGE_HEADER must be a header such as `AccessKey: …`."]);
  }
  if (!/\{(path|url)\}/.test(template)) {
    throw new ConfigError(["The URL of --purge must contain {path} or {url}: it is called for each changed request."]);
  }
  const header = name === undefined || value === undefined ? null : ([name, value] as const);
  return (changed) => purgeByTemplate(changed, { template, method, header, concurrency }, retryPolicy);
}

type Needed = { readonly value: string; readonly problems: readonly string[] };

function need(value: string | null, problem: string): Needed {
  return value === null ? { value: "", problems: [problem] } : { value, problems: [] };
}

function refuse(...needed: readonly Needed[]): void {
  const problems = needed.flatMap((one) => one.problems);
  if (problems.length > 0) throw new ConfigError(problems);
}

// Purges by calling a URL for each request whose answer has changed, as Varnish, nginx and many CDNs allow.

type TemplateOptions = {
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
