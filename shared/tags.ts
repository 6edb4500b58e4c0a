/** The tags by which a CDN forgets answers. On files in a store and on answers they are the same. */
import { TYPE_SLUG } from "./catalog.ts";

/** That of all answers of the app, then the narrowest. `type` is null for the catalog. None for what can be no type. */
export function tagsOf(app: string, type: string | null): readonly string[] {
  return type === null || TYPE_SLUG.test(type) ? [app, ownTag(app, type)] : [];
}

/** The narrowest tag that an answer has. The catalog has one of its own: it changes more often than all the rest. */
export function ownTag(app: string, type: string | null): string {
  return `${app}/${type ?? "_schemas"}`;
}

/** As `Cache-Tag` and the metadata of files spell them. */
export function tagList(tags: readonly string[]): string {
  return tags.join(",");
}
