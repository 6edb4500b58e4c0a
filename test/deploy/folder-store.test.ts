/** A folder that is deployed into while others are at it. */
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openFolderStore } from "../../cli/deploy/store/folder-store.ts";
import { PRIVATE_HEADERS } from "../../cli/deploy/store/store.ts";

test("what it says it took is there, also where somebody has removed a folder meanwhile", async () => {
  const folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = openFolderStore(folder, () => new Date());
  const put = (key: string) =>
    store.put(key, Buffer.from(key), { headers: PRIVATE_HEADERS, sha256: hash("sha256", key, "hex") });
  await put("app/v1/one.json");
  rmSync(join(folder, "app"), { recursive: true });
  await put("app/v1/two.json");
  expect(readFileSync(join(folder, "app/v1/two.json"), "utf8")).toBe("app/v1/two.json");
});
