/** Recognises files that show an entry which is not published: what `precast verify` must find above all. */
import type { App } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { hiddenTypesQuery, publishedIdsQuery } from "../../shared/sql/tree-query.ts";

export type PublishedIds = ReadonlyMap<string, ReadonlySet<string>>;

/** The ids of published entries by the slugs of all types, unpublished ones included: those have no ids. */
export async function readPublished(session: Session, app: App): Promise<PublishedIds> {
  const hidden = await session.query(hiddenTypesQuery(app.key));
  const published = new Map(hidden.map(([slug]) => [slug as string, new Set<string>()]));
  for (const { slug } of app.types) {
    const rows = await session.query(publishedIdsQuery(app.key, slug));
    published.set(slug, new Set(rows.map(([id]) => id as string)));
  }
  return published;
}

/**
 * Checks what the file of an app contains, so that files which no build wrote are found as well. Its path is relative to
 * the folder of the app.
 */
export function showsUnpublished(file: string, content: string, published: PublishedIds): boolean {
  if (file.startsWith("_schemas")) return false;
  const ids = published.get(file.slice(0, file.indexOf("/")));
  // In a folder that belongs to no type, entries are accepted that are published in any type.
  const isShown = (id: string) => ids?.has(id) ?? [...published.values()].some((some) => some.has(id));
  return idsIn(content).some((id) => !isShown(id));
}

function idsIn(content: string): string[] {
  try {
    const { data } = JSON.parse(content) as { data?: { id?: unknown } | { id?: unknown }[] };
    return [data ?? []].flat().flatMap(({ id }) => (typeof id === "string" ? [id] : []));
  } catch {
    return [];
  }
}
