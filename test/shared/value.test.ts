/** How the text of a value is read: shared/contract.md section 4. */
import { describe, expect, test } from "vitest";
import {
  formatDay,
  formatTimestamp,
  isDate,
  readBoolean,
  readDay,
  readNumber,
  readTimestamp,
  readUuid,
  readWhole,
} from "../../shared/api/value.ts";

describe("a number", () => {
  test.each([
    ["2020", 2020],
    ["2020.0", 2020],
    ["-1.5", -1.5],
    ["007", 7],
    ["1e3", 1000],
    ["1e-2", 0.01],
    ["1e999", Number.POSITIVE_INFINITY],
    ["-1e999", Number.NEGATIVE_INFINITY],
    ["1E+16", 1e16],
    ["1.0E7", 1e7],
    ["5E-05", 5e-5],
    ["1e 16", 1e16],
  ])("%j reads as %d", (text, value) => {
    expect(readNumber(text)).toBe(value);
  });

  test.each([
    "",
    " 1",
    "1 ",
    "+1",
    ".5",
    "5.",
    "0x10",
    "1_000",
    "Infinity",
    "NaN",
    "1e",
    "1e  3",
    "1e 3 ",
    "1 e3",
    "１",
  ])("%j is not a number", (text) => {
    expect(readNumber(text)).toBeNull();
  });
});

test.each([
  ["true", true],
  ["True", true],
  ["TRUE", true],
  ["1", true],
  ["False", false],
  ["0", false],
  ["yes", null],
  ["01", null],
])("%j reads as the boolean %s", (text, value) => {
  expect(readBoolean(text)).toBe(value);
});

describe("an instant", () => {
  test.each([
    ["2026-01-20T15:30Z", "2026-01-20T15:30:00.000+00:00"],
    ["2026-01-20T15:30", "2026-01-20T15:30:00.000+00:00"],
    ["2026-01-20T15:30:07.5+05:30", "2026-01-20T10:00:07.500+00:00"],
    ["2026-01-20T15:30:00 02:00", "2026-01-20T13:30:00.000+00:00"],
    ["2026-01-20T00:15:00-02:00", "2026-01-20T02:15:00.000+00:00"],
    ["2026-01-20T15:30:00.1239Z", "2026-01-20T15:30:00.123+00:00"],
    ["2026-01-20", "2026-01-20T00:00:00.000+00:00"],
    ["2024-02-29T00:00Z", "2024-02-29T00:00:00.000+00:00"],
    ["0001-01-01", "0001-01-01T00:00:00.000+00:00"],
    ["2026-01-20 15:30", "2026-01-20T15:30:00.000+00:00"],
    ["2026-01-20t15:30z", "2026-01-20T15:30:00.000+00:00"],
    ["2026-01-20T15:30+0200", "2026-01-20T13:30:00.000+00:00"],
    ["2026-01-20 15:30:00 0000", "2026-01-20T15:30:00.000+00:00"],
    ["2026-01-20T15:30-05", "2026-01-20T20:30:00.000+00:00"],
    ["2026-01-20 15:30 05", "2026-01-20T10:30:00.000+00:00"],
  ])("%j is %s", (text, instant) => {
    expect(formatTimestamp(readTimestamp(text) ?? Number.NaN)).toBe(instant);
  });

  test.each([
    "2026-02-30T00:00Z",
    "2026-13-01",
    "2025-02-29",
    "2026-01-20T24:00Z",
    "2026-01-20T15:60Z",
    "2026-01-20T15Z",
    "2026-01-20  15:30",
    "2026-01-20_15:30",
    "2026-01-20T15:30 Z",
    "2026-01-20T15:30+2",
    "2026-01-20T15:30+24",
    "2026-01-20T15:30+02:0",
    "x2026-01-20T15:30Z",
    "20260120",
    "2026-1-2",
    "now",
  ])("%j is not an instant", (text) => {
    expect(readTimestamp(text)).toBeNull();
  });

  test("outside the four-digit years sorts after or before all others", () => {
    const late = formatTimestamp(readTimestamp("9999-12-31T23:59-01:00") as number);
    const early = formatTimestamp(readTimestamp("0000-01-01T00:00+01:00") as number);
    expect(late > "9999-12-31T23:59:59.999+00:00").toBe(true);
    expect(early < "0000-01-01T00:00:00.000+00:00").toBe(true);
  });
});

test("a date is valid only if its day exists, in the years 0001 to 9999", () => {
  for (const text of ["0001-01-01", "2024-02-29", "9999-12-31"]) expect([text, isDate(text)]).toEqual([text, true]);
  for (const text of [
    "0000-01-01",
    "2023-02-29",
    "1900-02-29",
    "2026-04-31",
    "2026-13-01",
    "2026-01-00",
    "2026-01-32",
    "2026-00-01",
    "2026-1-1",
    "2026-01-20T15:30Z",
    "10000-01-01",
    "",
  ])
    expect([text, isDate(text)]).toEqual([text, false]);
});

test("an instant is read as its UTC day for a date", () => {
  expect(formatDay(readDay("2026-01-20T23:30:00-02:00") as number)).toBe("2026-01-21");
});

test("a UUID is read in any case, and only in its form with four hyphens", () => {
  expect(readUuid("BBED1CC7-bd9a-57a6-97b0-2ad6e12e0557")).toBe("bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557");
  expect(readUuid("bbed1cc7bd9a57a697b02ad6e12e0557")).toBeNull();
  expect(readUuid("{bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557}")).toBeNull();
  expect(readUuid("xbbed1cc7-bd9a-57a6-97b0-2ad6e12e0557")).toBeNull();
  expect(readUuid("bbed1cc7-bd9a-57a6-97b0-2ad6e12e0557x")).toBeNull();
});

test("a whole number consists of digits only and may have any size", () => {
  expect(readWhole("099999999999999999999")).toBe(99999999999999999999n);
  for (const text of ["", "-1", "1.0", "1e3", "１", " 1"]) expect(readWhole(text)).toBeNull();
});
