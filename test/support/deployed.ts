/** What a deploy must leave behind, read out of the store without Precast's own client. */
import { existsSync } from "node:fs";
import { type Deployed, type DeployOptions, deployTree } from "../../cli/deploy/deploy.ts";
import type { Patience } from "../../cli/deploy/exchange.ts";
import { openTarget, type Target } from "../../cli/deploy/store/target.ts";
import { readTree } from "./cli.ts";
import type { S3 } from "./s3.ts";

/** Clients' files below a prefix, by path relative to it. */
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

/** What else is there: Precast's own. */
export function notesOf(s3: S3, prefix = "api"): string[] {
  return [...s3.objects.keys()].filter((key) => key.startsWith(`${prefix}/.precast/`)).sort();
}

/** How the files of a store differ from a tree: none when they are the same to the byte. */
export function differencesOf(files: ReadonlyMap<string, string>, out: string): string[] {
  const tree = existsSync(out) ? readTree(out) : new Map<string, string>();
  const paths = [...new Set([...files.keys(), ...tree.keys()])].sort();
  return paths.flatMap((path) => {
    if (!files.has(path)) return [`missing: ${path}`];
    if (!tree.has(path)) return [`surplus: ${path}`];
    return files.get(path) === tree.get(path) ? [] : [`differs: ${path}`];
  });
}

export function targetIn(s3: S3, out: string, patience: Patience): Target {
  const { accessKeyId, secretAccessKey } = s3.keys;
  const reached = { endpoint: s3.url, region: s3.env.AWS_REGION ?? null, pathStyle: true, concurrency: 4 };
  const settings = { ...patience, ...reached, accessKeyId, secretAccessKey, sessionToken: null, out };
  return openTarget("s3://content/api", settings, patience);
}

/** A deploy in this process, which is sooner done than one of its own. */
export function deployHere(
  s3: S3,
  out: string,
  options: Partial<DeployOptions> = {},
  now: () => Date = () => new Date(),
  retries = 2,
): Promise<Deployed> {
  return deployTree(targetIn(s3, out, { timeout: 30, retries, now }), {
    ...{ out, dryRun: false, force: false, maxDelete: 256, concurrency: 4, permit: () => {} },
    ...{ cacheControl: "max-age=60", cdnCacheControl: "max-age=3600" },
    ...options,
  });
}
