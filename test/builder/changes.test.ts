/** The list of changes: it is valid JSON and read back whole, whatever it holds, and a cut list is noticed. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Change, isWholeList, openChanges, ownChanges } from "../../cli/builder/changes.ts";

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Changes of alternating types. Their lines together are longer than the chunks in which the list is read. */
function changesOf(change: Change["change"], count: number): Change[] {
  return Array.from({ length: count }, (_, number) => {
    const type = number % 2 === 0 ? "posts" : "authors";
    const request = `/api/v1/${type}?filter[title]=${"ä".repeat(500)}${number}`;
    return { change, app: "shop", type, request, file: `s-shop/v1/${type}/filter/title/${change}-${number}.json` };
  });
}

test.each([
  [0, 0, 0],
  [1, 0, 0],
  [0, 0, 1],
  [1_001, 0, 0],
  [0, 0, 2_001],
  [1_500, 1_500, 1_500],
])("a list of %d added, %d changed and %d deleted files is valid and read back whole", async (added, changed, gone) => {
  const folder = openFolder();
  const list = openChanges(folder, "2026-01-20T15:30:00.000Z", join(folder, "none"));
  const present = [...changesOf("added", added), ...changesOf("changed", changed)];
  const deleted = changesOf("gone", gone);
  for (const change of [...deleted, ...present]) list.add(change);
  await list.close();
  const file = join(folder, "changes.json");
  const types = [...new Set([...present, ...deleted].map(({ type }) => `shop/${type}`))].sort();
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    ...{ format: 1, built_at: "2026-01-20T15:30:00.000Z", changes: [...present, ...deleted] },
    ...{ tags: types.length === 0 ? [] : ["shop", ...types], added, changed, gone },
  });
  const read: Change[] = [];
  for await (const change of ownChanges(folder, new Set())) read.push(change);
  expect(read).toEqual([...present, ...deleted]);
  expect(isWholeList(file)).toBe(true);
  const bytes = readFileSync(file);
  for (const share of [0, 0.3, 0.6, 0.99]) {
    writeFileSync(file, bytes.subarray(0, Math.floor(bytes.length * share)));
    expect([share, isWholeList(file)]).toEqual([share, false]);
  }
});

test("what can be read of an unreported list is carried over, marked, and counted with the new changes", async () => {
  const [first, second, third] = [openFolder(), openFolder(), openFolder()];
  const [page] = changesOf("changed", 1) as [Change];
  const catalog: Change = { ...page, type: null, request: "/api/v1/_schemas", file: "s-shop/v1/_schemas.json" };
  const [added, gone] = [changesOf("added", 1)[0] as Change, changesOf("gone", 1)[0] as Change];
  const write = async (folder: string, carried: string, changes: readonly Change[]) => {
    const list = openChanges(folder, "2026-01-20T15:30:00.000Z", carried);
    for (const change of changes) list.add(change);
    await list.close();
    return join(folder, "changes.json");
  };
  const cut = await write(first, join(first, "none"), [catalog, page, gone]);
  const text = readFileSync(cut, "utf8");
  writeFileSync(cut, text.slice(0, text.indexOf('"gone"') + 20));
  const unreported = await write(second, cut, [added]);
  const reported = await write(third, unreported, [gone]);
  expect(JSON.parse(readFileSync(reported, "utf8"))).toMatchObject({
    changes: [catalog, page, added].map((change) => ({ carried: true, ...change })).concat([gone as never]),
    ...{ tags: ["shop", "shop/posts"], added: 1, changed: 2, gone: 1 },
  });
  const own: Change[] = [];
  for await (const change of ownChanges(third, new Set())) own.push(change);
  expect(own).toEqual([gone]);
  for await (const change of ownChanges(third, new Set(["s-shop/v1"]))) expect(change).toBeNull();
  expect(isWholeList(reported)).toBe(true);
});
