/** Encodes answers for the wire: chooses a content coding, compresses bodies (RFC 9110 section 12.5.3), and sends. */
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { LRUCache } from "lru-cache";
import Negotiator from "negotiator";
import {
  type Answer,
  type Body,
  type Coding,
  codedEtag,
  type RequestContext,
  refusalAnswer,
} from "../../shared/api/answer.ts";
import { isTemporary, type Refusal } from "../../shared/api/errors.ts";
import { release } from "./connection.ts";

/** An answer in the form in which node:http sends it fastest. */
export type EncodedResponse = {
  readonly status: number;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly body: Buffer | null;
};

export function encodeResponse({ status, headers, body }: Answer): EncodedResponse {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const raw = Object.entries(headers).flat();
  if (bytes !== null) raw.push("Content-Length", String(bytes.length));
  return { status, headers: raw, body: bytes };
}

const refusals = new WeakMap<Refusal, Map<string, EncodedResponse>>();

/**
 * Builds the answer to a refused request. A temporary refusal (5xx) may go to many clients at once, so its answer is
 * built once for each set of headers that it can have. `context` is null when the app is not known.
 */
export function encodeRefusal(refusal: Refusal, context: RequestContext | null, tagged = false): EncodedResponse {
  const isSpecial = context === null || context.warning !== null;
  if (isSpecial || !isTemporary(refusal)) return encodeResponse(refusalAnswer(refusal, context, tagged));
  const ways = refusals.get(refusal) ?? new Map<string, EncodedResponse>();
  const { price, fromTree } = context;
  const way = `${price.shape} ${price.counted} ${fromTree}`;
  const response = ways.get(way) ?? encodeResponse(refusalAnswer(refusal, context));
  refusals.set(refusal, ways.set(way, response));
  return response;
}

/** Node itself omits the body of an answer to HEAD. */
export function send(outgoing: ServerResponse, { status, headers, body }: EncodedResponse, requestId: string): void {
  outgoing.writeHead(status, [...headers, "X-Request-Id", requestId]).end(body ?? undefined);
  release(outgoing);
}

// Chooses the coding that a client prefers, and compresses with it.

type Coder = {
  /** Returns the coding that the client prefers; null for none. */
  readonly choose: (acceptEncoding: string | undefined) => Coding | null;
  /** Returns the body in that coding. A body that is small or already coded is returned unchanged. */
  readonly encode: <B extends Body>(body: B, coding: Coding | null) => Promise<B>;
};

/** The codings, best first, for clients that rank them equally: Brotli gives the smaller body. */
const PREFERRED: readonly Coding[] = ["br", "gzip"];
/** Bodies of fewer bytes are not compressed: they fit into one packet, and a smaller one would arrive no sooner. */
const SMALL = 1_024;
/** Number of Accept-Encoding values whose coding is remembered: more than browsers and CDNs send. */
const MAX_KNOWN = 200;
/** Characters of the longest of them, so that they take little memory. */
const MAX_SPELLING = 100;
/** Bytes of compressed bodies that are kept. */
const MAX_COMPRESSED = 8_000_000;

export function openCoder(): Coder {
  const choices = new LRUCache<string, Coding | "identity">({ max: MAX_KNOWN });
  /**
   * Compressed bytes by their ETag, for requests at the same time and later ones. A file of the tree is another body
   * each time it is read, once for each spelling of its request: without this, a parameter that means nothing would
   * cost as much as compressing the largest list.
   */
  const compressed = new LRUCache<string, Buffer, { readonly bytes: string | Buffer; readonly coding: Coding }>({
    maxSize: MAX_COMPRESSED,
    sizeCalculation: ({ length }) => length,
    fetchMethod: (_, __, { context: { bytes, coding } }) => compress(bytes, coding),
  });

  return {
    choose: (acceptEncoding) => {
      if (acceptEncoding === undefined) return null;
      let coding = choices.get(acceptEncoding);
      if (coding === undefined) {
        coding = negotiate(acceptEncoding);
        if (acceptEncoding.length <= MAX_SPELLING) choices.set(acceptEncoding, coding);
      }
      return coding === "identity" ? null : coding;
    },
    encode: async (body, coding) => {
      if (coding === null || body.coding !== undefined || Buffer.byteLength(body.bytes) < SMALL) return body;
      const etag = codedEtag(body.etag, coding);
      const bytes = await compressed.forceFetch(etag, { context: { bytes: body.bytes, coding } });
      return { ...body, bytes, etag, coding };
    },
  };
}

/** The library's types lack the second parameter of `encodings`, which ranks codings that the client ranks equally. */
type Wanted = {
  encodings: (available: readonly string[], options: { readonly preferred: readonly string[] }) => readonly string[];
};

function negotiate(acceptEncoding: string): Coding | "identity" {
  const wanted: Wanted = new Negotiator({ headers: { "accept-encoding": acceptEncoding } });
  const [first] = wanted.encodings([...PREFERRED, "identity"], { preferred: PREFERRED });
  return PREFERRED.find((coding) => coding === first) ?? "identity";
}

const toGzip = promisify(gzip);
const toBrotli = promisify(brotliCompress);
/** Higher qualities take many times as long and save only a few per cent. */
const BROTLI_QUALITY = 5;

const COMPRESSORS: Readonly<Record<Coding, (bytes: string | Buffer) => Promise<Buffer>>> = {
  gzip: toGzip,
  br: (bytes) =>
    toBrotli(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: Buffer.byteLength(bytes),
      },
    }),
};

/** Copies zlib's result, which is a slice of a 16 KB buffer: a kept slice would hold the whole buffer in memory. */
async function compress(bytes: string | Buffer, coding: Coding): Promise<Buffer> {
  return Buffer.from(await COMPRESSORS[coding](bytes));
}
