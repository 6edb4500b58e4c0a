/** `precast edge nginx` and `nginx-njs`, with Debian's nginx and its njs module. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdPort } from "../support/cli.ts";
import { findNginxModule, findProgram, type Running, startProgram } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";

const NGINX = findProgram("nginx");
const NJS = findNginxModule("ngx_http_js_module.so");

/** nginx says of a path that is none what it thinks of it. */
const refuses = ({ target }: Vector) => /^\/api\/v1\/(%zz|posts\/%|posts%|posts%00)$|\.\.\/\.\.\/etc/.test(target);

/** Two headers of one name are one value since nginx 1.23; before, all but the first are out of sight. */
const sees = ({ keys }: Vector) => keys.length > 1 && NGINX !== null && version(NGINX) < 23;

proveEdge({
  name: "nginx",
  start: (site) => startNginx(site, "nginx", ""),
  passes: ["encoded", "named", "hashed", "roundabout"],
  refuses,
  sees,
  skip: NGINX === null,
});

proveEdge({
  name: "nginx-njs",
  start: (site) => startNginx(site, "nginx-njs", `load_module ${NJS};`),
  passes: [],
  refuses,
  skip: NGINX === null || NJS === null,
});

function version(nginx: string): number {
  const { stderr } = { stderr: execFileSync("/bin/sh", ["-c", `${nginx} -v 2>&1`], { encoding: "utf8" }) };
  return Number(/nginx\/1\.(\d+)/.exec(stderr)?.[1]);
}

const SCRATCH = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

async function startNginx(site: EdgeSite, target: string, first: string): Promise<Running> {
  const { folder } = site.place;
  await site.place.json(`edge ${target} --origin ${site.origin.url} --write nginx`);
  const home = join(folder, "nginx");
  const made = join(home, "precast.conf");
  const { port, release } = await holdPort();
  await release();
  writeFileSync(made, readFileSync(made, "utf8").replace("listen 80;", `listen 127.0.0.1:${port};`));
  writeFileSync(join(home, "nginx.conf"), mainConfiguration(home, first));
  return startProgram(NGINX as string, ["-p", home, "-c", join(home, "nginx.conf")], port, home);
}

function mainConfiguration(home: string, first: string): string {
  return `${first}
daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${join(home, "pid")};
error_log stderr;
events { }
http {
  ${SCRATCH.map((name) => `${name}_temp_path ${join(home, name)};`).join("\n  ")}
  access_log off;
  include ${join(home, "precast.conf")};
}
`;
}
