/** Deploys in the test's own process, and reads what a deploy left in the store without Precast's own client. */
import { existsSync } from "node:fs";
import { type Deployed, type DeployOptions, deployTree } from "../../cli/deploy/deploy.ts";
import type { RetryPolicy } from "../../cli/deploy/http.ts";
import { openTarget, type Target } from "../../cli/deploy/target.ts";
import { segment } from "../../shared/api/address.ts";
import { readTree } from "./cli.ts";
import type { S3 } from "./s3.ts";

/** The files for clients below a prefix, by path relative to it. */
export function filesOf(s3: S3, prefix = "api"): Map<string, string> {
  const files = [...s3.objects].filter(
    ([key]) => key.startsWith(`${prefix}/`) && !key.startsWith(`${prefix}/.precast/`),
  );
  return new Map(
    files.map(([key, { bytes }]) => [key.slice(prefix.length + 1), bytes.toString("utf8")]).sort() as [
      string,
      string,
    ][],
  );
}

/** The key of a file that Precast keeps for itself of an app. */
export function noteOf(name: string, app = "shop", prefix = "api"): string {
  return `${prefix}/.precast/${segment(app)}/${name}`;
}

/** The keys of Precast's own files below a prefix, after deploys of these apps that are done. */
export function internalFilesAfter(apps: readonly string[], prefix = "api"): string[] {
  const own = apps.flatMap((app) => [noteOf("manifest.json", app, prefix), `${prefix}/.precast/${segment(app)}.json`]);
  return [`${prefix}/.precast/manifest.json`, ...own].sort();
}

/** The keys of Precast's own files below a prefix. */
export function internalFilesOf(s3: S3, prefix = "api"): string[] {
  return [...s3.objects.keys()].filter((key) => key.startsWith(`${prefix}/.precast/`)).sort();
}

/** The differences between the files of a store and a tree; empty when they are the same byte for byte. */
export function differencesOf(files: ReadonlyMap<string, string>, out: string): string[] {
  const tree = existsSync(out) ? readTree(out) : new Map<string, string>();
  const paths = [...new Set([...files.keys(), ...tree.keys()])].sort();
  return paths.flatMap((path) => {
    if (!files.has(path)) return [`missing: ${path}`];
    if (!tree.has(path)) return [`surplus: ${path}`];
    return files.get(path) === tree.get(path) ? [] : [`differs: ${path}`];
  });
}

export function targetIn(s3: S3, out: string, retryPolicy: RetryPolicy): Target {
  const { accessKeyId, secretAccessKey } = s3.keys;
  const reached = { endpoint: s3.url, region: s3.env.AWS_REGION ?? null, pathStyle: true, concurrency: 4 };
  const settings = { ...retryPolicy, ...reached, accessKeyId, secretAccessKey, sessionToken: null, out };
  return openTarget("s3://content/api", settings, retryPolicy);
}

/** Deploys in this process, which is faster than starting the program. */
export function deployInProcess(
  s3: S3,
  out: string,
  options: Partial<DeployOptions> = {},
  now: () => Date = () => new Date(),
  retries = 2,
): Promise<Deployed> {
  return deployTree(targetIn(s3, out, { timeout: 30, retries, now }), {
    ...{
      out,
      dryRun: false,
      force: false,
      allowOlder: true,
      allowLocalMedia: true,
      maxDelete: 256,
      concurrency: 4,
      throwIfStopped: () => {},
    },
    ...{ cacheControl: "max-age=60", cdnCacheControl: "max-age=3600" },
    ...options,
  });
}
