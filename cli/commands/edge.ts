/** `precast edge`: prints the configuration with which a web server or a CDN serves the tree. Needs no database. */
import { join } from "node:path";
import { DONE, defineCommand } from "../command.ts";
import { EDGE_SETTINGS, type EdgeFile, readEdge } from "../edge/edge.ts";
import { sealed } from "../edge/seal.ts";
import { describeTargets, findTarget, TARGETS } from "../edge/target.ts";
import { writeFiles } from "../edge/write.ts";

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
    const files = target.files(readEdge(settings, target)).map(sealed);
    if (settings.write === null) {
      terminal.result(printed(files).trimEnd(), { target: target.name, files });
      return DONE;
    }
    const { written, kept } = writeFiles(settings.write, files);
    for (const path of kept) terminal.warn(describeKept(path, target.name));
    const steps = join(settings.write, files[0]?.name ?? "");
    if (written.includes(steps)) terminal.say(`Installation steps are at the top of ${steps}.`);
    terminal.result(written.join("\n"), { target: target.name, written, kept });
    return DONE;
  },
});

/** A single file is printed as it is. Several files are printed with a line above each that names it. */
function printed(files: readonly EdgeFile[]): string {
  if (files.length === 1) return files[0]?.text ?? "";
  return files.map(({ name, text }) => `==> ${name} <==\n${text}`).join("\n");
}

function describeKept(path: string, target: string): string {
  return `${path} has changes of yours, or may have, so it was left as it is. \`precast edge ${target}\` without --write prints the new text: take over what the file lacks.`;
}
