/** Counts what a build has done against what it has to do. */

export type BuildProgress = { readonly files: number; readonly totalFiles: number; readonly bytes: number };

export type Meter = { readonly expect: (files: number) => void; readonly add: (bytes: number) => void };

export function openMeter(onProgress: ((progress: BuildProgress) => void) | undefined): Meter {
  let [files, totalFiles, bytes] = [0, 0, 0];
  const add = (size: number) => {
    files += 1;
    bytes += size;
    onProgress?.({ files, totalFiles, bytes });
  };
  return {
    expect: (expected) => {
      totalFiles = expected;
    },
    add,
  };
}
