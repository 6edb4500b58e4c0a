/**
 * Writers of many small apps, as CMSs that know nothing of each other: transactions that publish, edit, unpublish, delete and
 * create, of which some stay open for a while and some are rolled back.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database, Session } from "../../shared/database/database.ts";
import { idOf } from "./cli.ts";
import type { Dice } from "./dice.ts";

/** Entries that an app has at most, of each type. */
const MOST_ENTRIES = 6;
const TYPES = ["authors", "news"];

export function nameApps(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `app${index}`);
}

const findType = (app: string, slug: string) =>
  `SELECT type.id FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
WHERE app.key = '${app}' AND type.slug = '${slug}'`;

function createType(app: string, slug: string): string {
  return `INSERT INTO precast.content_types (app_id, slug, name, per_page)
SELECT id, '${slug}', '${slug}', 2 FROM precast.apps WHERE key = '${app}' ON CONFLICT DO NOTHING;
INSERT INTO precast.fields (content_type_id, name, position, type)
SELECT id, 'name', 1, 'text' FROM (${findType(app, slug)}) AS type ON CONFLICT DO NOTHING;\n`;
}

function writeEntry(app: string, slug: string, entry: number, name: string, status = "published"): string {
  return `INSERT INTO precast.entries (content_type_id, id, status, published_at, created_at, updated_at, data)
SELECT id, '${idOf(entry)}', '${status}', day, day, day, '{"name": "${name}"}'
FROM (${findType(app, slug)}) AS type, (SELECT timestamptz '2026-01-01T00:00Z' + ${entry} * interval '1 day') AS instant(day)
ON CONFLICT (content_type_id, id) DO UPDATE SET status = excluded.status, data = excluded.data;\n`;
}

/** An app with two to six entries. */
export function createApp(app: string, dice: Dice): string {
  const entries = Array.from({ length: 2 + dice.number(MOST_ENTRIES - 1) }, (_, index) => index + 1);
  return `INSERT INTO precast.apps (key, name) VALUES ('${app}', '${app}') ON CONFLICT DO NOTHING;
${createType(app, "authors")}${entries.map((entry) => writeEntry(app, "authors", entry, `N${entry}`)).join("")}`;
}

type Edit = (app: string, dice: Dice) => string;

const setEntry =
  (set: (dice: Dice) => string): Edit =>
  (app, dice) =>
    `UPDATE precast.entries SET ${set(dice)}
WHERE content_type_id = (${findType(app, dice.pick(TYPES))}) AND id = '${idOf(1 + dice.number(MOST_ENTRIES))}';\n`;
const setType =
  (set: (dice: Dice) => string): Edit =>
  (app, dice) =>
    `UPDATE precast.content_types SET ${set(dice)} WHERE id = (${findType(app, dice.pick(TYPES))});\n`;

const EDITS: readonly (readonly [weight: number, edit: Edit])[] = [
  [6, setEntry((dice) => `data = '{"name": "E${dice.number(1_000)}"}'`)],
  [3, setEntry((dice) => `status = '${dice.pick(["draft", "published"])}'`)],
  [
    4,
    (app, dice) => {
      const [entry, name, status] = [
        1 + dice.number(MOST_ENTRIES),
        dice.number(1_000),
        dice.pick(["draft", "published"]),
      ];
      return writeEntry(app, dice.pick(TYPES), entry, `W${name}`, status);
    },
  ],
  [
    2,
    (app, dice) =>
      `DELETE FROM precast.entries WHERE content_type_id = (${findType(app, dice.pick(TYPES))}) AND id = '${idOf(1 + dice.number(MOST_ENTRIES))}';\n`,
  ],
  [1, (app) => `DELETE FROM precast.apps WHERE key = '${app}';\n`],
  [2, createApp],
  [1, (app, dice) => `DELETE FROM precast.apps WHERE key = '${app}';\n${createApp(app, dice)}`],
  [1, (app, dice) => `UPDATE precast.apps SET name = 'A${dice.number(1_000)}' WHERE key = '${app}';\n`],
  [1, (app) => `UPDATE precast.apps SET key = '${app}-renamed' WHERE key = '${app}';\n`],
  [1, (app) => `UPDATE precast.apps SET key = '${app}' WHERE key = '${app}-renamed';\n`],
  [2, (app, dice) => createType(app, "news") + writeEntry(app, "news", 1, `T${dice.number(1_000)}`)],
  [1, (app) => `DELETE FROM precast.content_types WHERE id = (${findType(app, "news")});\n`],
  [1, setType(() => "published = NOT published")],
  [1, setType((dice) => `per_page = ${1 + dice.number(3)}`)],
];
const WEIGHTED = EDITS.flatMap(([weight, edit]) => Array.from({ length: weight }, () => edit));

/** What a transaction may fail with: locks that others hold, a deadlock, a key that is taken, and a database that goes away. */
const REFUSALS = ["55P03", "40P01", "40001", "23505", "23503", "57P01", "57P02", "57P03", "08006", "08003", "08001"];

type Ended = Promise<"committed" | "rolled back" | "refused">;
type Open = { readonly decide: (commit: boolean) => void; readonly ended: Ended };

export type WritersOptions = {
  readonly database: Database;
  readonly dice: Dice;
  readonly apps: readonly string[];
  readonly writers: number;
  /** Of each writer. */
  readonly transactions: number;
};

/** Resolves when all transactions have ended: to how many have committed. */
export async function writeAtOnce(options: WritersOptions): Promise<number> {
  const counts = await Promise.all(Array.from({ length: options.writers }, () => writeAlone(options)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function writeAlone({ database, dice, apps, transactions }: WritersOptions): Promise<number> {
  const results: Awaited<Ended>[] = [];
  let open: Open | null = null;
  const close = async () => {
    open?.decide(dice.chance(0.7));
    if (open !== null) results.push(await open.ended);
    open = null;
  };
  for (let number = 0; number < transactions; number++) {
    // As long as a person or a program takes between two publications.
    await sleep(dice.number(60));
    const edits = Array.from({ length: 1 + dice.number(4) }, () => dice.pick(WEIGHTED)(dice.pick(apps), dice));
    const next = begin(database, edits, dice);
    if (open === null && dice.chance(0.2)) open = next;
    else {
      next.decide(dice.chance(0.85));
      results.push(await next.ended);
      if (dice.chance(0.3)) await close();
    }
  }
  await close();
  return results.filter((result) => result === "committed").length;
}

class RolledBack extends Error {}

/** Writes at once, and ends when it is decided how. */
function begin(database: Database, edits: readonly string[], dice: Dice): Open {
  let decide: (commit: boolean) => void = () => {};
  const decision = new Promise<boolean>((resolve) => {
    decide = resolve;
  });
  const isolation = dice.pick(["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ"]);
  const undone = dice.chance(0.2);
  const write = async (session: Session) => {
    await session.execute(`SET TRANSACTION ISOLATION LEVEL ${isolation}; SET LOCAL lock_timeout = '100ms'`);
    for (const [index, edit] of edits.entries()) {
      const isUndone = undone && index === edits.length - 1;
      await session.execute(isUndone ? `SAVEPOINT before; ${edit}; ROLLBACK TO before` : edit);
    }
    if (!(await decision)) throw new RolledBack();
  };
  const ended = database.transaction("write", write).then(
    () => "committed" as const,
    (error: Error & { code?: string; cause?: { code?: string } }) => {
      if (error instanceof RolledBack) return "rolled back";
      const isAway = error.name === "DatabaseFault";
      if (isAway || REFUSALS.includes(error.code ?? "")) return "refused";
      throw error;
    },
  );
  ended.catch(() => {});
  return { decide, ended };
}
