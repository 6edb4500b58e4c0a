/** Writes the VCL that Varnish and Fastly have in common. */
import type { EdgeApp, Headers } from "./edge.ts";

/** The subroutine `precast_app`: it sets the folder of the app whose key was sent. VCL compares case-sensitively. */
export function appRules(apps: readonly EdgeApp[]): string {
  const rules = apps.map(
    ({ key, folder }) => `if (req.http.X-App-Key == "${key}") {\n    set req.http.X-Precast-App = "${folder}";\n  }`,
  );
  return `# The folder of the app. Two X-App-Key headers are joined by a comma, and no app has such a key.
sub precast_app {
  std.collect(req.http.X-App-Key);
  ${rules.join(" else ")}
}`;
}

/** The path of the tree on its static host, with a trailing slash. */
export function readTreePath({ pathname }: URL): string {
  return `${pathname.replace(/\/+$/, "")}/`;
}

/** Statements that set the headers. They use the long strings of VCL, in which nothing is escaped. */
export function setHeaders(object: "resp" | "obj" | "beresp", headers: Headers): string {
  return Object.entries(headers)
    .map(([name, value]) => `    set ${object}.http.${name} = {"${value}"};`)
    .join("\n");
}

/** A long string of VCL ends at the first `"}`, so the closing braces of a text become a string of their own. */
export function longString(text: string): string {
  const braces = /\}*$/.exec(text)?.[0] ?? "";
  return `{"${text.slice(0, text.length - braces.length)}"} + "${braces}"`;
}

// Maps requests to files by regular expressions, for hosts without a scripting language. They recognise the spellings
// that SDKs use, and filter values that stand in file names unchanged. They are for PCRE and RE2, and match the
// request target as it was sent: nothing is decoded.

/** `target` has no anchors. `file` is relative to the app's folder; `$1` and so on are the captures of `target`. */
type Pattern = { readonly target: string; readonly file: string };

const SLUG = "[a-z0-9][a-z0-9_-]{0,63}";
const FIELD = "[a-z][a-z0-9_]{0,62}";
const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const OPEN = "(?:\\[|%5[Bb])";
const CLOSE = "(?:\\]|%5[Dd])";
const LIST = `/(${SLUG})/?`;
const FILTER = `${LIST}\\?filter${OPEN}(${FIELD})${CLOSE}(?:${OPEN}eq${CLOSE})?=`;

/** The pattern of a filter request, up to its value. Captures slug and field. */
export const FILTER_PREFIX = `/api/v1${FILTER}`;

/** No target matches two of them. */
export const PATTERNS: readonly Pattern[] = [
  { target: "/_schemas/?", file: "_schemas.json" },
  { target: `/_schemas/(${SLUG})/?`, file: "_schemas/$1.json" },
  { target: LIST, file: "$1/page/1.json" },
  { target: `${LIST}\\?page=([1-9][0-9]{0,15})`, file: "$1/page/$2.json" },
  { target: `${LIST}\\?sort=(-?${FIELD})`, file: "$1/sort/$2.json" },
  { target: `${FILTER}([a-z0-9_-]{1,64})`, file: "$1/filter/$2/s-$3.json" },
  { target: `/(${SLUG})/(${UUID})/?`, file: "$1/entry/$2.json" },
].map(({ target, file }) => ({ target: `/api/v1${target}`, file }));
