/**
 * The requests that every edge is asked: what is a file in all its spellings, and whatever comes near. The same list
 * drives the mapping core, every configuration that is generated and our own server.
 */
import { EDGE_KEY, EDGE_KEYS, edgeId, HASHED_VALUES, LITERAL_VALUES, NAMED_VALUES } from "./edge-apps.ts";

/**
 * What a request is to an edge. The first five are files of the tree: spelled as they are named, the value encoded, a
 * value whose name is hex, one whose name is a hash, and everything that says it in a roundabout way.
 */
export const FILE_CLASSES = ["plain", "encoded", "named", "hashed", "roundabout"] as const;
export type FileClass = (typeof FILE_CLASSES)[number];
/** `missing`: free, and no file holds it. `malformed`: no target of this API, and perhaps none of HTTP. */
export type VectorClass = FileClass | "missing" | "counted" | "refused" | "malformed" | "preflight";

export type Vector = {
  readonly class: VectorClass;
  readonly method: string;
  readonly target: string;
  /** The X-App-Key headers, in turn. */
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

/** A value five times: as it is where that can be, in hex of either case, as forms have it, and with brackets encoded. */
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

/** Encodes no more than HTTP and the form want. */
function barely(value: string): string {
  return value.replace(/[^\x21-\x7e]|[%+&#"<>\\^`{|}]/gu, encodeURIComponent);
}

const PLAIN = [
  "/_schemas",
  "/_schemas/",
  "/_schemas/posts",
  "/_schemas/search",
  "/posts",
  "/posts/",
  "/posts?page=1",
  "/posts?page=2",
  "/page",
  "/search",
  "/a-b_c9",
  "/posts?sort=title",
  "/posts?sort=-title",
  "/posts?sort=-published_at",
  "/posts/?sort=updated_at",
  `/posts/${edgeId(1)}`,
  `/posts/${edgeId(2)}/`,
  "/posts?filter[title]=news",
  "/posts?filter[price]=1",
  "/posts?filter[active]=true",
  "/posts?filter[day]=2026-01-20",
  `/posts?filter[filter]=${edgeId(1)}`,
];

const BRACKETS = [
  "filter%5Btitle%5d=news",
  "filter%5btitle]=news",
  "filter[title%5D=news",
  "filter[title][eq]=news",
  "filter%5Btitle%5D%5Beq%5D=news",
  "filter%5btitle%5d%5beq%5d=news",
  "filter[title]%5beq]=news",
];

const ROUNDABOUT = [
  "/posts?",
  "/posts?&",
  "/posts?page",
  "/posts?page=",
  "/posts?page=007",
  "/posts?page=%31",
  "/posts?p%61ge=2",
  "/posts?page=9&page=2",
  "/posts?page=2&page=",
  "/posts?utm_source=x",
  "/posts?utm_source=x&page=2",
  "/posts?page=2&fbclid=a%20b+c",
  "/posts?q=news&populate=filter",
  "/posts?fields[]=title",
  "/posts?filterx[title]=1",
  "/posts?+filter[title]=1",
  "/posts??page=2",
  "/posts?per_page=&fields=",
  "/posts?sort=&page=2",
  "/posts?filter[title]=",
  "/posts?filter[title][like]=",
  "/posts?filter[title][gte]=&page=2",
  "/posts?filter=&filter[]=&page=2",
  "/posts?sort=price&sort=title",
  "/posts?sort=%2Dtitle",
  "/posts?s%6Frt=title",
  "/posts?filter[title]=News&filter[title]=news",
  "/posts?filter[title]=News&filter[title][eq]=news",
  "/posts?filter[title][eq]=News&filter%5Btitle%5D=news",
  "/posts?filter[title]=news&filter[title]=",
  "/posts?filter[titl%65]=news",
  "/posts?f%69lter[title]=news",
  "/posts?filter[title]=news&utm_source=filter[title]=News",
  "/posts?filter[title]=news&&",
  "/posts?=x&filter[title]=news",
  `/posts/${edgeId(1).toUpperCase()}`,
  `/posts/${edgeId(1)}?populate=`,
  `/posts/${edgeId(1)}?page=2&filter[title]=x&fields=title`,
  `/posts/%61${edgeId(1).slice(1)}`,
  "/p%6fsts",
  "/post%73?page=2",
  "/%5fschemas",
  "/%5Fschemas/posts",
  "/_schemas?page=2&filter[title][like]=x",
  "/_schemas/posts?sort=title",
  "/a%2Db_c9",
];

const MISSING = [
  "/_schemas/nope",
  "/nope",
  "/Posts",
  "/_SCHEMAS",
  "/_schemas/_schemas",
  "/constructor",
  "/posts?page=999",
  "/posts?page=0",
  "/posts?page=-1",
  "/posts?page=1.0",
  "/posts?page=1e0",
  "/posts?page=+1",
  "/posts?page=99999999999999999999999999",
  `/posts?page=${"1".repeat(300)}`,
  "/posts?page=x",
  "/posts?page=%zz",
  "/posts?page=%EF%BC%91",
  "/posts?filter[title]=nobody",
  "/posts?filter[title]=NEWS",
  "/posts?filter[title]=news%00",
  "/posts?filter[title]=%00",
  "/posts?filter[title]=%zz",
  "/posts?filter[title]=%",
  "/posts?filter[title]=%e",
  "/posts?filter[title]=%ff",
  "/posts?filter[title]=%c3",
  "/posts?filter[title]=%c0%ae",
  "/posts?filter[title]=%ed%a0%80",
  "/posts?filter[title]=%f5%80%80%80",
  "/posts?utm_source=%zz",
  "/posts?utm_source=%ff&page=2",
  "/posts?filter[price]=1.0",
  "/posts?filter[price]=01",
  "/posts?filter[active]=1",
  "/posts?filter[active]=TRUE",
  `/posts?filter[filter]=${edgeId(1).toUpperCase()}`,
  "/posts?filter[day]=2026-01-20T00:00:00Z",
  "/posts?filter[published_at]=2026-01-20T12:01:00Z",
  `/posts?filter[title]=${"z".repeat(5_000)}`,
  "/posts?filter[title][like]=news",
  "/posts?page=2&filter[nope][like]=news",
  `/posts/${edgeId(999)}`,
  "/posts/nope",
  `/posts/{${edgeId(1)}}`,
  `/posts/${edgeId(1)}0`,
  "/posts/SEARCH",
];

const COUNTED = [
  "/posts?per_page=2",
  "/posts?per_page=2&page=1",
  "/posts?fields=title",
  "/posts?filter[title]=news&page=1",
  "/posts?sort=title&page=1",
  "/posts?filter[title]=news&sort=title",
  "/posts?filter[title]=news&filter[price]=1",
  "/posts?filter[title][neq]=news",
  "/posts?filter[title][in]=news",
  "/posts?filter[price][gte]=1",
  "/posts?filter[title][contains]=news",
  "/posts?filter%5Bprice%5D%5Bgte%5D=1",
  "/posts?filter[owner]=Shop",
  "/posts?filter[nope]=1",
  "/posts?sort=nope",
  "/posts?sort=title,price",
  "/posts?sort=--title",
  "/posts?sort=+title",
  "/posts?sort=Title",
  "/posts?sort=constructor",
  "/posts?sort=../../page/1",
  "/posts?filter=news",
  "/posts?filter[]=news",
  "/posts?filter[title=news",
  "/posts?filter[title]x=news",
  "/posts?filter[title][]=news",
  "/posts?filter[title][EQ]=news",
  "/posts?filter[title][eq][eq]=news",
  "/posts?filter[title][eq=news",
  "/posts?filter[../page]=1",
  "/posts?filter[constructor]=1",
  "/posts?filter[Title]=news",
  "/posts?filter[id]=x",
  "/posts/search?q=news",
  "/posts/search?q=news&page=1",
  "/posts/search",
  "/search/search?q=news",
  `/posts/${edgeId(1)}?populate=filter`,
  `/posts/${edgeId(1)}?populate=nope`,
  "/nope?filter[a]=b",
  "/nope/search",
];

const REFUSED = ["", "/", "/posts/nope/nope", `/posts/${edgeId(1)}/x`, "/_schemas/posts/x", "/posts//"];

const MALFORMED = [
  "/",
  "/api/v1x/posts",
  "/API/v1/posts",
  "/api/v2/posts",
  "/api/v1/posts%2Fpage",
  "/api/v1/posts%00",
  "/api/v1/%zz",
  "/api/v1/posts/%",
  "/api/v1/%ff",
  "/api/v1/posts%",
  "//api/v1/posts",
  "/api//v1/posts",
  "/api/v1//posts",
  "/api/v1/./posts",
  "/api/v1/../v1/posts",
  "/api/v1/posts/../posts",
  "/api/v1/%2e%2e/v1/posts",
  "/api/v1/%2E/posts",
  "/../../etc/passwd",
  "/api/v1/../../../etc/passwd",
  "/api/v1/..%2f..%2fetc%2fpasswd",
  "/.precast/changes.json",
  "/x-53686f70/v1/_schemas.json",
  "/x-53686f70/v1/posts/page/1.json",
  "/api/v1/posts/page/1.json",
  "/api/v1/..%5c..%5c.precast",
  "/api/v1/posts;page=2",
  "/api/v1/posts&page=2",
  "/api/v1/posts%3Fpage=2",
  "/api/v1/+posts",
  "/api/v1/posts%20",
];

const WRONG_KEYS: readonly (readonly string[])[] = [
  [],
  [""],
  ["sHOP"],
  ["sHop"],
  ["Shop2"],
  ["Sho"],
  ["x-53686f7"],
  ["Shop,shop"],
  ["shop, Shop"],
  ["Shop/../shop"],
  ["__proto__"],
  ["toString"],
  ["*"],
  ["Shop", "shop"],
  ["Shop", "Shop"],
];
