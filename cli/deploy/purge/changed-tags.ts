/** The narrowest tags of what has changed: an answer that no file holds goes with its type's. */
import { ownTag } from "../../../shared/tags.ts";
import type { TreeFile } from "../tree-file.ts";

export function changedTags(changed: readonly TreeFile[]): string[] {
  const tags = changed.flatMap(({ app, type }) => (app === null ? [] : [ownTag(app, type)]));
  return [...new Set(tags)].sort();
}
