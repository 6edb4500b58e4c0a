/**
 * Lists the narrowest tags of the changed files. Answers that no file holds, such as a page after the last, have the
 * tag of their type, so purging it purges them too.
 */
import { ownTag } from "../../../shared/tags.ts";
import type { TreeFile } from "../tree-file.ts";

export function changedTags(changed: readonly TreeFile[]): string[] {
  const tags = changed.flatMap(({ app, type }) => (app === null ? [] : [ownTag(app, type)]));
  return [...new Set(tags)].sort();
}
