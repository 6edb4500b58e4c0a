/** `precast edge caddy`, with Debian's Caddy. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram, freePort, type Running, startProgram } from "../support/edge-program.ts";
import { asUri, proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";

const CADDY = findProgram("caddy");

proveEdge({
  name: "caddy",
  start: startCaddy,
  servedByOrigin: ["encoded", "named", "hashed", "roundabout"],
  // Caddy answers a path that it cannot decode with 400 itself.
  refuses: ({ target }) => /^\/api\/v1\/(%zz|posts\/%|posts%)$/.test(target),
  forwardedAs: asUri,
  forwardsAcceptEncoding: true,
  skip: CADDY === null,
});

async function startCaddy(site: EdgeSite): Promise<Running> {
  const home = join(site.place.folder, "caddy");
  await site.place.json(`edge caddy --origin ${site.origin.url} --write caddy`);
  const made = join(home, "Caddyfile");
  const port = await freePort();
  const text = readFileSync(made, "utf8").replace(":80 {", `:${port} {\n\tbind 127.0.0.1`);
  writeFileSync(made, `{\n\tadmin off\n\tauto_https off\n}\n${text}`);
  return startProgram(CADDY as string, ["run", "--config", made, "--adapter", "caddyfile"], port, home);
}
