/** `precast edge cloudfront` for more apps than fit into a function: in the same stand-in, with the same requests. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EDGE_KEYS } from "../support/edge-apps.ts";
import { openCloudfront } from "../support/edge-cloudfront.ts";
import { proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";

const MANY = Array.from({ length: 500 }, (_, index) => `app-${index}-of-many`);

let made: { readonly size: number; readonly setup: string } | null = null;

proveEdge({
  name: "cloudfront with many apps",
  serveOptions: "--tree-paths",
  start: async (site: EdgeSite) => {
    const apps = [...EDGE_KEYS, ...MANY].join(" ");
    await site.place.json(`edge cloudfront --app ${apps} --origin ${site.origin.url} --write cloudfront`);
    const folder = join(site.place.folder, "cloudfront");
    made = {
      size: statSync(join(folder, "viewer-request.js")).size,
      setup: readFileSync(join(folder, "setup.txt"), "utf8"),
    };
    return openCloudfront(folder, site.out, site.origin.url);
  },
  servedByOrigin: [],
  hasOwnErrorPage: true,
  // CloudFront itself refuses URLs above 8,192 bytes (its quotas).
  isAltered: ({ target }) => target.length > 8_192,
  refuses: ({ target }) => !target.startsWith("/api/"),
  forwardedAs: null,
});

test("the function is below CloudFront's size limit, and setup.txt says that it knows no keys", () => {
  expect(made?.size).toBeLessThan(10_240);
  expect(made?.setup).toContain("it looks into the folder of whatever key is sent");
});
