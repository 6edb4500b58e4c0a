/** Puts the scripts of edges together: what is known of the site, what a host wants, and the mapping core as it is. */
import { readFileSync } from "node:fs";
import { refusalAnswer } from "../../shared/answer.ts";
import { DATABASE_UNAVAILABLE, routeNotFound } from "../../shared/refusal.ts";
import type { Edge } from "./edge.ts";
import { fileHeaders, preflightHeaders } from "./headers.ts";

export type Host =
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

/** A comment of these lines, one variable for each value, the parts in their order. */
export function writeScript(
  head: readonly string[],
  values: Readonly<Record<string, unknown>>,
  parts: readonly string[],
) {
  const comment = head.map((line) => `// ${line}`.trimEnd());
  const variables = Object.entries(values).map(([name, value]) => `var ${name} = ${JSON.stringify(value)};`);
  return `${[comment.join("\n"), variables.join("\n"), ...parts].join("\n\n")}\n`;
}

/** The folders of the apps by key, as the core reads them. */
export function foldersOf({ apps }: Edge): Record<string, string> {
  return Object.fromEntries(apps.map(({ key, folder }) => [key, folder]));
}

/** What the script for hosts with Request and Response is told. */
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

/** The mapping core with all that it calls. */
export function readCore(): string {
  return `${readText("core.js")}\n\n${readText("sha256.js")}`;
}

/** For hosts that count bytes. */
export function withoutComments(text: string): string {
  return text.replace(/^\/\*\*[\s\S]*?\*\/\n+/gm, "");
}

export function readHost(host: Host): string {
  return readText(`hosts/${host}.js`);
}

function readText(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8").trim();
}
