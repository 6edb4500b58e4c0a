/** `precast edge`: prints the configuration with which a web server or a CDN serves the tree. Needs no database. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DONE, defineCommand } from "../command.ts";
import { EDGE_SETTINGS, type EdgeFile, readEdge } from "../edge/edge.ts";
import { describeTargets, findTarget, TARGETS } from "../edge/target.ts";

export const edgeCommand = defineCommand({
  name: "edge",
  describes:
    "print the configuration with which a web server or a CDN serves the tree; without a target, list the targets",
  argument: "[target]",
  settings: [...EDGE_SETTINGS, "write"],
  examples: [
    "precast edge nginx --origin http://127.0.0.1:3000 > precast.conf",
    "precast edge cloudflare --origin https://api.example.com --write worker",
    "precast edge varnish --app atlas --tree-url http://127.0.0.1:8080",
  ],
  run: async ({ terminal }, settings, argument) => {
    if (argument === "") {
      terminal.result(describeTargets(), { targets: TARGETS.map(({ name, describes }) => ({ name, describes })) });
      return DONE;
    }
    const target = findTarget(argument);
    const files = target.files(readEdge(settings, target));
    if (settings.write === null) {
      terminal.result(printed(files).trimEnd(), { target: target.name, files });
      return DONE;
    }
    const written = files.map((file) => writeFile(settings.write as string, file));
    terminal.say(`Installation steps are at the top of ${written[0]}.`);
    terminal.result(written.join("\n"), { target: target.name, written });
    return DONE;
  },
});

/** A single file is printed as it is. Several files are printed with a line above each that names it. */
function printed(files: readonly EdgeFile[]): string {
  if (files.length === 1) return files[0]?.text ?? "";
  return files.map(({ name, text }) => `==> ${name} <==\n${text}`).join("\n");
}

/** Returns the path of the written file. */
function writeFile(folder: string, { name, text }: EdgeFile): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}
