/**
 * Remembers which files a build has looked at, in eight bytes each: what a tree holds beyond them is swept. Two files
 * share a mark once in some ten million million builds; a stale file would then stay until the next full build.
 */
import { hash } from "node:crypto";

export type Kept = {
  readonly add: (path: string) => void;
  readonly has: (path: string) => boolean;
};

export function openKept(): Kept {
  let marks = new BigUint64Array(1 << 10);
  let size = 0;

  /** Where the mark stands, or where it would. */
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
