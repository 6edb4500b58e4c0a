/** Lists the hosts that `precast edge` writes configurations for. */
import { caddyFiles } from "./caddy.ts";
import { cloudflareFiles } from "./cloudflare.ts";
import { cloudfrontFiles } from "./cloudfront.ts";
import type { Edge, EdgeFile, OriginRule } from "./edge.ts";
import { fastlyFiles } from "./fastly.ts";
import { netlifyFiles } from "./netlify.ts";
import { nginxFiles, nginxNjsFiles } from "./nginx.ts";
import { varnishFiles } from "./varnish.ts";
import { vercelFiles } from "./vercel.ts";

type Target = {
  readonly name: string;
  readonly describes: string;
  readonly origin: OriginRule;
  /** Whether the edge can send cache tags; no if absent. */
  readonly sendsTags?: boolean;
  /** Whether the edge fetches files from a static host, at `--tree-url`; no if absent. */
  readonly fetchesTree?: boolean;
  /** The first file contains the installation steps. Throws Error when the edge cannot be written for this host. */
  readonly files: (edge: Edge) => EdgeFile[];
};

export const TARGETS: readonly Target[] = [
  {
    name: "nginx",
    origin: "optional",
    describes: "nginx without modules: files with literal names, the rest from the origin",
    files: nginxFiles,
  },
  { name: "nginx-njs", origin: "optional", describes: "nginx with the njs module: all files", files: nginxNjsFiles },
  {
    name: "varnish",
    origin: "optional",
    fetchesTree: true,
    describes: "Varnish in front of a static host with the tree (--tree-url)",
    files: varnishFiles,
  },
  {
    name: "caddy",
    origin: "optional",
    describes: "Caddy without plugins: files with literal names, the rest from the origin",
    files: caddyFiles,
  },
  {
    name: "cloudflare",
    origin: "required",
    sendsTags: true,
    describes: "a Cloudflare Worker with the tree as static assets or in R2: all files",
    files: cloudflareFiles,
  },
  {
    name: "cloudfront",
    origin: "required",
    describes: "CloudFront functions for a tree in S3, with failover to the server: all files",
    files: cloudfrontFiles,
  },
  {
    name: "fastly",
    origin: "refused",
    fetchesTree: true,
    describes: "VCL for Fastly in front of a static host with the tree (--tree-url)",
    files: fastlyFiles,
  },
  {
    name: "netlify",
    origin: "required",
    describes: "a Netlify edge function, with the tree as the site: all files",
    files: netlifyFiles,
  },
  {
    name: "vercel",
    origin: "required",
    describes: "a Vercel middleware, with the tree as static files: all files",
    files: vercelFiles,
  },
];

/** Throws Error for an unknown name. */
export function findTarget(name: string): Target {
  const target = TARGETS.find((candidate) => candidate.name === name);
  if (target === undefined) throw new Error(`There is no target '${name}'. Targets:\n${describeTargets()}`);
  return target;
}

/** One line per target. */
export function describeTargets(): string {
  const width = Math.max(...TARGETS.map(({ name }) => name.length));
  return TARGETS.map(({ name, describes }) => `  ${name.padEnd(width)}  ${describes}`).join("\n");
}
