/** Remembers what was computed from an object, for as long as the object is in use. */

/** A function that computes once for each object, and then returns the same result again. */
export function oncePerObject<K extends object, V extends NonNullable<unknown>>(compute: (key: K) => V): (key: K) => V {
  const results = new WeakMap<K, V>();
  return (key) => {
    const known = results.get(key);
    if (known !== undefined) return known;
    const result = compute(key);
    results.set(key, result);
    return result;
  };
}
