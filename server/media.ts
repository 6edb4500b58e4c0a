/**
 * Serves media on a port of their own, to browsers of people who work with content: the files that imports have laid into
 * a folder, and nothing else. The API's port stays as it is.
 */
import { constants } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { H3, type H3Event, HTTPResponse, handleCacheHeaders, toNodeHandler } from "h3";
import { APP_KEY } from "../shared/api/catalog.ts";
import { isMediaName, loadMediaTypes, nameMediaFolder } from "../shared/media.ts";
import { listenOn } from "./http/listen.ts";

export type MediaOptions = {
  readonly host: string;
  readonly port: number;
  /** The folder of all media, which need not exist. */
  readonly folder: string;
  readonly onError: (error: unknown) => void;
};

export type MediaServer = { readonly url: string; readonly close: () => Promise<void> };

export async function openMedia({ host, port, folder, onError }: MediaOptions): Promise<MediaServer> {
  const findType = await loadMediaTypes();
  const app = new H3({
    silent: true,
    allowMalformedURL: true,
    onError: (error) => {
      onError(error.cause ?? error);
      return refuse(500, "This file could not be read.");
    },
  });
  app.use((event) => answer(event, folder, findType));
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, toNodeHandler(app));
  return {
    url: await listenOn(server, host, port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type FindType = (name: string) => string;

async function answer(event: H3Event, folder: string, findType: FindType): Promise<HTTPResponse> {
  const { method } = event.req;
  if (method !== "GET" && method !== "HEAD") return refuse(405, "Use GET or HEAD.", { Allow: "GET, HEAD" });
  const asked = readTarget(event.runtime?.node?.req.url ?? "");
  const file = asked === null ? null : await openFile(folder, asked);
  if (asked === null || file === null) return refuse(404, "There is no such file.");
  return send(event, file, findType(asked.name)).catch(async (error: unknown) => {
    await file.handle.close();
    throw error;
  });
}

/** Texts that no browser takes for a page. */
function refuse(status: number, text: string, more: Record<string, string> = {}): HTTPResponse {
  const headers = { "Content-Type": "text/plain", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store" };
  return new HTTPResponse(`${text}\n`, { status, headers: { ...headers, ...more } });
}

// Finds the file that a request asks for.

type Asked = { readonly appKey: string; readonly name: string };

/** Only addresses of media are read, and one name alone is decoded: nothing can lead out of the folder. */
function readTarget(target: string): Asked | null {
  const [, appKey = "", encoded = ""] = /^\/([^/?]+)\/cms\/media\/([^/?]+)(?:\?.*)?$/s.exec(target) ?? [];
  const name = decode(encoded);
  return APP_KEY.test(appKey) && isMediaName(name) ? { appKey, name } : null;
}

/** Empty for what does not decode. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

type File = { readonly handle: FileHandle; readonly size: number; readonly modified: Date };

/** Null where there is no file of exactly this name, or a link or a pipe. The folder itself may be a link. */
async function openFile(folder: string, { appKey, name }: Asked): Promise<File | null> {
  try {
    const path = join(await realpath(folder), nameMediaFolder(appKey), name);
    return (await realpath(path)) === path ? await openPlain(path) : null;
  } catch (error) {
    if (ABSENT.includes(String((error as NodeJS.ErrnoException).code))) return null;
    throw error;
  }
}

const ABSENT = ["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"];
/** Opening a pipe would wait for somebody who writes. Windows has neither flag. */
const PLAIN = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

async function openPlain(path: string): Promise<File | null> {
  const handle = await open(path, PLAIN);
  const found = await handle.stat();
  if (found.isFile()) return { handle, size: found.size, modified: found.mtime };
  await handle.close();
  return null;
}

// Sends it, or the part that is asked for: browsers play only videos in which they can seek.

/** What can run no script. Anything else, such as SVG and HTML, is opened in a sandbox. */
const HARMLESS = /^(image\/(?!svg)|audio\/|video\/|font\/|application\/pdf$)/;
const SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

async function send(event: H3Event, file: File, type: string): Promise<HTTPResponse> {
  const { handle, size, modified } = file;
  const { headers } = event.res;
  const etag = `"${size.toString(16)}-${modified.getTime().toString(16)}"`;
  headers.set("Content-Type", type);
  headers.set("X-Content-Type-Options", "nosniff");
  if (!HARMLESS.test(type)) headers.set("Content-Security-Policy", SANDBOX);
  // As the API: pages of any origin show media, draw them and load fonts.
  headers.set("Access-Control-Allow-Origin", "*");
  headers.set("Cross-Origin-Resource-Policy", "cross-origin");
  headers.set("Accept-Ranges", "bytes");
  const isKnown = handleCacheHeaders(event, { etag, modifiedTime: modified, cacheControls: ["no-cache"] });
  const range = readRange(event, size, [etag, headers.get("Last-Modified")]);
  if (isKnown || event.req.method === "HEAD" || range === "unsatisfiable" || size === 0) await handle.close();
  if (isKnown) return new HTTPResponse(null, { status: 304 });
  if (range === "unsatisfiable") {
    headers.set("Content-Range", `bytes */${size}`);
    return new HTTPResponse(null, { status: 416 });
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  if (range !== null) headers.set("Content-Range", `bytes ${start}-${end}/${size}`);
  headers.set("Content-Length", String(end - start + 1));
  const isWithoutBody = event.req.method === "HEAD" || size === 0;
  const body = isWithoutBody ? null : Readable.toWeb(handle.createReadStream({ start, end }));
  return new HTTPResponse(body as ReadableStream | null, { status: range === null ? 200 : 206 });
}

type Range = { readonly start: number; readonly end: number };

/** Null for the whole file, as is sent when several ranges are asked for, or one of another version (If-Range). */
function readRange({ req }: H3Event, size: number, versions: (string | null)[]): Range | "unsatisfiable" | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(req.headers.get("Range") ?? "") ?? [];
  const ifRange = req.headers.get("If-Range");
  const isOther = ifRange !== null && !versions.includes(ifRange);
  if (req.method === "HEAD" || isOther || (first === "" && last === "")) return null;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== "" && last !== "" && Number(last) < start) return null;
  return start < size ? { start, end } : "unsatisfiable";
}
