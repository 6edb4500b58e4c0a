/** Requests that are answered from a tree, also from one that is replaced meanwhile (shared/respond.ts). */
import { expect, test } from "vitest";
import { makeBody } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { type AppTree, respond } from "../../shared/api/respond.ts";
import { typeOf } from "../support/types.ts";

const POSTS = typeOf("posts", [], { filterable_fields: ["published_at"] });
const APP: App = { key: "shop", name: "Shop", media_base_url: "", types: [POSTS] };

test("is answered although builds replace the tree again and again", async () => {
  let trees = 0;
  const findTree = async (): Promise<AppTree> => {
    // Without a limit, the request would begin anew for ever.
    if (++trees > 100) throw new Error("the request began anew a hundred times");
    return { app: APP, isCurrentOnDisk: () => false, read: async () => null };
  };
  const errors: unknown[] = [];
  const response = await respond(
    { method: "GET", target: "/api/v1/posts?filter[published_at]=2026-01-20", appKey: "shop" },
    {
      findTree,
      findApp: async () => null,
      answer: async () => expect.unreachable("the tree answers free requests"),
      onError: (error) => errors.push(error),
    },
  );
  expect(errors).toEqual([]);
  expect(response).toMatchObject({ kind: "found", context: { fromTree: true } });
  expect(trees).toBeGreaterThan(1);
});

test("a page behind the last is answered without reading the entries of the first", async () => {
  // Parsing long entries would hold up other requests. Broken ones show that they are not parsed.
  const first = makeBody(
    '{"data":["meta":{"total":7}, …],"meta":{"current_page":1,"per_page":20,"total":123,"last_page":7}}',
  );
  const read = async () => ({ ...first, isCurrent: () => true });
  const response = await respond(
    { method: "GET", target: "/api/v1/posts?page=99", appKey: "shop" },
    {
      findTree: async () => ({
        app: APP,
        isCurrentOnDisk: () => true,
        read: async (address) => (address.kind === "page" && address.page === 1n ? read() : null),
      }),
      findApp: async () => null,
      answer: async () => expect.unreachable("the tree answers free requests"),
      onError: (error) => expect.unreachable(String(error)),
    },
  );
  const body = '{"data":[],"meta":{"current_page":99,"per_page":20,"total":123,"last_page":7}}';
  expect(response).toMatchObject({ kind: "found", body: { bytes: Buffer.from(body) } });
});
