/** Fields and content types as the code has them after reading, for tests that need no database. */
import type { ContentType, Field, FieldType } from "../../shared/api/catalog.ts";

export function fieldOf(name: string, type: FieldType, more: Partial<Field> = {}): Field {
  return { name, type, label: "", required: false, searchable: false, multiple: false, target: null, ...more };
}

export function typeOf(slug: string, fields: readonly Field[], more: Partial<ContentType> = {}): ContentType {
  return {
    slug,
    name: "",
    description: "",
    icon: "",
    position: null,
    default_sort: null,
    per_page: null,
    summary_fields: null,
    filterable_fields: [],
    sortable_fields: [],
    fields,
    ...more,
  };
}
