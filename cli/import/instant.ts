/** Days and instants as a bundle spells them. The database reads them alike: `is_day` and `instant` in 0003_values.sql. */

const DAY = /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const INSTANT =
  /^(\d{4}-\d{2}-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:Z|([+-](?:0\d|1[0-5]):[0-5]\d))$/;
const SHORT_MONTHS = ["04", "06", "09", "11"];

/** Is this a `YYYY-MM-DD` that exists? There is no year 0. */
export function isDay(text: string): boolean {
  const [, year, month = "", day] = DAY.exec(text) ?? [];
  return Number(year) >= 1 && Number(day) <= daysOf(Number(year), month);
}

function daysOf(year: number, month: string): number {
  if (month === "02") return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return SHORT_MONTHS.includes(month) ? 30 : 31;
}

/** An instant in UTC, cut off at the millisecond: `2026-01-20T15:30:00.000Z`. Null when the text is none. */
export function canonicalInstant(text: string): string | null {
  const [, day = "", time, second = "00", fraction = "", offset = "+00:00"] = INSTANT.exec(text) ?? [];
  if (!isDay(day)) return null;
  const local = `${day}T${time}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  // Most are in UTC already, and a Date takes ten times as long as all the rest.
  if (offset.endsWith("00:00")) return `${local}Z`;
  const instant = new Date(`${local}${offset}`);
  // From the first day and from the last, an offset leads to a year that cannot be written.
  const year = instant.getUTCFullYear();
  return year < 1 || year > 9999 ? null : instant.toISOString();
}
