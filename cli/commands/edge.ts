/** `precast edge`: prints the configuration with which a web server or a CDN serves the tree. Needs no database. */
import { hash } from "node:crypto";
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolders } from "../../shared/files.ts";
import { DONE, defineCommand } from "../command.ts";
import { caddyFiles } from "../edge/caddy.ts";
import { cloudfrontFiles } from "../edge/cloudfront.ts";
import { EDGE_SETTINGS, type Edge, type EdgeFile, type OriginRule, readEdge } from "../edge/edge.ts";
import { fastlyFiles } from "../edge/fastly.ts";
import { cloudflareFiles, netlifyFiles, vercelFiles } from "../edge/functions.ts";
import { nginxFiles, nginxNjsFiles } from "../edge/nginx.ts";
import { varnishFiles } from "../edge/varnish.ts";

export const edgeCommand = defineCommand({
  name: "edge",
  describes: "print the configuration with which a web server or a CDN serves the tree",
  argument: "[target]",
  values: () => TARGETS.map(({ name }) => name),
  settings: [...EDGE_SETTINGS, "write"],
  database: "unused",
  examples: [
    "precast edge nginx --origin http://127.0.0.1:3000 > precast.conf",
    "precast edge cloudflare --origin https://api.example.com --write worker",
    "precast edge varnish --app atlas --tree-url http://127.0.0.1:8080",
  ],
  details: () => `\nTargets:\n${describeTargets()}\n`,
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

// The hosts that configurations are written for.

type Target = {
  readonly name: string;
  readonly describes: string;
  readonly origin: OriginRule;
  /** Whether the edge can send cache tags; no if absent. */
  readonly sendsTags?: boolean;
  /** Whether the edge fetches files from a static host, at `--tree-url`; no if absent. */
  readonly fetchesTree?: boolean;
  /** The first file contains the installation steps. Throws Error when the edge cannot be written for this host. */
  readonly files: (edge: Edge) => EdgeFile[];
};

const TARGETS: readonly Target[] = [
  {
    name: "nginx",
    origin: "optional",
    describes: "nginx without modules: files with literal names, else the origin",
    files: nginxFiles,
  },
  { name: "nginx-njs", origin: "optional", describes: "nginx with the njs module: all files", files: nginxNjsFiles },
  {
    name: "varnish",
    origin: "optional",
    fetchesTree: true,
    describes: "Varnish in front of a static host with the tree (--tree-url)",
    files: varnishFiles,
  },
  {
    name: "caddy",
    origin: "optional",
    describes: "Caddy without plugins: files with literal names, else the origin",
    files: caddyFiles,
  },
  {
    name: "cloudflare",
    origin: "required",
    sendsTags: true,
    describes: "a Cloudflare Worker, the tree as static assets or in R2: all files",
    files: cloudflareFiles,
  },
  {
    name: "cloudfront",
    origin: "required",
    describes: "CloudFront functions for a tree in S3, with failover: all files",
    files: cloudfrontFiles,
  },
  {
    name: "fastly",
    origin: "refused",
    fetchesTree: true,
    describes: "VCL for Fastly in front of a static host with the tree (--tree-url)",
    files: fastlyFiles,
  },
  {
    name: "netlify",
    origin: "required",
    describes: "a Netlify edge function, with the tree as the site: all files",
    files: netlifyFiles,
  },
  {
    name: "vercel",
    origin: "required",
    describes: "a Vercel middleware, with the tree as static files: all files",
    files: vercelFiles,
  },
];

/** Throws Error for an unknown name. */
function findTarget(name: string): Target {
  const target = TARGETS.find((candidate) => candidate.name === name);
  if (target === undefined) throw new Error(`There is no target '${name}'. Targets:\n${describeTargets()}`);
  return target;
}

/** One line per target. */
function describeTargets(): string {
  const width = Math.max(...TARGETS.map(({ name }) => name.length));
  return TARGETS.map(({ name, describes }) => `  ${name.padEnd(width)}  ${describes}`).join("\n");
}

// Writes the files of a configuration: all of them or none, and over nothing that people have written or changed.

/** What every file contains that people are not told to change. */
const MARK = "Generated by `precast edge ";

/** Paths of the files that were written, and of those that were left as they are. */
type Written = { readonly written: readonly string[]; readonly kept: readonly string[] };

type Planned = EdgeFile & { readonly path: string; readonly existing: string | null };

/** Throws Error when a file would be overwritten that `precast edge` did not generate. */
function writeFiles(folder: string, files: readonly EdgeFile[]): Written {
  const planned = files.map((file) => planFile(join(folder, file.name), file));
  for (const file of planned) refuseForeign(file);
  const written = planned.filter((file) => !isKept(file));
  replaceAll(written);
  return { written: listPaths(written), kept: listPaths(planned.filter(isKept)) };
}

function planFile(path: string, file: EdgeFile): Planned {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  return { ...file, path, existing: isFile ? readFileSync(path, "utf8") : null };
}

function isKept({ isEdited = false, existing, text }: Planned): boolean {
  return isEdited && existing !== null && existing !== text && !isUnchanged(existing);
}

function refuseForeign({ path, isEdited = false, existing }: Planned): void {
  if (isEdited || existing === null || existing.includes(MARK)) return;
  throw new Error(
    `${path} was not generated by \`precast edge\`, so nothing was written. Move that file away, or specify another folder with --write.`,
  );
}

/** Every file is complete beside its place before the first one is replaced, so a full disk costs nothing. */
function replaceAll(files: readonly Planned[]): void {
  const moves = files.map(({ path, existing, text }) => {
    // A link stays a link: what it leads to is replaced.
    const place = existing === null ? path : realpathSync(path);
    return { place, part: `${place}.precast-part`, text };
  });
  try {
    for (const { part, text } of moves) {
      makeFolders(dirname(part));
      writeFileSync(part, text);
    }
    for (const { part, place } of moves) renameSync(part, place);
  } catch (error) {
    for (const { part } of moves) rmSync(part, { force: true });
    throw error;
  }
}

function listPaths(files: readonly Planned[]): string[] {
  return files.map(({ path }) => path);
}

// Seals files that people may change, so that a file that nobody has changed can be told from one that somebody has.

/** Adds a last line with a digest of the text. JSON has no comments, so such a file stays without one. */
function sealed(file: EdgeFile): EdgeFile {
  return file.isEdited && !file.name.endsWith(".json") ? { ...file, text: file.text + hashText(file.text) } : file;
}

/** Whether a sealed text is still what was generated. False for one without a seal. */
export function isUnchanged(text: string): boolean {
  const end = text.lastIndexOf(START);
  return end >= 0 && text.slice(end) === hashText(text.slice(0, end));
}

const START = "# `precast edge --write` replaces this file unless it was changed: ";

function hashText(text: string): string {
  return `${START}${hash("sha256", text).slice(0, 16)}\n`;
}
