/** The folder store: it lets timers run, and copes with folders that somebody else removes or replaces by links. */
import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PRIVATE_HEADERS } from "../../cli/deploy/store.ts";
import { openFolderStore } from "../../cli/deploy/target.ts";

function openStore() {
  const folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = openFolderStore(folder);
  const put = (key: string) =>
    store.put(key, Buffer.from(key), { headers: PRIVATE_HEADERS, sha256: hash("sha256", key, "hex") });
  return { folder, store, put };
}

test("timers fire while many files are written and deleted", async () => {
  const { store, put } = openStore();
  for (const change of [put, store.remove]) {
    let heard = 0;
    const timer = setInterval(() => heard++, 1);
    for (let file = 0; file < 1_000; file++) await change(`app/v1/${file}.json`);
    clearInterval(timer);
    expect(heard).toBeGreaterThan(0);
  }
});

test("a file is written even if somebody has removed its folder since the write before it", async () => {
  const { folder, put } = openStore();
  await put("app/v1/one.json");
  rmSync(join(folder, "app"), { recursive: true });
  await put("app/v1/two.json");
  expect(readFileSync(join(folder, "app/v1/two.json"), "utf8")).toBe("app/v1/two.json");
});

test("nothing is written or deleted through a link in the place of a folder", async () => {
  const { folder, put, store } = openStore();
  mkdirSync(join(folder, "elsewhere"));
  writeFileSync(join(folder, "elsewhere/two.json"), "mine");
  mkdirSync(join(folder, "app"));
  symlinkSync(join(folder, "elsewhere"), join(folder, "app/v1"));
  await store.remove("app/v1/two.json");
  await put("app/v1/one.json");
  expect(readdirSync(join(folder, "elsewhere"))).toEqual(["two.json"]);
  expect(readdirSync(join(folder, "app/v1"))).toEqual(["one.json"]);
});
