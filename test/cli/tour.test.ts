/** The requests that `serve` shows at its start, for apps that lack what its first choices need. */
import { expect, test } from "vitest";
import { requestsToTry } from "../../cli/serve/primary.ts";
import type { ContentType, Field } from "../../shared/api/catalog.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const type = (slug: string, fields: readonly Field[], sortable_fields: readonly string[]) =>
  typeOf(slug, fields, { sortable_fields });
const [plain, searchable] = [fieldOf("plain", "text"), fieldOf("found", "text", { searchable: true })];

test.each<[string, ContentType[], string[]]>([
  ["no type", [], []],
  ["a type without fields", [type("a", [], [])], ["a", "a?per_page=3"]],
  ["a type that is sortable by a timestamp only", [type("a", [plain], ["created_at"])], ["a", "a?per_page=3"]],
  [
    "a searchable type behind another",
    [type("a", [plain], ["plain"]), type("b", [plain, searchable], ["created_at", "found"])],
    ["b?sort=-found", "b/search?q=an&per_page=3"],
  ],
])("an app with %s is shown requests that it can answer", (_, types, paths) => {
  const app = { key: "shop", name: "Shop", media_base_url: "", types };
  expect(requestsToTry("http://localhost:3000", app)).toEqual(
    ["_schemas", ...paths].map((path) => `curl -H 'X-App-Key: shop' 'http://localhost:3000/api/v1/${path}'`),
  );
});
