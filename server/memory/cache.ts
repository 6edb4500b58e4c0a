/**
 * A cache limited in bytes, with second-chance eviction: the oldest entry is evicted first, unless it was found since
 * it was last considered; then it moves to the end as if it were new. A lookup costs one Map access.
 */

export type Cache<V> = {
  readonly find: (key: string) => V | undefined;
  /** `size` is in bytes; a value larger than the whole cache is not held. */
  readonly hold: (key: string, value: V, size: number) => void;
  readonly drop: (key: string) => void;
  readonly size: () => { readonly entries: number; readonly bytes: number };
};

type Held<V> = { readonly value: V; readonly size: number; isWanted: boolean };

export function openCache<V>(room: number): Cache<V> {
  const held = new Map<string, Held<V>>();
  let bytes = 0;

  const drop = (key: string) => {
    bytes -= held.get(key)?.size ?? 0;
    held.delete(key);
  };
  const makeRoom = () => {
    for (const [key, one] of held) {
      if (bytes <= room) return;
      drop(key);
      if (one.isWanted) add(key, { ...one, isWanted: false });
    }
  };
  const add = (key: string, one: Held<V>) => {
    held.set(key, one);
    bytes += one.size;
  };
  return {
    find: (key) => {
      const one = held.get(key);
      if (one === undefined) return undefined;
      one.isWanted = true;
      return one.value;
    },
    hold: (key, value, size) => {
      drop(key);
      if (size > room) return;
      add(key, { value, size, isWanted: true });
      makeRoom();
    },
    drop,
    size: () => ({ entries: held.size, bytes }),
  };
}
