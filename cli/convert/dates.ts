/** Reads days and times in the spellings that sources have: ISO 8601, RFC 5322, English words, and numbers in any order. */
import { formatDay, isDate, readTimestamp } from "../../shared/api/value.ts";

/** Whether `03/04/2024` is the 3rd of April or the 4th of March: only the other dates of its column can tell. */
export type DayOrder = "day first" | "month first";

/** `2024-04-03`, or `2024-04-03T10:00:00.000Z`. */
export type SourceDate = { readonly type: "date" | "datetime"; readonly text: string };

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH = `(?<word>${MONTHS.map((month) => `${month}[a-z]*`).join("|")})\\.?`;
const TIME =
  "(?:,?[T ] *(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2})(?:[.,](?<fraction>\\d+))?)? *(?<half>[ap]\\.?m\\.?)? *(?<zone>Z|UTC|GMT|[+-]\\d{2}(?::?\\d{2})?)?(?: *\\([\\w ]+\\))?)?";
const SPELLINGS = [
  "(?<year>\\d{4})[-/.](?<month>\\d{1,2})[-/.](?<day>\\d{1,2})",
  `(?:[a-z]{3,9},? +)?(?<day>\\d{1,2})(?:st|nd|rd|th)?[ -](?:of +)?${MONTH},?[ -](?<year>\\d{4})`,
  `(?:[a-z]{3,9},? +)?${MONTH} +(?<day>\\d{1,2})(?:st|nd|rd|th)?,? +(?<year>\\d{4})`,
  "(?<day>\\d{1,2})\\.(?<month>\\d{1,2})\\.(?<year>\\d{4})",
].map((day) => new RegExp(`^${day}${TIME}$`, "i"));
/** Two numbers before a year, whose order is not known. */
const AMBIGUOUS = new RegExp(
  `^(?<first>\\d{1,2})(?<joint>[/-])(?<then>\\d{1,2})\\k<joint>(?<year>\\d{4})${TIME}$`,
  "i",
);

type Parts = Readonly<Record<string, string | undefined>>;

/** Null when the text is no date, or when its day does not exist. A time without an offset is taken as UTC. */
export function readDate(text: string, order: DayOrder = "month first"): SourceDate | null {
  const trimmed = text.trim();
  if (trimmed.length < 8 || trimmed.length > 60) return null;
  for (const spelling of SPELLINGS) {
    const parts = spelling.exec(trimmed)?.groups;
    if (parts !== undefined) return writeDate(parts, parts.month ?? monthNumber(parts.word), parts.day);
  }
  const parts = AMBIGUOUS.exec(trimmed)?.groups;
  if (parts === undefined) return null;
  return order === "day first" ? writeDate(parts, parts.then, parts.first) : writeDate(parts, parts.first, parts.then);
}

/** What the text tells of the order of days and months: null when both orders are possible, or it has no such numbers. */
export function findOrder(text: string): DayOrder | null {
  const parts = AMBIGUOUS.exec(text.trim())?.groups;
  if (parts === undefined) return null;
  if (Number(parts.first) > 12) return "day first";
  return Number(parts.then) > 12 ? "month first" : null;
}

/** Whether only an order of days and months makes a date of the text. */
export function isAmbiguous(text: string): boolean {
  return AMBIGUOUS.test(text.trim());
}

/** A timestamp of an entry, in the form of a bundle; null when the text is no date. */
export function readTime(text: string): string | null {
  const found = readDate(text);
  if (found === null) return null;
  return found.type === "date" ? `${found.text}T00:00:00.000Z` : found.text;
}

function monthNumber(word = ""): string {
  return String(MONTHS.indexOf(word.slice(0, 3).toLowerCase()) + 1);
}

function writeDate(parts: Parts, month = "", day = ""): SourceDate | null {
  const date = `${parts.year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  if (!isDate(date)) return null;
  if (parts.hour === undefined) return { type: "date", text: date };
  const time = `${clockHour(parts)}:${parts.minute}:${parts.second ?? "00"}.${parts.fraction ?? "0"}`;
  const zone = /^(UTC|GMT)?$/i.test(parts.zone ?? "") ? "Z" : parts.zone;
  const milliseconds = readTimestamp(`${date}T${time}${zone}`);
  // An offset can lead out of the years 1 to 9999.
  if (milliseconds === null || !isDate(formatDay(milliseconds))) return null;
  return { type: "datetime", text: new Date(milliseconds).toISOString() };
}

function clockHour({ hour = "", half }: Parts): string {
  if (half === undefined) return hour.padStart(2, "0");
  const twelve = Number(hour) % 12;
  return String(/^p/i.test(half) ? twelve + 12 : twelve).padStart(2, "0");
}
