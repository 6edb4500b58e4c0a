/** What a worker keeps of trees on its disk: those that it published last, and always those that it is publishing. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openKept } from "../../cli/work/publication.ts";

test("no more trees are kept than wanted, the last ones, and none is forgotten while it is published", async () => {
  const base = mkdtempSync(join(tmpdir(), "precast-kept-"));
  onTestFinished(() => rmSync(base, { recursive: true }));
  const folder = join(base, "1");
  const kept = () => readdirSync(folder).sort();
  const write = async (app: string) => {
    mkdirSync(join(folder, `s-${app}`), { recursive: true });
    writeFileSync(join(folder, `s-${app}`, "file"), app);
  };
  const keep = openKept(folder, 2);
  let end = () => {};
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const long = keep("a", () => write("a").then(() => held));
  for (const app of ["b", "c", "d"]) await keep(app, () => write(app));
  expect(kept()).toEqual(["s-a", "s-d"]);
  end();
  await long;
  await expect(keep("e", async () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  await keep("b", () => write("b"));
  expect(kept()).toEqual(["s-b"]);
  expect(readdirSync(`${folder}.trash`)).toEqual([]);
});
