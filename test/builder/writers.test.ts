/** The writers of a build: the first batches are written in the main thread, the others in worker threads. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openWriters } from "../../cli/builder/writers.ts";

test("a batch that cannot be written fails with code and path in any thread, and the next one is written", async () => {
  const folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  const writers = openWriters();
  onTestFinished(async () => {
    await writers.close();
    rmSync(folder, { recursive: true });
  });
  writeFileSync(join(folder, "file"), "");
  const write = (stage: string, path: string) => {
    const bytes = writers.buffer(3);
    bytes.set(Buffer.from("new"));
    return writers.write({
      ...{ tree: join(folder, "tree"), stage: join(folder, stage) },
      ...{ paths: [path], existing: ["none"], ends: [3], bytes },
    });
  };
  for (const number of Array.from({ length: 12 }, (_, index) => index)) {
    const path = `${number}.json`;
    await expect(write("file", path)).rejects.toMatchObject({
      code: "EEXIST",
      path: join(folder, "file"),
      message: expect.stringContaining("EEXIST"),
    });
    expect(await write("stage", path)).toEqual([{ outcome: "added", replacedSize: 0 }]);
    expect(readFileSync(join(folder, "stage", path), "utf8")).toBe("new");
  }
});
