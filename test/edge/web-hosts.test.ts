/**
 * `precast edge netlify` and `vercel`: neither can be run here. Their functions run in Node, which has the same Request
 * and Response, with a static host for the files.
 */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { asUri, proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";
import { openWebHost } from "../support/edge-web.ts";

/** Targets with dot segments: these hosts pass a URL, in which they are resolved, and answer for the resolved path. */
const isAltered = ({ target }: Vector) => /^[^?]*\/(\.|%2e){1,2}(\/|$)/i.test(target) || target.startsWith("//");

for (const [name, script] of [
  ["netlify", "netlify/edge-functions/precast.js"],
  ["vercel", "middleware.js"],
] as const) {
  proveEdge({
    name,
    start: async (site: EdgeSite) => {
      await site.place.json(`edge ${name} --origin ${site.origin.url} --write ${name}`);
      const made = join(site.place.folder, name, script);
      // Node takes a file outside of packages for CommonJS unless its name says otherwise; those hosts do not.
      renameSync(made, made.replace(/js$/, "mjs"));
      return openWebHost(made.replace(/js$/, "mjs"), site.out);
    },
    servedByOrigin: [],
    isAltered,
    forwardedAs: asUri,
  });
}
