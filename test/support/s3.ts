/**
 * A stand-in for S3 on a real socket: it checks signatures, stores objects, pages its lists, honours conditional
 * writes, and fails as the test says. The bucket is named in the path or the host. Source: Amazon S3 API Reference.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Keys, type Signed, signatureProblem } from "./sigv4.ts";

export type S3Object = {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modified: Date;
  /** Content-Type, Cache-Control and `x-amz-meta-…`. */
  readonly headers: Readonly<Record<string, string>>;
};

export type S3Request = {
  /** From 1. */
  readonly number: number;
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
};

/** What goes wrong with a request. */
export type Trouble =
  /** The request is not performed, or only if it `isDone`, and gets this answer. */
  | {
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      readonly isDone?: boolean;
    }
  /** The connection closes before the request is performed, or after it but before the answer. */
  | "cut"
  | "cut when done"
  /** The request is performed and answered when this promise has resolved; if it `isDone`, it is performed at once. */
  | { readonly after: Promise<unknown>; readonly isDone?: boolean }
  /** The request is neither performed nor answered. */
  | "silence"
  /** The request is performed, and the body of its answer is changed. */
  | ((body: string) => string);

export type S3 = {
  readonly url: string;
  readonly keys: Keys;
  readonly objects: Map<string, S3Object>;
  readonly requests: S3Request[];
  /** The numbers of the requests whose connection closed before they were answered. */
  readonly abandoned: number[];
  /** Called before each request is performed. */
  trouble: (request: S3Request) => Trouble | undefined;
  /** Called before an object is stored. */
  watch: (key: string, bytes: Buffer) => void;
  /** By how many milliseconds its clock is ahead of the test's. */
  ahead: number;
  /** The environment variables that a client needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
};

export type S3Options = {
  readonly bucket?: string;
  readonly region?: string;
  /** Keys on a page of a list. */
  readonly page?: number;
  /**
   * How it treats conditional writes: "ignored" writes in any case, the last ignores If-Match. A status refuses all of
   * them.
   */
  readonly conditions?: "honoured" | "ignored" | 304 | 400 | 405 | 501 | "only for absent objects";
  /** Sends ETags as weak ones, as a compressing proxy does. */
  readonly weak?: boolean;
  readonly sessionToken?: string;
};

export async function startS3(options: S3Options = {}): Promise<S3> {
  const { bucket = "content", region = "eu-test-1", page = 7, conditions = "honoured", sessionToken } = options;
  const etagText = (etag: string) => (options.weak === true ? `W/${etag}` : etag);
  const keys: Keys = {
    accessKeyId: "AKIATEST",
    secretAccessKey: "secret/with+signs=",
    ...(sessionToken === undefined ? {} : { sessionToken }),
  };
  const objects = new Map<string, S3Object>();
  const requests: S3Request[] = [];
  const abandoned: number[] = [];
  const now = () => new Date(Date.now() + s3.ahead);

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => answer(request, response, Buffer.concat(chunks)));
    request.on("error", () => {});
  });

  /** Whether the host names the bucket. */
  function isNamed(host = ""): boolean {
    return host.startsWith(`${bucket}.`);
  }

  function answer(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const target = request.url ?? "";
    const url = new URL(target, "http://s3");
    const [, ...parts] = decodeURIComponent(url.pathname).split("/");
    const path = isNamed(request.headers.host) ? parts : parts.slice(1);
    const asked: S3Request = {
      number: requests.length + 1,
      method: request.method ?? "",
      key: path.join("/"),
      query: url.searchParams,
      headers: request.headers,
    };
    requests.push(asked);
    response.on("close", () => response.writableEnded || abandoned.push(asked.number));
    const trouble = s3.trouble(asked);
    const send = (status: number, headers: Record<string, string> = {}, text: string | Buffer = "") => {
      if (trouble === "cut when done") {
        request.socket.destroy();
        return;
      }
      const bytes = Buffer.from(typeof trouble === "function" ? trouble(String(text)) : text);
      const common = { Date: now().toUTCString(), "Content-Length": String(bytes.length) };
      response.writeHead(status, { ...common, ...headers });
      response.end(request.method === "HEAD" ? undefined : bytes);
    };
    const perform = () => decide(asked, { method: asked.method, target, headers: request.headers, body });
    const go = () => send(...perform());
    if (trouble === "cut") request.socket.destroy();
    else if (typeof trouble === "object") {
      const done = trouble.isDone === true ? perform() : null;
      if ("status" in trouble) send(trouble.status, trouble.headers, trouble.body);
      else void trouble.after.then(() => (done === null ? go() : send(...done)));
    } else if (trouble !== "silence") go();
  }

  function decide(asked: S3Request, signed: Signed): Answer {
    const problem = signatureProblem(signed, keys, { region, service: "s3" }, now());
    if (problem !== null) return refusal(problem, `<Region>${region}</Region>`);
    const [, name] = decodeURIComponent(signed.target.split("?")[0] as string).split("/");
    return name === bucket || isNamed(signed.headers.host) ? carryOut(asked, signed.body) : refusal("NoSuchBucket");
  }

  function carryOut({ method, key, query, headers }: S3Request, body: Buffer): Answer {
    if (key === "") {
      if (method === "POST" && query.has("delete")) return removeMany(body);
      if (query.has("location")) return xml(`<LocationConstraint>${region}</LocationConstraint>`);
      return method === "HEAD" ? [200, { "x-amz-bucket-region": region }, ""] : list(query);
    }
    if (method === "PUT") return put(key, headers, body);
    if (method === "DELETE") {
      objects.delete(key);
      return [204, {}, ""];
    }
    return get(key, headers["if-none-match"]);
  }

  function put(key: string, headers: IncomingMessage["headers"], bytes: Buffer): Answer {
    const before = objects.get(key);
    const { "if-none-match": absent, "if-match": same } = headers;
    if (typeof conditions === "number" && (absent ?? same) !== undefined)
      return [conditions, {}, conditions === 304 ? "" : "<Error><Code>NotSupported</Code></Error>"];
    if (conditions === "honoured" || conditions === "only for absent objects") {
      if (absent !== undefined && absent !== "*") return refusal("NotImplemented");
      if (absent === "*" && before !== undefined) return refusal("PreconditionFailed");
    }
    if (conditions === "honoured") {
      if (same !== undefined && before === undefined) return refusal("NoSuchKey");
      if (same !== undefined && same !== before?.etag) return refusal("PreconditionFailed");
    }
    const etag = `"${createHash("md5").update(bytes).digest("hex")}"`;
    const kept = Object.entries(headers).filter(([name]) => KEPT.test(name));
    s3.watch(key, bytes);
    objects.set(key, { bytes, etag, modified: now(), headers: Object.fromEntries(kept) as Record<string, string> });
    return [200, { ETag: etagText(etag) }, ""];
  }

  function get(key: string, ifNoneMatch: string | undefined): Answer {
    const object = objects.get(key);
    if (object === undefined) return refusal("NoSuchKey");
    const { bytes, etag, modified, headers } = object;
    if (ifNoneMatch === etagText(etag)) return [304, { ETag: etagText(etag) }, ""];
    return [
      200,
      { ...headers, ETag: etagText(etag), "Last-Modified": modified.toUTCString(), "Accept-Ranges": "bytes" },
      bytes,
    ];
  }

  /** ListObjects and ListObjectsV2, with groups by delimiter. */
  function list(query: URLSearchParams): Answer {
    const [prefix, delimiter] = [query.get("prefix") ?? "", query.get("delimiter") ?? ""];
    const token = query.get("continuation-token");
    const after = token === null ? (query.get("marker") ?? query.get("start-after") ?? "") : untoken(token);
    const isEncoded = query.get("encoding-type") === "url";
    const spell = isEncoded ? urlEncoded : escapeXml;
    const most = Math.min(page, Number(query.get("max-keys") ?? page));
    const groups = new Set<string>();
    const found: string[] = [];
    for (const key of [...objects.keys()].filter((key) => key.startsWith(prefix)).sort()) {
      const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      const shown = end < 0 ? key : key.slice(0, end + delimiter.length);
      if (shown <= after || groups.has(shown)) continue;
      if (end >= 0) groups.add(shown);
      found.push(shown);
    }
    const shown = found.slice(0, most);
    const last = shown.at(-1) ?? "";
    const parts = shown.map((name) => (groups.has(name) ? groupXml(spell(name)) : contentsXml(spell(name), name)));
    const more = found.length > most;
    const next = more
      ? `<NextContinuationToken>${tokenOf(last)}</NextContinuationToken><NextMarker>${spell(last)}</NextMarker>`
      : "";
    const head = `<Name>${bucket}</Name><Prefix>${spell(prefix)}</Prefix><KeyCount>${shown.length}</KeyCount><MaxKeys>${most}</MaxKeys>${isEncoded ? "<EncodingType>url</EncodingType>" : ""}`;
    return xml(
      `<ListBucketResult>${head}<IsTruncated>${more}</IsTruncated>${next}${parts.join("")}</ListBucketResult>`,
    );
  }

  function contentsXml(spelled: string, key: string): string {
    const { etag, bytes, modified } = objects.get(key) as S3Object;
    const date = modified.toISOString();
    return `<Contents><Key>${spelled}</Key><LastModified>${date}</LastModified><ETag>${escapeXml(etag)}</ETag><Size>${bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  }

  function removeMany(body: Buffer): Answer {
    const names = [...String(body).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
    for (const key of names) objects.delete(key);
    return xml(`<DeleteResult>${names.map((key) => `<Deleted><Key>${key}</Key></Deleted>`).join("")}</DeleteResult>`);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = {
    AWS_ACCESS_KEY_ID: keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_ENDPOINT_URL: url,
    ...(sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: sessionToken }),
  };
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const told = { trouble: () => undefined, watch: () => {}, ahead: 0 };
  const s3: S3 = { url, keys, objects, requests, abandoned, ...told, env, close };
  return s3;
}

type Answer = readonly [status: number, headers: Record<string, string>, body: string | Buffer];

const KEPT = /^(content-type|cache-control|content-encoding|x-amz-meta-.*)$/;

const STATUS: Readonly<Record<string, number>> = {
  NoSuchBucket: 404,
  NoSuchKey: 404,
  PreconditionFailed: 412,
  NotImplemented: 501,
  AuthorizationHeaderMalformed: 400,
  XAmzContentSHA256Mismatch: 400,
  InvalidToken: 400,
};

function refusal(code: string, more = ""): Answer {
  const text = `<Error><Code>${code}</Code><Message>As the stand-in sees it.</Message>${more}</Error>`;
  return [
    STATUS[code] ?? 403,
    { "Content-Type": "application/xml" },
    `<?xml version="1.0" encoding="UTF-8"?>\n${text}`,
  ];
}

function xml(text: string): Answer {
  return [200, { "Content-Type": "application/xml" }, `<?xml version="1.0" encoding="UTF-8"?>\n${text}`];
}

function groupXml(spelled: string): string {
  return `<CommonPrefixes><Prefix>${spelled}</Prefix></CommonPrefixes>`;
}

/** Contains characters that XML has to escape. */
function tokenOf(key: string): string {
  return escapeXml(`&<"${Buffer.from(key).toString("base64url")}`);
}

function untoken(token: string): string {
  return token.startsWith('&<"') ? Buffer.from(token.slice(3), "base64url").toString() : "";
}

/** Spaces become `+`, slashes stay. */
function urlEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%2F", "/");
}

/** Uses the three kinds of references: stores differ in that. */
const REFERENCES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&#60;", ">": "&gt;", '"': "&#x22;" };

function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => REFERENCES[character] ?? "");
}
