/**
 * Remembers which files a build has put, as 64-bit hashes of their paths, so that the build can remove all others. With
 * a million files, a stale file has the hash of one of them with a probability of 5e-14. It then stays as long as that
 * file does.
 */
import { hash } from "node:crypto";

export type PutPaths = {
  readonly add: (path: string) => void;
  readonly has: (path: string) => boolean;
};

export function openPutPaths(): PutPaths {
  let hashes = new BigUint64Array(1 << 10);
  let size = 0;

  /** Index at which a hash is stored, or would be. */
  const placeOf = (table: BigUint64Array, pathHash: bigint) => {
    let at = Number(pathHash & BigInt(table.length - 1));
    while (table[at] !== 0n && table[at] !== pathHash) at = (at + 1) & (table.length - 1);
    return at;
  };
  const grow = () => {
    const larger = new BigUint64Array(hashes.length * 2);
    for (const pathHash of hashes) if (pathHash !== 0n) larger[placeOf(larger, pathHash)] = pathHash;
    hashes = larger;
  };
  const add = (path: string) => {
    const pathHash = hashOf(path);
    const at = placeOf(hashes, pathHash);
    if (hashes[at] !== 0n) return;
    hashes[at] = pathHash;
    size += 1;
    if (size * 2 > hashes.length) grow();
  };
  return { add, has: (path) => hashes[placeOf(hashes, hashOf(path))] !== 0n };
}

function hashOf(path: string): bigint {
  return hash("sha1", path, "buffer").readBigUInt64LE() || 1n;
}
