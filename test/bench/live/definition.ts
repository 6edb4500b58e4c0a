/** The content types of the `live` benchmark, as bundles describe them. */
import type { ContentType, Field } from "../../../shared/api/catalog.ts";

export const APP = "live";

export const PEOPLE_TYPE = defineType("people", {
  fields: [
    field("name", "text", { searchable: true }),
    field("country", "select"),
    field("born", "number"),
    field("bio", "rich_text", { searchable: true }),
  ],
  filterable_fields: ["country"],
  sortable_fields: ["name"],
  summary_fields: ["name"],
});

export const ARTICLES_TYPE = defineType("articles", {
  fields: [
    field("title", "text", { searchable: true }),
    field("code", "text"),
    field("topic", "select"),
    field("section", "select"),
    field("price", "number"),
    field("featured", "boolean"),
    field("day", "date"),
    field("tags", "select", { multiple: true }),
    field("author_id", "relation", { target: "people" }),
    field("contributors", "relation", { multiple: true, target: "people" }),
    field("body", "rich_text", { searchable: true }),
  ],
  filterable_fields: ["title", "code", "topic", "section", "price", "featured", "day", "tags", "author_id"],
  sortable_fields: ["title", "price", "day"],
  summary_fields: ["title", "topic"],
});

function field(name: string, type: Field["type"], more: Partial<Field> = {}): Field {
  return { name, type, label: name, required: false, searchable: false, multiple: false, target: null, ...more };
}

type Lists = Pick<ContentType, "fields" | "filterable_fields" | "sortable_fields" | "summary_fields">;

function defineType(slug: string, lists: Lists): ContentType {
  const about = { name: slug, description: "What a bench asks for.", icon: "file-text", position: null };
  return { slug, ...about, default_sort: null, per_page: null, ...lists };
}
