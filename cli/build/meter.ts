/** Counts what a build has done against what it has to do. */

/** Number of files done, number of files in all, and size of the files done in bytes. */
export type FileProgress = { readonly done: number; readonly total: number; readonly bytes: number };

export type Meter = { readonly expect: (files: number) => void; readonly add: (bytes: number) => void };

export function openMeter(onProgress: ((progress: FileProgress) => void) | undefined): Meter {
  let [done, total, bytes] = [0, 0, 0];
  const add = (size: number) => {
    done += 1;
    bytes += size;
    onProgress?.({ done, total, bytes });
  };
  return {
    expect: (expected) => {
      total = expected;
    },
    add,
  };
}
