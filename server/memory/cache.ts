/**
 * A cache limited in bytes, with second-chance eviction: the oldest entry is evicted first, unless it was found since
 * it was last considered; then it moves to the end as if it were new. A lookup costs one Map access.
 */

export type Cache<V> = {
  readonly find: (key: string) => V | undefined;
  /** `size` is in bytes; a value larger than the whole cache is not kept. */
  readonly keep: (key: string, value: V, size: number) => void;
  readonly drop: (key: string) => void;
  readonly size: () => { readonly entries: number; readonly bytes: number };
};

type KeptEntry<V> = { readonly value: V; readonly size: number; hasSecondChance: boolean };

export function openCache<V>(maxBytes: number): Cache<V> {
  const kept = new Map<string, KeptEntry<V>>();
  let bytes = 0;

  const drop = (key: string) => {
    bytes -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  };
  const makeRoom = () => {
    for (const [key, one] of kept) {
      if (bytes <= maxBytes) return;
      drop(key);
      if (one.hasSecondChance) add(key, { ...one, hasSecondChance: false });
    }
  };
  const add = (key: string, one: KeptEntry<V>) => {
    kept.set(key, one);
    bytes += one.size;
  };
  return {
    find: (key) => {
      const one = kept.get(key);
      if (one === undefined) return undefined;
      one.hasSecondChance = true;
      return one.value;
    },
    keep: (key, value, size) => {
      drop(key);
      if (size > maxBytes) return;
      add(key, { value, size, hasSecondChance: true });
      makeRoom();
    },
    drop,
    size: () => ({ entries: kept.size, bytes }),
  };
}
