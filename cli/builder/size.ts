/** Estimates how large a tree will be before anything of it is written, and refuses one that is too large. */
import { type App, type Column, type ContentType, defaultPerPage } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { facetSizeQuery, sizesQuery } from "../../shared/sql/tree.ts";
import { formatBytes, formatCounted } from "../../shared/text.ts";
import { countSortFiles, filterColumns } from "./lists.ts";

/** A part of a tree: about how many bytes it will have, and what it is, for a message. */
export type Part = { readonly bytes: number; readonly name: string };

/** Throws when the parts are together larger than this number of bytes. */
export function refuseTooLarge(parts: readonly Part[], limit: number): void {
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (bytes <= limit) return;
  const largest = parts.reduce((one, other) => (other.bytes > one.bytes ? other : one));
  throw new Error(
    `The tree would have about ${formatBytes(bytes)}, more than --max-size (PRECAST_MAX_SIZE) allows, which is ${formatBytes(limit)}. ` +
      `Nothing was written. ${formatBytes(largest.bytes)} of it are ${largest.name}. Make a field not filterable or entries smaller, or raise --max-size.`,
  );
}

/** Rich text is stored apart and compressed, and stands in one file alone. */
const COMPRESSION = 3;

/**
 * All files of a type. First each entry counts once for each value of a filterable field, in one pass over the entries;
 * only where that is more than `enough`, the first page of each value is measured, which takes a query for each field.
 */
export async function measureType(session: Session, app: App, type: ContentType, enough: number): Promise<Part[]> {
  const columns = filterColumns(type);
  const [row = []] = await session.query(sizesQuery(app.key, type, columns));
  const [entries = 0, rich = 0, largest = 0, total = 0, filtered = 0] = row.map(Number);
  const sorted = countSortFiles(type) * Math.min(total, defaultPerPage(type)) * largest;
  const unfiltered = {
    bytes: 2 * entries + COMPRESSION * rich + sorted,
    name: `entries, pages and sorts of ${app.key}: ${type.slug}`,
  };
  const parts: Part[] = [unfiltered];
  if (unfiltered.bytes + filtered <= enough) return [...parts, { bytes: filtered, name: nameFilters(app, type, null) }];
  for (const column of columns) {
    const [found = []] = await session.query(facetSizeQuery(app.key, type, column, defaultPerPage(type)));
    const [bytes = 0, values = 0] = found.map(Number);
    const how = ` (${formatCounted(values, "value")}, entries of up to ${formatBytes(largest)})`;
    parts.push({ bytes, name: nameFilters(app, type, column) + how });
  }
  return parts;
}

/** What an update writes of filters: `items` are the list items of entries, and `facets` the entries that a value has now. */
export function measureFilters(
  app: App,
  type: ContentType,
  facets: ReadonlyMap<Column, ReadonlyMap<string, { readonly now: readonly string[] }>>,
  items: ReadonlyMap<string, string>,
): Part[] {
  const measure = ({ now }: { readonly now: readonly string[] }) =>
    now.slice(0, defaultPerPage(type)).reduce((sum, id) => sum + (items.get(id)?.length ?? 0), 0);
  return [...facets].map(([column, values]) => ({
    bytes: [...values.values()].reduce((sum, value) => sum + measure(value), 0),
    name: nameFilters(app, type, column),
  }));
}

function nameFilters(app: App, type: ContentType, column: Column | null): string {
  return `filters of ${app.key}: ${type.slug}${column === null ? "" : ` by ${column.name}`}`;
}
