/** Defines a store: the place that a tree is deployed to. Keys are paths with `/`, relative to the root of the tree. */
import { digestBytes, STATE_FOLDER } from "../../shared/tree.ts";

export type Stored = {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Seconds since the last write, by the clock of the bucket; null for a folder, and if the bucket does not say. */
  readonly age: number | null;
};

/** Headers for clients and caches of a file. A store that keeps only bytes, such as a folder, ignores them. */
export type FileHeaders = {
  readonly cacheControl: string;
  readonly cdnCacheControl: string | null;
  readonly tags: readonly string[];
  /** JSON where it is left out. */
  readonly contentType?: string;
};

/** Writes only if nothing has the key yet (`absent`), or if the stored file has this ETag. */
export type Condition = { readonly kind: "absent" } | { readonly kind: "etag"; readonly etag: string };

export type PutOptions = {
  readonly headers: FileHeaders;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly condition?: Condition | undefined;
  /** Called before each try. When it throws, there are no more tries. */
  readonly throwIfStopped?: (() => void) | undefined;
  /** Aborts the current try and all further ones. */
  readonly signal?: AbortSignal | undefined;
};

/** `unmet`: the condition does not hold. `unsupported`: the store has no conditional writes. Only with a condition. */
export type PutOutcome = { readonly kind: "put"; readonly etag: string } | { readonly kind: "unmet" | "unsupported" };

export type Store = {
  /** For messages. */
  readonly name: string;
  /** Null when nothing has this key. */
  readonly get: (key: string) => Promise<Stored | null>;
  /** Like `get`; "same" when what is stored still has this ETag. */
  readonly getIfChanged: (key: string, etag: string | null) => Promise<Stored | "same" | null>;
  readonly put: (key: string, bytes: Uint8Array<ArrayBuffer>, options: PutOptions) => Promise<PutOutcome>;
  /** All keys that begin with `prefix`, which is empty or a folder with its slash, in no particular order. */
  readonly list: (prefix: string) => AsyncIterable<string>;
  /** Succeeds as well when nothing has this key. */
  readonly remove: (key: string, throwIfStopped?: () => void) => Promise<void>;
};

/** Folder of what Precast keeps in the store for itself. */
export const STORE_FOLDER = STATE_FOLDER;
export const PRIVATE_HEADERS: FileHeaders = { cacheControl: "no-store", cdnCacheControl: null, tags: [] };

// Writes the private files: those that Precast keeps in a store for itself (manifest, journal, list of media, lease).

export function putPrivateFile(
  store: Store,
  key: string,
  text: string,
  options: Omit<PutOptions, "headers" | "sha256">,
): Promise<PutOutcome> {
  const bytes = new TextEncoder().encode(text);
  return store.put(key, bytes, { headers: PRIVATE_HEADERS, sha256: digestBytes(bytes).sha256, ...options });
}

// The lock of an app in a store: only one deploy at a time has it and may write what belongs to the app.

export type StoreLock = {
  /** Throws DeployLockedError when another deploy may have taken over. */
  readonly check: () => void;
  /** False when the store ignores conditional writes: then two deploys that begin simultaneously are not kept apart. */
  readonly conditional: boolean;
  readonly release: () => Promise<void>;
};

export class DeployLockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeployLockedError";
  }
}
