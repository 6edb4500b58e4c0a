/** Instants as a bundle spells them. The database reads them alike: `instant` in 0003_values.sql. */
import { isDate } from "../../shared/value.ts";

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:Z|([+-](?:0\d|1[0-5]):[0-5]\d))$/;

/** An instant in UTC, cut off at the millisecond: `2026-01-20T15:30:00.000Z`. Null when the text is none. */
export function canonicalInstant(text: string): string | null {
  const [, day = "", time, second = "00", fraction = "", offset = "+00:00"] = INSTANT.exec(text) ?? [];
  if (!isDate(day)) return null;
  const local = `${day}T${time}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  // Most are in UTC already, and a Date takes ten times as long as all the rest.
  if (offset.endsWith("00:00")) return `${local}Z`;
  const instant = new Date(`${local}${offset}`);
  // From the first day and from the last, an offset leads to a year that cannot be written.
  const year = instant.getUTCFullYear();
  return year < 1 || year > 9999 ? null : instant.toISOString();
}
