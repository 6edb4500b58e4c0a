/** How entries are rendered: the addresses of media. */
import { expect, test } from "vitest";
import type { Field } from "../../shared/api/catalog.ts";
import { renderEntry } from "../../shared/api/entry.ts";

const COVER: Field = {
  name: "cover",
  type: "media",
  label: "",
  required: false,
  searchable: false,
  multiple: false,
  target: null,
};
const TIME = "2026-01-20T15:30:00.000+00:00";
const ROW = { id: "1", data: '{"cover": "a.png"}', rich: null, published_at: TIME, created_at: TIME, updated_at: TIME };

function urlBelow(media_base_url: string): string {
  const app = { key: "shop", name: "Shop", media_base_url, types: [] };
  return (JSON.parse(renderEntry(app, { fields: [COVER], timestamps: [] }, ROW)) as { cover_url: string }).cover_url;
}

test.each(["https://media.example.com", "https://media.example.com/", "https://media.example.com//"])(
  "the address of a media file below %s has no double slash",
  (base) => {
    expect(urlBelow(base)).toBe("https://media.example.com/shop/cms/media/a.png");
  },
);

test("an empty name of a media file has no address, alone and among others", () => {
  const app = { key: "shop", name: "Shop", media_base_url: "https://media.example.com", types: [] };
  const fields = [COVER, { ...COVER, name: "shots", multiple: true }];
  const row = { ...ROW, data: '{"cover": "", "shots": ["", "a.png"]}' };
  expect(JSON.parse(renderEntry(app, { fields, timestamps: [] }, row))).toEqual({
    id: "1",
    cover: "",
    cover_url: null,
    shots: ["", "a.png"],
    shots_url: [null, "https://media.example.com/shop/cms/media/a.png"],
  });
});

test("thousands of slashes within the base address of media hold nobody up", { timeout: 5_000 }, () => {
  const base = `https://media.example.com${"/".repeat(100_000)}x`;
  expect(urlBelow(`${base}/`)).toBe(`${base}/shop/cms/media/a.png`);
});
