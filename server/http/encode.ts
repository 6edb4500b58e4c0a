/** Chooses the content coding that a client prefers, and compresses bodies with it (RFC 9110 section 12.5.3). */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import Negotiator from "negotiator";
import { type Body, type Coding, codedEtag } from "../../shared/api/answer.ts";

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
/**
 * Number of Accept-Encoding values whose coding is remembered. Only values of up to MAX_SPELLING characters are, which
 * includes those of browsers.
 */
const MAX_KNOWN = 200;
const MAX_SPELLING = 100;

export function openCoder(): Coder {
  const choices = new Map<string, Coding | null>();
  const running = new Map<string, Promise<Buffer>>();
  /** Compressed bytes of a body, for as long as the body itself is kept. */
  const compressed = new WeakMap<Body, Partial<Record<Coding, Buffer>>>();
  /**
   * Compressed bytes by their ETag. A file of the tree is another body each time it is read, once for each spelling of
   * its request: without this, a parameter that means nothing would cost as much as compressing the largest list.
   */
  const known = openWeakValues<Buffer>();

  const choose: Coder["choose"] = (acceptEncoding) => {
    if (acceptEncoding === undefined) return null;
    const before = choices.get(acceptEncoding);
    if (before !== undefined) return before;
    const coding = negotiate(acceptEncoding);
    if (choices.size >= MAX_KNOWN) choices.clear();
    if (acceptEncoding.length <= MAX_SPELLING) choices.set(acceptEncoding, coding);
    return coding;
  };

  async function compressNew(bytes: string | Buffer, coding: Coding, etag: string): Promise<Buffer> {
    const result = await compress(bytes, coding);
    known.add(etag, result);
    return result;
  }

  /** Compresses in another thread, once for all requests that want the same bytes at the same time. */
  const compressOnce = (bytes: string | Buffer, coding: Coding, etag: string) => {
    const before = running.get(etag);
    if (before !== undefined) return before;
    const run = compressNew(bytes, coding, etag).finally(() => running.delete(etag));
    running.set(etag, run);
    return run;
  };
  const encode: Coder["encode"] = async (body, coding) => {
    if (coding === null || body.coding !== undefined || Buffer.byteLength(body.bytes) < SMALL) return body;
    const etag = codedEtag(body.etag, coding);
    const before = compressed.get(body)?.[coding];
    const bytes = before ?? known.find(etag) ?? (await compressOnce(body.bytes, coding, etag));
    if (before === undefined) compressed.set(body, { ...compressed.get(body), [coding]: bytes });
    return { ...body, bytes, etag, coding };
  };
  return { choose, encode };
}

/** The library's types lack the second parameter of `encodings`, which ranks codings that the client ranks equally. */
type Wanted = {
  encodings: (available: readonly string[], options: { readonly preferred: readonly string[] }) => readonly string[];
};

function negotiate(acceptEncoding: string): Coding | null {
  const wanted: Wanted = new Negotiator({ headers: { "accept-encoding": acceptEncoding } });
  const [first] = wanted.encodings([...PREFERRED, "identity"], { preferred: PREFERRED });
  return PREFERRED.find((coding) => coding === first) ?? null;
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

// Finds values for as long as something else keeps them. It costs no memory for values and needs no limit.

type WeakValues<V extends object> = {
  readonly find: (key: string) => V | undefined;
  readonly add: (key: string, value: V) => void;
};

function openWeakValues<V extends object>(): WeakValues<V> {
  const values = new Map<string, WeakRef<V>>();
  const find = (key: string) => values.get(key)?.deref();
  const registry = new FinalizationRegistry<string>((key) => {
    // Another value may have the key by now.
    if (find(key) === undefined) values.delete(key);
  });

  return {
    find,
    add: (key, value) => {
      values.set(key, new WeakRef(value));
      registry.register(value, key);
    },
  };
}
