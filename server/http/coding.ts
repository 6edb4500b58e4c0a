/** Content coding: what a client wants its body to be compressed with, and the compressing (RFC 9110 section 12.5.3). */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import Negotiator from "negotiator";
import { type Body, type Coding, codedEtag } from "../../shared/answer.ts";

export type Coder = {
  /** The coding that a client prefers; null for none. */
  readonly choose: (acceptEncoding: string | undefined) => Coding | null;
  /** The body in that coding. One that is small, or in a coding already, stays as it is. */
  readonly encode: <B extends Body>(body: B, coding: Coding | null) => Promise<B>;
};

/** Where the client has no wish: the smaller comes first. */
const PREFERRED: readonly Coding[] = ["br", "gzip"];
/** What fits into one packet is there no sooner for being smaller. */
const SMALL = 1_024;
/** So many spellings of a wish are remembered, if they are no longer than browsers' are. */
const MAX_KNOWN = 200;
const MAX_SPELLING = 100;

export function openCoder(): Coder {
  const known = new Map<string, Coding | null>();
  const making = new Map<string, Promise<Buffer>>();
  /** What was made of a body, as long as somebody keeps that. */
  const made = new WeakMap<Body, Partial<Record<Coding, Buffer>>>();

  const choose: Coder["choose"] = (acceptEncoding) => {
    if (acceptEncoding === undefined) return null;
    const before = known.get(acceptEncoding);
    if (before !== undefined) return before;
    const coding = negotiate(acceptEncoding);
    if (known.size >= MAX_KNOWN) known.clear();
    if (acceptEncoding.length <= MAX_SPELLING) known.set(acceptEncoding, coding);
    return coding;
  };

  /** Made once for all who ask for it at a time, in another thread. */
  const make = (bytes: string | Buffer, coding: Coding, etag: string) => {
    const before = making.get(etag);
    if (before !== undefined) return before;
    const begun = compress(bytes, coding).finally(() => making.delete(etag));
    making.set(etag, begun);
    return begun;
  };
  const encode: Coder["encode"] = async (body, coding) => {
    if (coding === null || body.coding !== undefined || Buffer.byteLength(body.bytes) < SMALL) return body;
    const etag = codedEtag(body.etag, coding);
    const before = made.get(body)?.[coding];
    const bytes = before ?? (await make(body.bytes, coding, etag));
    if (before === undefined) made.set(body, { ...made.get(body), [coding]: bytes });
    return { ...body, bytes, etag, coding };
  };
  return { choose, encode };
}

/** The library's types do not know of its second parameter, which decides between equal wishes. */
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
/** Higher ones take many times as long for a few per cent. */
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

/** What zlib gives is the beginning of 16 KB, all of which it would hold for as long as it is kept: hence the copy. */
async function compress(bytes: string | Buffer, coding: Coding): Promise<Buffer> {
  return Buffer.from(await COMPRESSORS[coding](bytes));
}
