/**
 * What the configuration of every edge is made from: the apps, the tree, the origin, the cache policy, the headers of what
 * an edge answers itself, and the mapping core for those that run JavaScript.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { nameFolder } from "../../shared/api/address.ts";
import { bodyAnswer, type CachePolicy, preflightAnswer, refusalAnswer } from "../../shared/api/answer.ts";
import { DATABASE_UNAVAILABLE, methodNotAllowed, type Refusal } from "../../shared/api/errors.ts";
import type { Settings } from "../../shared/config.ts";
import { builtAppKeys } from "../../shared/tree.ts";

export type Edge = {
  readonly apps: readonly EdgeApp[];
  /** The address of `precast serve`; only scheme, host and port are used. */
  readonly origin: URL;
  /** The folder of the tree: `folder` as given with `--out`, `out` as an absolute path. */
  readonly folder: string;
  readonly out: string;
  /** URL at which a static host serves the tree; null when not given. */
  readonly treeUrl: string | null;
  readonly policy: CachePolicy;
};

/** `folder` is the name of the app's folder in the tree, without the version. */
export type EdgeApp = { readonly key: string; readonly folder: string };

/** A file of a configuration. `name` is its path relative to the folder of `--write`. */
export type EdgeFile = {
  readonly name: string;
  readonly text: string;
  /** Whether it is one that people change, or have for other reasons as well; no if absent. `--write` replaces it only unchanged. */
  readonly isEdited?: boolean;
};

export const EDGE_SETTINGS = ["apps", "origin", "treeUrl", "cacheControl", "cdnCacheControl", "cacheTags"] as const;

/**
 * `required`: the edge runs on other machines and connects to the address of `--origin`. `refused`: the address is set up
 * at the host, and not in the files.
 */
export type OriginRule = "required" | "optional" | "refused";

type EdgeKind = { readonly origin: OriginRule; readonly sendsTags?: boolean; readonly fetchesTree?: boolean };

/** Default origin of an edge on the same machine: where `precast serve` listens by default. */
const LOCAL_ORIGIN = "http://127.0.0.1:3000";

/**
 * The second argument is a target. Throws Error when the required `--origin` is missing, when `--origin`,
 * `--cache-tags` or `--tree-url` is set for an edge that cannot use it, and when no app is known: an edge without apps
 * would send every request to the origin.
 */
export function readEdge(
  settings: Settings<(typeof EDGE_SETTINGS)[number] | "out">,
  { origin, sendsTags = false, fetchesTree = false }: EdgeKind,
): Edge {
  if (origin === "required" && settings.origin === null)
    throw new Error(
      "This edge runs on other machines. Give the address where it reaches `precast serve`: --origin URL.",
    );
  if (origin === "refused" && settings.origin !== null)
    throw new Error(
      "This edge reaches `precast serve` at a host that you add to its service. Give the address there, and remove --origin (PRECAST_ORIGIN).",
    );
  if (settings.cacheTags && !sendsTags)
    throw new Error("This edge cannot send cache tags with files. Remove --cache-tags (PRECAST_CACHE_TAGS).");
  if (settings.treeUrl !== null && !fetchesTree)
    throw new Error(
      "This edge has the files of the tree itself and fetches none from an address, as varnish and fastly do. Remove --tree-url (PRECAST_TREE_URL).",
    );
  const keys = settings.apps ?? builtAppKeys(settings.out);
  if (keys.length === 0)
    throw new Error(`${settings.out} holds no tree. Build it (precast build), or name the apps: --app KEY.`);
  const apps = [...new Set(keys)].sort().map((key) => ({ key, folder: nameFolder(key).replace(/\/.*/, "") }));
  const policy = { browsers: settings.cacheControl, cdns: settings.cdnCacheControl, tagged: settings.cacheTags };
  return {
    apps,
    origin: new URL(settings.origin ?? LOCAL_ORIGIN),
    folder: settings.out,
    out: resolve(settings.out),
    treeUrl: settings.treeUrl,
    policy,
  };
}

// Computes the headers of what an edge answers itself: exactly those of the server. Source: contract.md section 7.

export type Headers = Readonly<Record<string, string>>;

type HeadersAndBody = { readonly headers: Headers; readonly body: string };

/**
 * Headers of every file of the tree, without ETag and cache tags. `Vary` lacks `Accept-Encoding`, because an edge has
 * each body in one coding; hosts that compress add it themselves.
 */
export function fileHeaders(policy: CachePolicy): Headers {
  const price = { shape: "page", counted: false, rule: "" } as const;
  const used = { type: "", fields: "" };
  const context = { appKey: "", type: null, price, freeEquivalent: null, used, fromTree: true, warning: null };
  const { ETag: _, ...headers } = bodyAnswer(
    { bytes: "", etag: '""' },
    context,
    { ...policy, tagged: false },
    undefined,
  ).headers;
  const { Vary = "" } = preflightHeaders();
  return { ...headers, Vary };
}

/** Headers of the answer to OPTIONS, which is 204 with or without an app key. */
export function preflightHeaders(): Headers {
  return preflightAnswer().headers;
}

/** Headers and body of the 503 while the server is down: what the server sends while the database is down. */
export function unavailableAnswer(): HeadersAndBody {
  return renderRefusal(DATABASE_UNAVAILABLE);
}

/** Headers and body of the 405 to a PURGE from a client that may not purge: what the server sends to any PURGE. */
export function purgeRefusalAnswer(): HeadersAndBody {
  return renderRefusal(methodNotAllowed("PURGE"));
}

function renderRefusal(refusal: Refusal): HeadersAndBody {
  const { headers, body } = refusalAnswer(refusal, null);
  return { headers, body: String(body) };
}

/** The headers without Content-Type, for hosts that set it with a directive of its own. */
export function withoutContentType(headers: Headers): [name: string, value: string][] {
  return Object.entries(headers).filter(([name]) => name !== "Content-Type");
}

/** Seconds for which a shared cache takes an answer as fresh. Zero when the policy says none. Source: RFC 9111 section 4.2.1. */
export function readLifetime(policy: string): number {
  return readDirective(policy, "s-maxage") ?? readDirective(policy, "max-age") ?? 0;
}

/** Seconds of a Cache-Control directive, for hosts that need the number. Zero when the policy has no such directive. */
export function readSeconds(policy: string, directive: "stale-while-revalidate" | "stale-if-error"): number {
  return readDirective(policy, directive) ?? 0;
}

/** The case of a directive's name does not matter (RFC 9111 section 5.2). */
function readDirective(policy: string, name: string): number | null {
  const found = new RegExp(`(?:^|[\\s,])${name}=(\\d+)`, "i").exec(policy);
  return found === null ? null : Number(found[1]);
}

// Assembles the text of configurations and scripts.

/** The lines as a comment, for hosts where `#` begins one. */
export function comment(lines: readonly string[]): string {
  return lines.map((line) => `# ${line}`.trimEnd()).join("\n");
}

/** The parts, with an empty line between them. */
export function sections(parts: readonly string[]): string {
  return `${parts.join("\n\n")}\n`;
}

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
export function mapFolders({ apps }: Edge): Record<string, string> {
  return Object.fromEntries(apps.map(({ key, folder }) => [key, folder]));
}

/**
 * A script that is the same for every site, complete: the mapping core (core.js), or what answers requests on hosts with
 * Request and Response (web.js).
 */
export function readPart(name: "core" | "web"): string {
  return readFileSync(new URL(`../edge/${name}.js`, import.meta.url), "utf8").trim();
}
