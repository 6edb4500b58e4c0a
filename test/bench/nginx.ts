/** Starts nginx on a tree: one worker, configured to send the files with the headers of Precast's answers. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { type Answer, fieldOf } from "./recorded.ts";
import { type Served, startProgram } from "./served.ts";

const PROGRAM = "/usr/sbin/nginx";

/** Null where nginx is not installed. `like` is the answer of Precast whose headers it sends. */
export async function startNginx(out: string, folder: string, like: Answer): Promise<Served | null> {
  if (!existsSync(PROGRAM)) return null;
  const port = await freePort();
  const home = join(folder, "nginx");
  mkdirSync(home);
  writeFileSync(join(home, "nginx.conf"), configuration(out, home, port, like));
  return startProgram(
    "nginx",
    PROGRAM,
    ["-p", home, "-c", join(home, "nginx.conf")],
    `http://127.0.0.1:${port}`,
    folder,
  );
}

const HEADERS = [
  "Vary",
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "X-Request-Counted",
  "Cache-Status",
  "Cache-Control",
  "CDN-Cache-Control",
];
const SCRATCH = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

function configuration(out: string, home: string, port: number, like: Answer): string {
  const headers = HEADERS.flatMap((name) => {
    const value = fieldOf(like, name.toLowerCase());
    return value === undefined ? [] : [`add_header ${name} "${value}";`];
  });
  return `daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${join(home, "pid")};
error_log stderr;
events { worker_connections 20000; }
http {
  ${SCRATCH.map((name) => `${name}_temp_path ${join(home, name)};`).join("\n  ")}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 60s;
  keepalive_requests 1000000000;
  open_file_cache max=100000 inactive=60s;
  open_file_cache_valid 60s;
  default_type "application/json; charset=utf-8";
  server {
    listen 127.0.0.1:${port};
    root ${out};
    ${headers.join("\n    ")}
  }
}
`;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
