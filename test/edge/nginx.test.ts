/** `precast edge nginx` and `nginx-njs`, with Debian's nginx and its njs module. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nameFolder } from "../../shared/api/address.ts";
import { openPlace, type Place, SHOP } from "../support/cli.ts";
import { startNginxWith } from "../support/edge-nginx.ts";
import { findNginxModule, findProgram, type Running } from "../support/edge-program.ts";
import { proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";
import { askBytes, type RequestOptions } from "../support/site.ts";
import { EXPIRED, OF_ANOTHER, startTls, type Tls } from "../support/tls.ts";

const NGINX = findProgram("nginx");
const NJS = findNginxModule("ngx_http_js_module.so");

const GZIP_TYPES = "gzip_types application/json;\n";

/** nginx answers malformed paths itself. */
const refuses = ({ target }: Vector) => /^\/api\/v1\/(%zz|posts\/%|posts%|posts%00)$|\.\.\/\.\.\/etc/.test(target);

/** nginx joins headers of one name into one value since 1.23; before, its configuration sees only the first. */
const isAltered = ({ keys }: Vector) => keys.length > 1 && NGINX !== null && version(NGINX) < 23;

proveEdge({
  name: "nginx",
  start: (site) => startNginx(site, "nginx", "", `gzip on;\n${GZIP_TYPES}`),
  compresses: true,
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

describe.skipIf(NGINX === null)("nginx that compresses", () => {
  let place: Place;
  let origin: Server;
  let nginx: Running;
  const BODY = JSON.stringify({ data: "long enough to compress ".repeat(50) });
  const ask = (target: string, more: RequestOptions = {}) =>
    askBytes(nginx.url, target, { appKey: SHOP, ...more, headers: { "Accept-Encoding": "gzip", ...more.headers } });

  beforeAll(async () => {
    place = openPlace();
    origin = createServer((_, response) => {
      response.writeHead(404, { "Content-Type": "application/json", Vary: "X-App-Key" }).end(BODY);
    });
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    const { port } = origin.address() as AddressInfo;
    await place.json(`edge nginx --app ${SHOP} --origin http://127.0.0.1:${port} --write nginx`);
    const file = join(place.folder, "out", nameFolder(SHOP), "posts/page/1.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, BODY);
    const home = join(place.folder, "nginx");
    const made = readFileSync(join(home, "precast.conf"), "utf8").replace("listen 80;", "listen 127.0.0.1:PORT;");
    nginx = await startNginxWith(home, `gzip on;\ngzip_vary on;\n${GZIP_TYPES}${made}`, "", NGINX as string);
  });
  afterAll(async () => {
    await nginx?.stop();
    origin?.close();
    await place?.close();
  });

  test("names the codings once in the Vary of a file, whether it sends the file, its headers or a 304", async () => {
    const whole = await ask("/api/v1/posts");
    const headers = { "If-None-Match": whole.headers.etag as string };
    const [plain, head, unchanged] = [
      await ask("/api/v1/posts", { headers: { "Accept-Encoding": "identity" } }),
      await ask("/api/v1/posts", { method: "HEAD" }),
      await ask("/api/v1/posts", { headers }),
    ];
    expect(whole.headers["content-encoding"]).toBe("gzip");
    expect([whole, plain, head, unchanged].map(({ status, headers: { vary } }) => [status, vary])).toEqual(
      [200, 200, 200, 304].map((status) => [status, "X-App-Key, Accept-Encoding"]),
    );
  });

  test("leaves an answer of the origin in the coding that its Vary is for", async () => {
    const { status, headers, bytes } = await ask("/api/v1/nope");
    expect([status, headers.vary, headers["content-encoding"]]).toEqual([404, "X-App-Key", undefined]);
    expect(bytes.toString()).toBe(BODY);
  });
});

describe.skipIf(NGINX === null)("nginx in front of an https origin", () => {
  const BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
  let origin: Tls;
  let place: Place;
  beforeAll(async () => {
    origin = await startTls(OF_ANOTHER);
    place = openPlace();
  });
  afterAll(async () => {
    await origin.close();
    await place.close();
  });

  test.each([
    ["forwards to one whose certificate is of an authority in the bundle", OF_ANOTHER, "other.test", 404],
    ["forwards nothing to one whose certificate is of another authority", EXPIRED, "other.test", 503],
    ["forwards nothing to one whose certificate is for another name", OF_ANOTHER, "api.test", 503],
  ])("%s", async (_, trusted, name, status) => {
    const { port } = new URL(origin.url);
    await place.json(`edge nginx --app ${SHOP} --origin https://${name}:${port} --write ${name}`);
    const home = join(place.folder, name);
    const made = readFileSync(join(home, "precast.conf"), "utf8");
    expect(made).toContain(`proxy_ssl_trusted_certificate ${BUNDLE};`);
    writeFileSync(join(home, "bundle.pem"), trusted);
    const site = made
      .replace("listen 80;", "listen 127.0.0.1:PORT;")
      .replace(`server ${name}:`, "server 127.0.0.1:")
      .replace(BUNDLE, join(home, "bundle.pem"));
    const nginx = await startNginxWith(home, site, "", NGINX as string);
    const answer = await askBytes(nginx.url, "/api/v1/posts", { appKey: SHOP });
    await nginx.stop();
    expect(answer.status).toBe(status);
  });
});

function version(nginx: string): number {
  const { stderr } = spawnSync(nginx, ["-v"], { encoding: "utf8" });
  return Number(/nginx\/1\.(\d+)/.exec(stderr)?.[1]);
}

/** `own` is what the operator has in the http block. */
async function startNginx(site: EdgeSite, target: string, first: string, own = ""): Promise<Running> {
  await site.place.json(`edge ${target} --origin ${site.origin.url} --write nginx`);
  const home = join(site.place.folder, "nginx");
  const made = readFileSync(join(home, "precast.conf"), "utf8");
  const text = own + made.replace("listen 80;", "listen 127.0.0.1:PORT;");
  return startNginxWith(home, text, first, NGINX as string);
}
