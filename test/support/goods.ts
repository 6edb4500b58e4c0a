/** A small shop for the tests of the server under stress, and requests to it: free and counted ones. */
import type { Bundle } from "./model.ts";

export const KEY = "shop";
export const ID = "0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01";

export const GOODS: Bundle = {
  app: { key: KEY, name: "Shop" },
  types: [
    {
      slug: "goods",
      name: "Goods",
      description: "",
      icon: "",
      per_page: 2,
      fields: [{ name: "title", type: "text", label: "Title", required: true, searchable: true }],
      filterable_fields: ["title"],
      sortable_fields: ["title"],
    },
  ],
  entries: {
    goods: ["chair", "lamp", "table"].map((title, index) => ({
      id: ID.slice(0, -1) + String(index + 1),
      status: "published" as const,
      published_at: "2026-01-20T15:30:00Z",
      created_at: "2026-01-20T15:30:00Z",
      updated_at: "2026-01-20T15:30:00Z",
      data: { title },
    })),
  },
};

export const FREE = [
  "/api/v1/_schemas",
  "/api/v1/_schemas/goods",
  "/api/v1/_schemas/nope",
  "/api/v1/goods",
  "/api/v1/goods?page=2",
  "/api/v1/goods?page=999",
  "/api/v1/goods?page=0",
  "/api/v1/goods?filter[title]=lamp",
  "/api/v1/goods?filter[title]=nobody+has+this",
  "/api/v1/goods?sort=-title",
  "/api/v1/goods?sort=created_at",
  `/api/v1/goods/${ID}`,
  "/api/v1/goods/deadbeef-dead-4eef-8ead-deadbeefdead",
  "/api/v1/nope",
];
export const COUNTED = ["/api/v1/goods?per_page=1", "/api/v1/goods/search?q=chair", `/api/v1/goods/${ID}?populate=x`];
