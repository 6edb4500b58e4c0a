/** `precast status`: shows the apps, their types and entries, and what has changed since each tree was built. */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatBytes, formatFiles } from "../../shared/text.ts";
import { appsOfTree, removedApps, UNRECORDED } from "../../shared/tree.ts";
import { describeBehind, readTreeStatus, type TreeStatus } from "../builder/delta.ts";
import { DONE, defineCommand } from "../command.ts";
import { noAppText, readRows, withDatabase } from "../database.ts";

type TypeStatus = {
  readonly slug: string;
  readonly published: boolean;
  readonly entries: number;
  readonly drafts: number;
};

type AppStatus = {
  readonly key: string;
  readonly name: string;
  readonly types: readonly TypeStatus[];
  /** Null when the app has no tree. */
  readonly tree: TreeStatus | null;
};

export const statusCommand = defineCommand({
  name: "status",
  describes: "show apps, types, entries, the size of their trees, and when each was built",
  argument: null,
  settings: [],
  examples: ["precast status", "precast status --json"],
  run: async ({ terminal }, settings) => {
    const apps = await withDatabase(settings, (database) =>
      database.transaction("read", async (session) => {
        const keys = await session.query(sql('SELECT key, name FROM precast.apps ORDER BY key COLLATE "C"'));
        const statuses: AppStatus[] = [];
        for (const [key, name] of keys)
          statuses.push(await readStatus(session, key as string, name as string, settings));
        return statuses;
      }),
    );
    const treeApps = appsOfTree(settings.out);
    const gone = removedApps(treeApps, apps).map(({ key }) => key);
    const damaged = treeApps.filter(({ state }) => state === null).map(({ key }) => key);
    const unrecorded = treeApps.filter(({ state }) => state?.mark === UNRECORDED).map(({ key }) => key);
    const table = terminal.table(["App", "Type", "Published", "Entries", "Drafts", "Files", "Size"], typeRows(apps));
    const trees = apps.map(({ key, tree }) => {
      const text = treeText(tree, damaged.includes(key), unrecorded.includes(key));
      return `${terminal.colors.bold(key)}: ${text}`;
    });
    const known = apps.length === 0 ? [noAppText(settings)] : [table, ...trees];
    terminal.result([...known, ...gone.map(goneText)].join("\n"), { apps, trees_without_app: gone });
    return DONE;
  },
});

/** Files and size of a type are those of the tree; without a tree they are empty. */
function typeRows(apps: readonly AppStatus[]): (string | number)[][] {
  return apps.flatMap(({ key, types, tree }) =>
    types.map(({ slug, published, entries, drafts }) => {
      const size = new Map(Object.entries(tree?.sizes ?? {})).get(slug);
      const built = size === undefined ? ["", ""] : [size.files, formatBytes(size.bytes)];
      return [key, slug, published ? "yes" : "no", entries, drafts, ...built];
    }),
  );
}

const DAMAGED = "has files, but the state of its last build is missing or cannot be read: run `precast build`";

function treeText(tree: TreeStatus | null, isDamaged: boolean, isUnrecorded: boolean): string {
  if (tree === null) return isDamaged ? DAMAGED : "not built";
  const behind = describeBehind(tree, isUnrecorded);
  return `built ${tree.built_at}, ${formatFiles(tree.files)}, ${formatBytes(tree.bytes)}, ${behind}`;
}

/**
 * A build of all apps deletes such a tree. When the database has no app at all, the build refuses to run if any tree
 * was built from another database.
 */
function goneText(key: string): string {
  return `${key}: built, but no app in the database has this key`;
}

async function readStatus(
  session: Session,
  key: string,
  name: string,
  settings: Settings<CommonName>,
): Promise<AppStatus> {
  const types = await readRows<TypeStatus>(
    session,
    `SELECT type.slug, type.published, count(e.id) FILTER (WHERE e.status = 'published') AS entries,
  count(e.id) FILTER (WHERE e.status = 'draft') AS drafts
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id
LEFT JOIN precast.entries AS e ON e.content_type_id = type.id
WHERE app.key = $1 GROUP BY type.id ORDER BY type.position NULLS LAST, type.slug COLLATE "C"`,
    [key],
  );
  return { key, name, types, tree: await readTreeStatus(session, key, settings) };
}
