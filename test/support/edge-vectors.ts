/**
 * The requests that every edge is tested with: requests for files in all their spellings, and requests that nearly are.
 * The mapping core, every generated configuration and the server are tested with the same list.
 */
import { EDGE_KEY, EDGE_KEYS, edgeId, HASHED_VALUES, LITERAL_VALUES, NAMED_VALUES } from "./edge-apps.ts";
import { BRACKETS, COUNTED, MALFORMED, MISSING, PLAIN, REFUSED, ROUNDABOUT, WRONG_KEYS } from "./edge-paths.ts";

/**
 * The classes of requests that a file of the tree answers: spelled plainly, with an encoded value, with a value whose
 * file name is hex, with one whose file name is a hash, and spelled in an unusual way.
 */
const FILE_CLASSES = ["plain", "encoded", "named", "hashed", "roundabout"] as const;
export type FileClass = (typeof FILE_CLASSES)[number];
/** `missing`: free, but no file has the answer. `malformed`: not a target of this API, perhaps not even of HTTP. */
export type VectorClass = FileClass | "missing" | "counted" | "refused" | "malformed" | "preflight";

export type Vector = {
  readonly class: VectorClass;
  readonly method: string;
  readonly target: string;
  /** The X-App-Key headers, in order. */
  readonly keys: readonly string[];
};

export function isFile(vector: Vector): boolean {
  return (FILE_CLASSES as readonly string[]).includes(vector.class);
}

export function edgeVectors(): Vector[] {
  return [
    ...LITERAL_VALUES.flatMap((value) => spellings(value, "plain", "encoded")),
    ...NAMED_VALUES.flatMap((value) => spellings(value, "named", "named")),
    ...HASHED_VALUES.flatMap((value) => spellings(value, "hashed", "hashed")),
    ...EDGE_KEYS.flatMap((key) => PLAIN.map((path) => vector("plain", path, [key]))),
    ...BRACKETS.map((query) => vector("plain", `/posts?${query}`)),
    ...ROUNDABOUT.map((path) => vector("roundabout", path)),
    ...MISSING.map((path) => vector("missing", path)),
    ...COUNTED.map((path) => vector("counted", path)),
    ...REFUSED.map((path) => vector("refused", path)),
    ...MALFORMED.map((target) => ({ ...vector("malformed", ""), target })),
    ...WRONG_KEYS.flatMap((keys) =>
      ["/posts", "/posts?filter[title]=news"].map((path) => vector("refused", path, keys)),
    ),
    ...["POST", "PUT", "DELETE", "PATCH"].map((method) => ({ ...vector("refused", "/posts"), method })),
    ...["/posts", "/posts?filter[title]=%zz", "/posts/search?q=x", "/nope/nope/nope"].map((path) => ({
      ...vector("preflight", path, []),
      method: "OPTIONS",
    })),
    ...["/_schemas", "/posts", "/posts?sort=title", `/posts/${edgeId(1)}`].map((path) => ({
      ...vector("plain", path),
      method: "HEAD",
    })),
    ...["/posts?per_page=1", "/nope", "/posts/search?q=news"].map((path) => ({
      ...vector(path === "/nope" ? "missing" : "counted", path),
      method: "HEAD",
    })),
  ];
}

function vector(kind: VectorClass, path: string, keys: readonly string[] = [EDGE_KEY]): Vector {
  return { class: kind, method: "GET", target: `/api/v1${path}`, keys };
}

/** Five spellings of a value: encoded as little as possible, as hex in either case, form-encoded, percent-encoded. */
function spellings(value: string, asItIs: FileClass, encoded: FileClass): Vector[] {
  const bytes = [...Buffer.from(value)].map((byte) => byte.toString(16).padStart(2, "0"));
  const usual = encodeURIComponent(value);
  const bare = usual === value;
  return [
    vector(bare ? asItIs : encoded, `/posts?filter[title]=${barely(value)}`),
    vector(encoded, `/posts?filter[title]=${bytes.map((byte) => `%${byte.toUpperCase()}`).join("")}`),
    vector(encoded, `/posts?filter[title]=${bytes.map((byte) => `%${byte}`).join("")}`),
    vector(bare ? asItIs : encoded, `/posts?filter%5Btitle%5D=${usual.replaceAll("%20", "+")}`),
    vector(bare ? asItIs : encoded, `/posts?filter%5btitle%5d=${usual}`),
  ];
}

/** Encodes only what HTTP and form encoding require. */
function barely(value: string): string {
  return value.replace(/[^\x21-\x7e]|[%+&#"<>\\^`{|}]/gu, encodeURIComponent);
}
