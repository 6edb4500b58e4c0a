/** Finds the columns that say which row an entry is, whether it is published, and when it was made and changed. */
import { type Column, STATUS_NAME, type Table } from "./catalog.ts";
import { isInstant } from "./column.ts";
import type { Preset } from "./preset.ts";

export type Roles = {
  /** The columns of the SELECT beside id and fields, as SQL. */
  readonly columns: readonly string[];
  /** Which rows are entries. */
  readonly conditions: readonly string[];
  /** Names of the columns that become no fields. */
  readonly used: ReadonlySet<string>;
};

const CREATED = /^(created|created_?(at|on|date|time)|date_?created|creation_?date|inserted_?at|added_?(at|on))$/i;
const UPDATED =
  /^((updated|modified|changed|edited)(_?(at|on|date|time))?|date_?(updated|modified)|last_?(modified|updated)(_?(at|on))?)$/i;
const PUBLISHED = /^(publish(ed)?(_?(at|on|date))?|date_?published|publication_?date|released?_?(at|on|date))$/i;
const IS_PUBLISHED = /^(is_?)?(published|live|public|visible)$/i;
const IS_DRAFT = /^(is_?)?draft$/i;
const DELETED = /^(deleted(_?(at|on))?|date_?deleted|removed_?at|is_?deleted)$/i;
/** Values of a column that make it one of what is published. */
const PUBLIC_VALUE = /^(published?|live|public|online)$/i;

export function findRoles(table: Table, preset: Preset): Roles {
  const find = (name: RegExp, is: (column: Column) => boolean) =>
    table.columns.find((column) => name.test(column.name) && is(column));
  const isFlag = ({ base, isArray }: Column) => base === "bool" && !isArray;
  const created = find(CREATED, isInstant);
  const updated = find(UPDATED, isInstant);
  const published = find(PUBLISHED, isInstant);
  const status = find(STATUS_NAME, ({ values }) => values?.some((value) => PUBLIC_VALUE.test(value)) ?? false);
  const flag = find(IS_PUBLISHED, isFlag) ?? find(IS_DRAFT, isFlag);
  const deleted = find(DELETED, (column) => isInstant(column) || isFlag(column));
  const asked = writeStatus(status, flag, published);
  const wanted = { published_at: published, created_at: created, updated_at: updated };
  const named = Object.entries(wanted).flatMap(([name, column]) =>
    column === undefined ? [] : [`t.${column.sql} AS ${name}`],
  );
  const used = [...preset.keyOf(table).filter((name) => isPlainId(table, name)), ...preset.usedColumns];
  return {
    columns: [...(asked === null ? [] : [`${asked} AS status`]), ...named],
    conditions: deleted === undefined ? [] : [writeKept(deleted)],
    used: new Set([
      ...used,
      ...[created, updated, published, deleted, status, status ? undefined : flag].flatMap((column) =>
        column === undefined ? [] : [column.name],
      ),
    ]),
  };
}

/** A key that people gave a meaning stays as a field: an entry's id is another one. */
function isPlainId(table: Table, name: string): boolean {
  return /^id$/i.test(name) || table.columns.some((column) => column.name === name && column.base === "uuid");
}

function writeStatus(
  status: Column | undefined,
  flag: Column | undefined,
  published: Column | undefined,
): string | null {
  const choose = (condition: string) => `CASE WHEN ${condition} THEN 'published' ELSE 'draft' END`;
  if (status !== undefined) {
    const values = (status.values ?? []).filter((value) => PUBLIC_VALUE.test(value));
    return choose(`t.${status.sql} IN (${values.map((value) => `'${value}'`).join(", ")})`);
  }
  if (flag !== undefined) return choose(`${IS_DRAFT.test(flag.name) ? "NOT " : ""}t.${flag.sql}`);
  return published === undefined ? null : choose(`t.${published.sql} <= now()`);
}

function writeKept({ base, sql }: Column): string {
  return base === "bool" ? `t.${sql} IS NOT TRUE` : `t.${sql} IS NULL`;
}
