/** `precast edge cloudflare`, in workerd: the runtime of Cloudflare Workers, from npm. */
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { holdPort } from "../support/cli.ts";
import { type Running, startProgram } from "../support/edge-program.ts";
import { asUri, proveEdge } from "../support/edge-proof.ts";
import type { EdgeSite } from "../support/edge-site.ts";
import type { Vector } from "../support/edge-vectors.ts";

/** The path of the program; the package says no types. */
const { default: WORKERD } = createRequire(import.meta.url)("workerd") as { readonly default: string };

/** What no Worker can send on as it came. */
const refuses = ({ target }: Vector) => /^[^?]*\/(\.|%2e){1,2}(\/|$)/i.test(target);

proveEdge({
  name: "cloudflare",
  start: startWorkerd,
  passes: [],
  refuses,
  spells: asUri,
});

async function startWorkerd(site: EdgeSite): Promise<Running> {
  const home = join(site.place.folder, "worker");
  await site.place.json(`edge cloudflare --origin ${site.origin.url} --write worker`);
  const { port, release } = await holdPort();
  await release();
  writeFileSync(join(home, "config.capnp"), configuration(site.out, port));
  return startProgram(WORKERD, ["serve", "config.capnp", "config"], port, home);
}

function configuration(out: string, port: number): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "tree", disk = (path = ${JSON.stringify(out)})),
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2025-09-01",
  bindings = [(name = "ASSETS", service = "tree")],
);
`;
}
