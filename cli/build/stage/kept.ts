/**
 * Remembers which files a build has put, as 64-bit hashes of their paths, so that the build can remove all others. With
 * a million files, a stale file has the hash of one of them with a probability of 5e-14. It then stays as long as that
 * file does.
 */
import { hash } from "node:crypto";

export type Kept = {
  readonly add: (path: string) => void;
  readonly has: (path: string) => boolean;
};

export function openKept(): Kept {
  let marks = new BigUint64Array(1 << 10);
  let size = 0;

  /** Index at which a hash is stored, or would be. */
  const placeOf = (table: BigUint64Array, mark: bigint) => {
    let at = Number(mark & BigInt(table.length - 1));
    while (table[at] !== 0n && table[at] !== mark) at = (at + 1) & (table.length - 1);
    return at;
  };
  const grow = () => {
    const larger = new BigUint64Array(marks.length * 2);
    for (const mark of marks) if (mark !== 0n) larger[placeOf(larger, mark)] = mark;
    marks = larger;
  };
  const add = (path: string) => {
    const mark = markOf(path);
    const at = placeOf(marks, mark);
    if (marks[at] !== 0n) return;
    marks[at] = mark;
    size += 1;
    if (size * 2 > marks.length) grow();
  };
  return { add, has: (path) => marks[placeOf(marks, markOf(path))] !== 0n };
}

function markOf(path: string): bigint {
  return hash("sha1", path, "buffer").readBigUInt64LE() || 1n;
}
