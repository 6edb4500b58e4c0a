/** `precast edge nginx` and `nginx-njs`, with Debian's nginx and its njs module. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startNginxWith } from "../support/edge-nginx.ts";
import { findNginxModule, findProgram, type Running } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";

const NGINX = findProgram("nginx");
const NJS = findNginxModule("ngx_http_js_module.so");

/** nginx answers malformed paths itself. */
const refuses = ({ target }: Vector) => /^\/api\/v1\/(%zz|posts\/%|posts%|posts%00)$|\.\.\/\.\.\/etc/.test(target);

/** nginx joins headers of one name into one value since 1.23; before, its configuration sees only the first. */
const isAltered = ({ keys }: Vector) => keys.length > 1 && NGINX !== null && version(NGINX) < 23;

proveEdge({
  name: "nginx",
  start: (site) => startNginx(site, "nginx", ""),
  servedByOrigin: ["encoded", "named", "hashed", "roundabout"],
  refuses,
  forwardsAcceptEncoding: true,
  isAltered,
  skip: NGINX === null,
});

proveEdge({
  name: "nginx-njs",
  start: (site) => startNginx(site, "nginx-njs", `load_module ${NJS};`),
  servedByOrigin: [],
  refuses,
  forwardsAcceptEncoding: true,
  skip: NGINX === null || NJS === null,
});

function version(nginx: string): number {
  const { stderr } = spawnSync(nginx, ["-v"], { encoding: "utf8" });
  return Number(/nginx\/1\.(\d+)/.exec(stderr)?.[1]);
}

async function startNginx(site: EdgeSite, target: string, first: string): Promise<Running> {
  await site.place.json(`edge ${target} --origin ${site.origin.url} --write nginx`);
  const home = join(site.place.folder, "nginx");
  const made = readFileSync(join(home, "precast.conf"), "utf8");
  return startNginxWith(home, made.replace("listen 80;", "listen 127.0.0.1:PORT;"), first, NGINX as string);
}
