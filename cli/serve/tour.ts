/** Makes up three requests that show a newcomer an app: the catalog, a sort or a page, and a search or a counted list. */
import { type App, type ContentType, findField, searchableFields } from "../../shared/catalog.ts";

/** curl commands. */
export function requestsToTry(url: string, app: App): string[] {
  const type = app.types.find((candidate) => searchableFields(candidate).length > 0) ?? app.types[0];
  const paths = type === undefined ? ["_schemas"] : ["_schemas", pagePath(type), searchPath(type)];
  return paths.map((path) => `curl -H 'X-App-Key: ${app.key}' '${url}/api/v1/${path}'`);
}

function pagePath(type: ContentType): string {
  const sortable = type.sortable_fields.find((name) => findField(type, name) !== undefined);
  return sortable === undefined ? type.slug : `${type.slug}?sort=-${sortable}`;
}

function searchPath(type: ContentType): string {
  return searchableFields(type).length === 0 ? `${type.slug}?per_page=3` : `${type.slug}/search?q=an&per_page=3`;
}
