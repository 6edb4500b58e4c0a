/** Draws the progress of a build as a bar, on a terminal. */
import { SingleBar } from "cli-progress";
import type { Stream } from "./stream.ts";

export type Progress = {
  readonly update: (progress: { files: number; totalFiles: number; bytes: number }) => void;
  readonly stop: () => void;
};

/** So few are told one by one: they may be slow. */
const FEW = 10_000;

export function openProgress(stream: Stream): Progress {
  const bar = new SingleBar({
    format: "{bar} {percentage}% | {value}/{total} files | {megabytes} MB | {rate} files/s | {eta_formatted} left",
    stream: stream as NodeJS.WriteStream,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    clearOnComplete: true,
    hideCursor: true,
    // The pace of the last ten alone, as is usual, tells little of the rest.
    etaBuffer: 1_000,
    fps: 10,
  });
  let start: number | null = null;
  return {
    update: ({ files, totalFiles, bytes }) => {
      if (start === null) {
        start = performance.now();
        bar.start(totalFiles, 0, { megabytes: "0.0", rate: 0 });
      }
      const seconds = Math.max((performance.now() - start) / 1_000, 0.001);
      if (files % 100 === 0 || totalFiles < FEW || files === totalFiles)
        bar.update(files, { megabytes: (bytes / 1e6).toFixed(1), rate: Math.round(files / seconds) });
    },
    stop: () => bar.stop(),
  };
}
