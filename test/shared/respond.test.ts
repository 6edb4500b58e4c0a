/** A request whose tree is replaced while it is answered (shared/respond.ts). */
import { expect, test } from "vitest";
import type { AppTree } from "../../shared/app-tree.ts";
import type { App } from "../../shared/catalog.ts";
import { respond } from "../../shared/respond.ts";
import { typeOf } from "../support/types.ts";

const POSTS = typeOf("posts", [], { filterable_fields: ["published_at"] });
const APP: App = { key: "shop", name: "Shop", media_base_url: "", types: [POSTS] };

test("is answered although builds replace the tree again and again", async () => {
  let trees = 0;
  const findTree = async (): Promise<AppTree> => {
    // Without a limit, the request would begin anew for ever.
    if (++trees > 100) throw new Error("the request began anew a hundred times");
    return { app: APP, isCurrent: () => false, isCurrentOnDisk: () => false, read: async () => null };
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
  expect(response).toMatchObject({ kind: "found", circumstances: { fromTree: true } });
  expect(trees).toBeGreaterThan(1);
});
