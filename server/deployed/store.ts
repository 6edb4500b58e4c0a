/** Asks the store that a tree was deployed to, and notices when it is away: then it is asked only now and then. */

/** What a server needs of a bucket, a folder or a CDN. */
export type TreeStore = {
  /** For messages. */
  readonly name: string;
  /** Null when nothing has this key; "same" when what has it still has this ETag. Throws when the store cannot be read. */
  readonly get: (key: string, etag: string | null) => Promise<StoredFile | "same" | null>;
  /** Whether a file may be older than what was last deployed, as on a CDN that was not purged. */
  readonly mayLag: boolean;
};

/** `etag` is null where the store gives none. */
export type StoredFile = { readonly bytes: Buffer; readonly etag: string | null };

export type WatchedStore = TreeStore & { readonly isAway: () => boolean };

/** The store could not be asked, which has been reported. */
export class StoreAwayError extends Error {
  constructor(cause: unknown) {
    super("the store of the tree is away", { cause });
    this.name = "StoreAwayError";
  }
}

/** Milliseconds. */
const BETWEEN_TRIES = 1_000;

/** `get` throws nothing but StoreAwayError: at once, while the store is away and the next try is not due. */
export function watchStore(store: TreeStore, report: (news: string) => void): WatchedStore {
  let isAway = false;
  let nextTry = 0;

  function leave(error: unknown): StoreAwayError {
    if (!isAway) report(`${describeFault(error)} ${AWAY} until the tree at ${store.name} can be read again.`);
    isAway = true;
    nextTry = performance.now() + BETWEEN_TRIES;
    return new StoreAwayError(error);
  }

  return {
    ...store,
    get: async (key, etag) => {
      if (isAway && performance.now() < nextTry) throw new StoreAwayError(null);
      nextTry = performance.now() + BETWEEN_TRIES;
      try {
        // The store may just have closed a connection that was kept.
        const got = await store.get(key, etag).catch(() => store.get(key, etag));
        if (isAway) report(`The tree at ${store.name} can be read again.`);
        isAway = false;
        return got;
      } catch (error) {
        throw leave(error);
      }
    },
    isAway: () => isAway,
  };
}

const AWAY = "Free requests are answered from what is kept of it on this machine, and all others live,";

function describeFault(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
