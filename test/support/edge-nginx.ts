/** Starts nginx with a test's configuration: one worker, and all files that it writes in the test's folder. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, type Running, startProgram } from "./edge-program.ts";

const SCRATCH = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/** `site` goes into the http block, with PORT in place of the port; `first` goes to the top of the configuration. */
export async function startNginxWith(home: string, site: string, first: string, nginx: string): Promise<Running> {
  const port = await freePort();
  writeFileSync(join(home, "site.conf"), site.replaceAll("PORT", String(port)));
  writeFileSync(join(home, "nginx.conf"), mainConfiguration(home, first));
  return startProgram(nginx, ["-p", home, "-c", join(home, "nginx.conf")], port, home);
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
  large_client_header_buffers 4 64k;
  include ${join(home, "site.conf")};
}
`;
}
