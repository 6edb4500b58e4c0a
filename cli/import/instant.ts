/** Reads the timestamps of a bundle. `precast.instant` in 0002_values.sql must accept the same texts. */
import { isDate } from "../../shared/value.ts";

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:Z|([+-](?:0\d|1[0-5]):[0-5]\d))$/;

/**
 * The instant in UTC, cut off at the millisecond: `2026-01-20T15:30:00.000Z`. Null when the text is not an instant with
 * an offset or `Z`, or lies outside of the years 1 to 9999 of UTC.
 */
export function canonicalInstant(text: string): string | null {
  const [, day = "", time, second = "00", fraction = "", offset = "+00:00"] = INSTANT.exec(text) ?? [];
  if (!isDate(day)) return null;
  const local = `${day}T${time}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  // Most instants are in UTC already, and a Date takes ten times as long as the rest of this function.
  if (offset.endsWith("00:00")) return `${local}Z`;
  const instant = new Date(`${local}${offset}`);
  // On the first and the last day of that range, an offset can lead to a year outside of it.
  const year = instant.getUTCFullYear();
  return year < 1 || year > 9999 ? null : instant.toISOString();
}
