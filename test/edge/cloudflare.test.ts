/** `precast edge cloudflare`, in workerd: the runtime of Cloudflare Workers, from npm. */
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { freePort, type Running, startProgram } from "../support/edge-program.ts";
import { asUri, proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";

/** The path of the program. The package has no type declarations. */
const { default: WORKERD } = createRequire(import.meta.url)("workerd") as { readonly default: string };

/** Targets with dot segments: a Worker cannot forward them as they were sent. */
const refuses = ({ target }: Vector) => /^[^?]*\/(\.|%2e){1,2}(\/|$)/i.test(target);

proveEdge({
  name: "cloudflare with static assets",
  start: (site) => startWorkerd(site, '(name = "ASSETS", service = "tree")'),
  servedByOrigin: [],
  refuses,
  forwardedAs: asUri,
});

proveEdge({
  name: "cloudflare with R2 and tags",
  start: (site) => startWorkerd(site, '(name = "TREE", r2Bucket = "bucket")', "--cache-tags"),
  serveOptions: "--cache-tags",
  servedByOrigin: [],
  refuses,
  forwardedAs: asUri,
});

async function startWorkerd(site: EdgeSite, binding: string, line = ""): Promise<Running> {
  const home = join(site.place.folder, "worker");
  await site.place.json(`edge cloudflare --origin ${site.origin.url} --write worker ${line}`);
  const port = await freePort();
  writeFileSync(join(home, "bucket.js"), BUCKET);
  writeFileSync(join(home, "config.capnp"), configuration(site.out, port, binding));
  return startProgram(WORKERD, ["serve", "config.capnp", "config"], port, home);
}

function configuration(out: string, port: number, binding: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "bucket", worker = .bucket),
    (name = "tree", disk = (path = ${JSON.stringify(out)})),
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2025-09-01",
  bindings = [${binding}],
);
const bucket :Workerd.Worker = (
  modules = [(name = "bucket.js", esModule = embed "bucket.js")],
  compatibilityDate = "2025-09-01",
  bindings = [(name = "TREE", service = "tree")],
);
`;
}

/** A bucket for workerd's own R2 client, for reading alone: it sends the metadata of an object, then its bytes. */
const BUCKET = `export default {
  async fetch(request, { TREE }) {
    const { method, object } = JSON.parse(request.headers.get("cf-r2-request"));
    const file = method === "get" ? await TREE.fetch("http://tree/" + object) : new Response(null, { status: 404 });
    if (file.status !== 200) {
      const error = JSON.stringify({ version: 0, v4code: 10007, message: "There is no such object." });
      return new Response(null, { status: 404, headers: { "cf-r2-error": error } });
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    const about = { name: object, version: "1", size: String(bytes.length), etag: "1", uploaded: "0", httpFields: {} };
    const head = new TextEncoder().encode(JSON.stringify({ ...about, customFields: [], checksums: {}, storageClass: "Standard" }));
    const body = new Uint8Array(head.length + bytes.length);
    body.set(head);
    body.set(bytes, head.length);
    return new Response(body, { headers: { "cf-r2-metadata-size": String(head.length) } });
  },
};
`;
