/** Defines the tags by which a CDN purges answers. Deployed files and the server's answers have the same tags. */
import { TYPE_SLUG } from "./catalog.ts";

/** The tag of all answers of the app, then ownTag. `type` is null for the catalog. Empty for what cannot be a slug. */
export function tagsOf(app: string, type: string | null): readonly string[] {
  return type === null || TYPE_SLUG.test(type) ? [app, ownTag(app, type)] : [];
}

/** The narrowest tag of an answer: its type's. The catalog has a tag of its own, because it changes most often. */
export function ownTag(app: string, type: string | null): string {
  return `${app}/${type ?? "_schemas"}`;
}

/** The tags in the syntax of the header Cache-Tag and of the metadata of deployed files. */
export function tagList(tags: readonly string[]): string {
  return tags.join(",");
}
