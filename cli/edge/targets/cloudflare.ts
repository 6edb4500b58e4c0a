/** Writes a Cloudflare Worker with the mapping core. The files are static assets or objects in R2. */
import type { Edge, EdgeFile } from "../edge.ts";
import { readCore, readHost, webValues, writeScript } from "../script.ts";

export function cloudflareFiles(edge: Edge): EdgeFile[] {
  const fileAccess = readHost(edge.policy.tagged ? "cloudflare-tagged" : "cloudflare-plain");
  const parts = [readHost("cloudflare"), fileAccess, readHost("web"), readCore()];
  return [
    { name: "worker.js", text: writeScript(HEAD, webValues(edge), parts) },
    { name: "wrangler.toml", text: wrangler(edge) },
  ];
}

const HEAD = [
  "The files of a Precast tree from Cloudflare, everything else from `precast serve`. Made by `precast edge cloudflare`.",
  "",
  "To put it in place:",
  "  1. wrangler.toml beside this file names the tree as static assets: up to 20,000 files on the free plan, 100,000 on paid",
  "     ones, each up to 25 MiB. A larger tree goes into an R2 bucket: change the lines in wrangler.toml that say so.",
  "  2. npx wrangler deploy; with assets again after each build.",
  "  3. Give the Worker the route of your API: api.example.com/*",
  "When an app is added, make it again.",
  "",
  "Keep the Worker in front: Cloudflare's cache itself looks at neither X-App-Key nor Vary. ETags are the origin's own.",
  "A Worker cannot send on dot segments and backslashes in a path as they came: of those it says 404 itself, as the origin",
  "does. Where URLs are normalised before the Worker sees them, as a zone's settings may say, what they lead to is answered.",
];

function wrangler({ out }: Edge): string {
  return `# Made by \`precast edge cloudflare\`. Installation steps are at the top of worker.js.
name = "precast"
main = "worker.js"
compatibility_date = "2025-09-01"

# The Worker comes first: nothing of the tree is served but by it, and nothing of its .precast folder at all.
[assets]
directory = ${JSON.stringify(out)}
binding = "ASSETS"
run_worker_first = true
html_handling = "none"
not_found_handling = "none"

# For a tree in R2 take these lines in place of [assets]:
# [[r2_buckets]]
# binding = "TREE"
# bucket_name = "precast"
`;
}
