/** Assembles the scripts of edges: variables with values of the site, the part of the host, and the mapping core. */
import { readFileSync } from "node:fs";
import { isAbsolute, normalize } from "node:path";
import { refusalAnswer } from "../../shared/api/answer.ts";
import { DATABASE_UNAVAILABLE, routeNotFound } from "../../shared/api/errors.ts";
import { type Edge, fileHeaders, preflightHeaders } from "./edge.ts";

type Host =
  | "njs"
  | "cloudflare"
  | "cloudflare-plain"
  | "cloudflare-tagged"
  | "cloudfront-request"
  | "cloudfront-response"
  | "netlify"
  | "vercel"
  | "site"
  | "web";

/** Writes `head` as a comment, a variable for each of `values`, and then `parts`. */
export function writeScript(
  head: readonly string[],
  values: Readonly<Record<string, unknown>>,
  parts: readonly string[],
) {
  const comment = head.map((line) => `// ${line}`.trimEnd());
  const variables = Object.entries(values).map(([name, value]) => `var ${name} = ${JSON.stringify(value)};`);
  return `${[comment.join("\n"), variables.join("\n"), ...parts].join("\n\n")}\n`;
}

/** The folder of each app by its key, as the core expects them. */
export function foldersOf({ apps }: Edge): Record<string, string> {
  return Object.fromEntries(apps.map(({ key, folder }) => [key, folder]));
}

/** The variables of the script for hosts with Request and Response (hosts/web.js). */
export function webValues(edge: Edge): Record<string, unknown> {
  return {
    APPS: foldersOf(edge),
    ORIGIN: edge.origin.origin,
    FILE_HEADERS: fileHeaders(edge.policy),
    PREFLIGHT_HEADERS: preflightHeaders(),
    NOT_FOUND: refusalAnswer(routeNotFound(), null),
    UNAVAILABLE: refusalAnswer(DATABASE_UNAVAILABLE, null),
  };
}

/** The mapping core with the SHA-256 that it calls. */
export function readCore(): string {
  return `${readText("core.js")}\n\n${readText("sha256.js")}`;
}

/** The script without its block comments and indentation, for hosts that limit its size. */
export function compacted(text: string): string {
  return text.replace(/^\/\*\*[\s\S]*?\*\/\n+/gm, "").replace(/^ +/gm, "");
}

export function readHost(host: Host): string {
  return readText(`hosts/${host}.js`);
}

function readText(name: string): string {
  return readFileSync(new URL(`../edge/${name}`, import.meta.url), "utf8").trim();
}

// Names the folder of the tree for hosts that deploy a project: their settings are relative to its root.

/** `out` for `./out/`. Throws Error for a folder that cannot be in the project. */
export function folderInProject({ folder }: Edge, host: string): string {
  const name = normalize(folder).replace(/(.)\/$/, "$1");
  if (!isAbsolute(name) && !/^\.\.(\/|$)/.test(name)) return name;
  throw new Error(
    `${host} deploys a project, and ${folder} does not lie within it. Put the tree into a folder of the project, and name it relative to the project: --out out.`,
  );
}

// Assembles the text of configurations.

/** The lines as a comment, for hosts where `#` begins one. */
export function comment(lines: readonly string[]): string {
  return lines.map((line) => `# ${line}`.trimEnd()).join("\n");
}

/** The parts, with an empty line between them. */
export function sections(parts: readonly string[]): string {
  return `${parts.join("\n\n")}\n`;
}
