/** A place that takes a tree: what every kind of it can do. Keys are paths with `/`, relative to where the tree lies. */
import { STATE_FOLDER } from "../../../shared/state.ts";

export type Stored = {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Seconds since it was written, by the store's own clock; null where it does not tell. */
  readonly age: number | null;
};

/** How clients and caches are to take a file; a store that keeps bytes alone keeps none of it. */
export type FileHeaders = {
  readonly cacheControl: string;
  readonly cdnCacheControl: string | null;
  readonly tags: readonly string[];
};

/** Written only when there is nothing yet, or what has this ETag. */
export type Condition = { readonly kind: "absent" } | { readonly kind: "etag"; readonly etag: string };

export type PutOptions = {
  readonly headers: FileHeaders;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly condition?: Condition | undefined;
  /** Called before each try; what it throws ends the tries. */
  readonly permit?: (() => void) | undefined;
  /** Ends the tries, and the one that is on its way. */
  readonly signal?: AbortSignal | undefined;
};

/** `unmet`: the condition does not hold. `unsupported`: the store knows no conditions. Without a condition it is neither. */
export type PutOutcome = { readonly kind: "put"; readonly etag: string } | { readonly kind: "unmet" | "unsupported" };

export type Store = {
  /** For people. */
  readonly name: string;
  /** Null where there is nothing. */
  readonly get: (key: string) => Promise<Stored | null>;
  readonly put: (key: string, bytes: Uint8Array<ArrayBuffer>, options: PutOptions) => Promise<PutOutcome>;
  /** Every key, in no order. */
  readonly list: () => AsyncIterable<string>;
  /** One that is not there is removed already. */
  readonly remove: (key: string, permit?: () => void) => Promise<void>;
};

/** What Precast keeps in the store for itself. */
export const STORE_FOLDER = STATE_FOLDER;
export const PRIVATE_HEADERS: FileHeaders = { cacheControl: "no-store", cdnCacheControl: null, tags: [] };
