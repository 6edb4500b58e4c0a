/** Finds the columns of a record that tell of the entry itself: whether it is published, and when it was changed. */
import { readTime } from "./dates.ts";
import { isEmpty, readPlain } from "./facts.ts";
import type { SourceRecord, SourceValue } from "./record.ts";

type Own = Pick<SourceRecord, "status" | "published" | "created" | "updated" | "fields">;

const TIMES = {
  published: /^(published_?(at|on|date)|publish_?date|date_?published|pub_?date)$/i,
  created: /^(created(_?(at|on))?|date_?created|creation_?date)$/i,
  updated: /^(updated(_?(at|on))?|modified(_?(at|on))?|date_?(updated|modified)|last_?mod(ified)?)$/i,
} as const;

/** Takes these columns out of the fields. A column of such a name whose value is no date or state stays a field. */
export function takeColumns(all: Readonly<Record<string, SourceValue>>): Own {
  const fields: Record<string, SourceValue> = {};
  const own: { -readonly [key in keyof Own]: Own[key] } = {
    status: "published",
    published: null,
    created: null,
    updated: null,
    fields,
  };
  for (const [name, value] of Object.entries(all)) {
    const time = (Object.keys(TIMES) as (keyof typeof TIMES)[]).find((key) => TIMES[key].test(name));
    const text = readPlain(value);
    const state = readState(name, text);
    if (state !== null) own.status = state;
    else if (time !== undefined && isEmpty(value)) continue;
    else if (time !== undefined && own[time] === null && text !== null && readTime(text) !== null) own[time] = text;
    else fields[name] = value;
  }
  return own;
}

function readState(name: string, text: string | null): Own["status"] | null {
  if (text === null) return null;
  if (/^status$/i.test(name) && /^(draft|published)$/i.test(text)) return text.toLowerCase() as Own["status"];
  if (/^draft$/i.test(name)) return /^true$/i.test(text) ? "draft" : /^false$/i.test(text) ? "published" : null;
  if (/^published$/i.test(name)) return /^false$/i.test(text) ? "draft" : /^true$/i.test(text) ? "published" : null;
  return null;
}
