/** Finds values for as long as something else keeps them. It costs no memory for values and needs no limit. */

export type WeakValues<V extends object> = {
  readonly find: (key: string) => V | undefined;
  readonly add: (key: string, value: V) => void;
};

export function openWeakValues<V extends object>(): WeakValues<V> {
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
