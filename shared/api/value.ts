/**
 * Parses the texts of values, as the languages of clients print them: numbers, timestamps, days, booleans and UUIDs. A text
 * that cannot be read gives null. No other code parses them: SQL never casts text from users. Source: shared/contract.md
 * sections 3 and 4.
 */

const NUMBER = /^-?\d+(\.\d+)?(e[+\- ]?\d+)?$/i;
const DIGITS = /^\d+$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
/** Days 1 to 28 exist in every month, so they need no calendar. */
const PLAIN_DAY = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$/;
const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:Z|([+\- ])([01]\d|2[0-3])(?::?([0-5]\d))?)?$/i;

/** A double; a number beyond its range becomes an infinity. A space is the `+` that form decoding replaced. */
export function readNumber(text: string): number | null {
  return NUMBER.test(text) ? Number(text.replace(" ", "+")) : null;
}

/** A whole number of any size, written in digits alone. Leading zeros are dropped. */
export function readWhole(text: string): bigint | null {
  return DIGITS.test(text) ? BigInt(text) : null;
}

export function readBoolean(text: string): boolean | null {
  if (/^(true|1)$/i.test(text)) return true;
  return /^(false|0)$/i.test(text) ? false : null;
}

/** A UUID in any case, returned in lower case. */
export function readUuid(text: string): string | null {
  return UUID.test(text) ? text.toLowerCase() : null;
}

/**
 * Milliseconds since 1970. A text without an offset is UTC, a date alone is its midnight in UTC, and a space before the
 * offset is the `+` that form decoding replaced. Fractions of a millisecond are cut off, as in storage.
 */
export function readTimestamp(text: string): number | null {
  const midnight = readMidnight(text);
  if (midnight !== null) return midnight;
  const match = TIMESTAMP.exec(text);
  if (match === null) return null;
  const [, day, hour, minute, second = "0", fraction = "", sign, offsetHour = "0", offsetMinute = "0"] = match;
  const start = readMidnight(day as string);
  if (start === null) return null;
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === "-" ? -1 : 1);
  const minutes = Number(hour) * 60 + Number(minute) - offset;
  return start + minutes * 60_000 + Number(second) * 1_000 + Number(fraction.padEnd(3, "0").slice(0, 3));
}

/** The day of a date, or the UTC day of a timestamp: milliseconds since 1970 at its midnight. */
export function readDay(text: string): number | null {
  const timestamp = readTimestamp(text);
  return timestamp === null ? null : Math.floor(timestamp / 86_400_000) * 86_400_000;
}

/** Whether the text is an existing day, `YYYY-MM-DD`, of the years 0001 to 9999: PostgreSQL has no year 0. */
export function isDate(text: string): boolean {
  return text >= "0001" && (PLAIN_DAY.test(text) || readMidnight(text) !== null);
}

function readMidnight(text: string): number | null {
  const match = DAY.exec(text);
  if (match === null) return null;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // A day that its month does not have is read as one of another month.
  return date.getUTCMonth() === month - 1 ? date.getTime() : null;
}

/** `2026-01-20T15:30:00.000+00:00`. These texts sort like the timestamps, whatever the year. */
export function formatTimestamp(milliseconds: number): string {
  return beyondYears(milliseconds) ?? new Date(milliseconds).toISOString().replace("Z", "+00:00");
}

/** `2026-01-20`. These texts sort like the days, whatever the year. */
export function formatDay(milliseconds: number): string {
  return beyondYears(milliseconds) ?? new Date(milliseconds).toISOString().slice(0, 10);
}

/** The spelling of a timestamp that an offset moved out of the years 0 to 9999: sorts before or after all. Else null. */
function beyondYears(milliseconds: number): string | null {
  const year = new Date(milliseconds).getUTCFullYear();
  if (year < 0) return "-";
  return year > 9999 ? "~" : null;
}

/** Splits a comma-separated list of names and trims blanks around them. */
export function readNames(text: string): string[] {
  return text.split(",").map((name) => name.trim());
}

/** The length of a text in code points (shared/contract.md section 3). */
export function countCharacters(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}
