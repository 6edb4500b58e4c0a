/** `precast edge varnish`, with Debian's Varnish in front of a static host. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findProgram, freePort, type Running, startProgram } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import { openStatic } from "../support/edge-static.ts";

const VARNISH = findProgram("varnishd");

proveEdge({
  name: "varnish",
  start: startVarnish,
  passes: ["hashed", "roundabout"],
  skip: VARNISH === null,
});

async function startVarnish(site: EdgeSite): Promise<Running> {
  const tree = await openStatic(site.out);
  const home = join(site.place.folder, "varnish");
  await site.place.json(`edge varnish --origin ${site.origin.url} --tree-url ${tree.url} --write varnish`);
  mkdirSync(join(home, "work"));
  const port = await freePort();
  const limits = ["-p", "http_req_hdr_len=32k", "-p", "http_req_size=64k"];
  const where = ["-n", join(home, "work"), "-a", `127.0.0.1:${port}`, "-f", join(home, "precast.vcl")];
  const varnish = await startProgram(VARNISH as string, ["-F", "-j", "none", ...limits, ...where], port, home);
  const stop = async () => {
    await varnish.stop();
    await tree.stop();
  };
  return { url: varnish.url, stop };
}
