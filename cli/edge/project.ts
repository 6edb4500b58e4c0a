/** Names the folder of the tree for hosts that deploy a project: their settings are relative to its root. */
import { isAbsolute, normalize } from "node:path";
import type { Edge } from "./edge.ts";

/** `out` for `./out/`. Throws Error for a folder that cannot be in the project. */
export function folderInProject({ folder }: Edge, host: string): string {
  const name = normalize(folder).replace(/(.)\/$/, "$1");
  if (!isAbsolute(name) && !/^\.\.(\/|$)/.test(name)) return name;
  throw new Error(
    `${host} deploys a project, and ${folder} does not lie within it. Put the tree into a folder of the project, and name it relative to the project: --out out.`,
  );
}
