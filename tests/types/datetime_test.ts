/**
 * Verifies that the calendar is correct on every day from 4714 BC to the year 9999, and that
 * timestamps keep their microseconds on both sides of 2^53.
 */
import { expect, test } from "bun:test";
import {
  checkDate,
  civilFromDays,
  DATE_INFINITY,
  DATE_MINUS_INFINITY,
  dateFromCivil,
  dateOfTimestamp,
  dayOfWeek,
  daysFromCivil,
  daysInMonth,
  isFiniteDate,
  isFiniteTimestamp,
  joinTimestamp,
  offsetSecondsAt,
  offsetSecondsAtLocal,
  roundTimestamp,
  splitTimestamp,
  TIMESTAMP_INFINITY,
  TIMESTAMP_MINUS_INFINITY,
  type TimeZone,
  timestampOfDate,
  zoneFromText,
} from "../../src/types/mod.ts";
import { randomFrom, seedOf } from "./random.ts";

/**
 * The first and last valid dates, 4714-11-24 BC and 5874897-12-31, and the last day of a
 * timestamp, in the year 294246, all in days since 1970.
 */
const DATE_MIN = -2_440_588;
const DATE_MAX: number = daysFromCivil(5_874_897, 12, 31);
const TIMESTAMP_DAY_MAX: number = daysFromCivil(294_246, 12, 31);

test("civilFromDays visits every day from 4713 BC to the year 9999 in order", () => {
  let days = daysFromCivil(-4712, 1, 1);
  let mismatches = 0;
  for (let year = -4712; year <= 9999; year += 1) {
    for (let month = 1; month <= 12; month += 1) {
      const length = daysInMonth(year, month);
      // Checking the first and the last day of each month covers the days in between.
      for (const day of [1, length]) {
        const at = days + day - 1;
        const civil = civilFromDays(at);
        const isSame = civil.year === year && civil.month === month && civil.day === day;
        if (!isSame || daysFromCivil(year, month, day) !== at) mismatches += 1;
      }
      days += length;
    }
  }
  expect(mismatches).toBe(0);
  expect(days - 1).toBe(daysFromCivil(9999, 12, 31));
  expect(civilFromDays(DATE_MIN)).toEqual({ year: -4713, month: 11, day: 24 });
});

test.each([
  [2000, true],
  [1900, false],
  [2024, true],
  [2025, false],
  [4, true],
])("February of %p has a leap day: %p", (year, isLeap) => {
  expect(daysInMonth(year, 2)).toBe(isLeap ? 29 : 28);
  if (isLeap) expect(dateFromCivil(year, 2, 29)).toBe(daysFromCivil(year, 3, 1) - 1);
  else expect(() => dateFromCivil(year, 2, 29)).toThrow("there is no such day");
});

test("dayOfWeek agrees with known days on both sides of 1970", () => {
  expect(dayOfWeek(0)).toBe(4);
  expect(dayOfWeek(daysFromCivil(2025, 3, 16))).toBe(0);
  expect(dayOfWeek(daysFromCivil(1900, 1, 1))).toBe(1);
  expect(dayOfWeek(DATE_MIN)).toBe(1);
});

test("the first date is Julian day 0, and the last one is in the year 5874897", () => {
  expect(checkDate(DATE_MIN)).toBe(DATE_MIN);
  expect(checkDate(DATE_MAX)).toBe(DATE_MAX);
  expect(() => checkDate(DATE_MIN - 1)).toThrow("between 4714-11-24 BC and");
  expect(() => checkDate(DATE_MAX + 1)).toThrow("between 4714-11-24 BC and");
});

test("splitTimestamp and joinTimestamp are inverse over the whole range", () => {
  const seed = seedOf();
  const random = randomFrom(seed);
  for (let round = 0; round < 20_000; round += 1) {
    const days = DATE_MIN + Math.floor(random() * (TIMESTAMP_DAY_MAX - DATE_MIN + 1));
    const micros = Math.floor(random() * 86_400_000_000);
    const value = joinTimestamp(days, micros);
    expect(typeof value === "bigint").toBe(!Number.isSafeInteger(Number(value)));
    expect(splitTimestamp(value), `seed ${seed}`).toEqual({ days, micros });
  }
});

test("joinTimestamp carries microseconds beyond a day, and refuses years out of range", () => {
  expect(joinTimestamp(0, -1)).toBe(-1);
  expect(joinTimestamp(0, 86_400_000_000)).toBe(86_400_000_000);
  expect(splitTimestamp(-1)).toEqual({ days: -1, micros: 86_399_999_999 });
  expect(() => joinTimestamp(TIMESTAMP_DAY_MAX, 86_400_000_000)).toThrow(
    "between 4714-11-24 BC and",
  );
  expect(() => joinTimestamp(DATE_MIN, -1)).toThrow("between 4714-11-24 BC and");
});

test("infinite timestamps are beyond all others and have no day", () => {
  expect(isFiniteDate(DATE_INFINITY) || isFiniteDate(DATE_MINUS_INFINITY)).toBe(false);
  expect(dateOfTimestamp(TIMESTAMP_INFINITY)).toBe(DATE_INFINITY);
  expect(timestampOfDate(DATE_MINUS_INFINITY)).toBe(TIMESTAMP_MINUS_INFINITY);
  expect(TIMESTAMP_INFINITY > joinTimestamp(TIMESTAMP_DAY_MAX, 86_399_999_999)).toBe(true);
  expect(DATE_INFINITY > DATE_MAX && DATE_MINUS_INFINITY < DATE_MIN).toBe(true);
  expect(isFiniteTimestamp(joinTimestamp(TIMESTAMP_DAY_MAX, 86_399_999_999))).toBe(true);
});

test("roundTimestamp rounds to digits of a second", () => {
  expect(roundTimestamp(1_234_567, 3)).toBe(1_235_000);
  expect(roundTimestamp(1_500_000, 0)).toBe(2_000_000);
  expect(roundTimestamp(1_234_567, 6)).toBe(1_234_567);
});

function zone(name: string): TimeZone {
  const found = zoneFromText(name);
  if (found === undefined) throw new Error(`no zone ${name}`);
  return found;
}

function microsAt(iso: string): number {
  return Date.parse(iso) * 1000;
}

test.each([
  ["Europe/Berlin", "2025-06-01T12:00:00Z", 7200],
  ["Europe/Berlin", "2025-01-01T12:00:00Z", 3600],
  ["America/New_York", "2025-07-01T00:00:00Z", -14_400],
  ["asia/kolkata", "2025-07-01T00:00:00Z", 19_800],
  ["UTC", "2025-07-01T00:00:00Z", 0],
  ["+05:30", "2025-07-01T00:00:00Z", 19_800],
  ["-0800", "2025-07-01T00:00:00Z", -28_800],
])("offsetSecondsAt(%p, %p) returns %p", (name, instant, seconds) => {
  expect(offsetSecondsAt(zone(name), microsAt(instant))).toBe(seconds);
});

test("a local time that clocks skip or repeat is interpreted as in PostgreSQL", () => {
  const berlin = zone("Europe/Berlin");
  expect(offsetSecondsAtLocal(berlin, microsAt("2025-03-30T02:30:00Z"))).toBe(3600);
  expect(offsetSecondsAtLocal(berlin, microsAt("2025-10-26T02:30:00Z"))).toBe(3600);
  expect(offsetSecondsAtLocal(berlin, microsAt("2025-03-30T03:30:00Z"))).toBe(7200);
  expect(offsetSecondsAtLocal(berlin, microsAt("2025-03-30T01:30:00Z"))).toBe(3600);
});

test.each(["Nowhere", "+25", "Europe/Berlin; x", ""])(
  "zoneFromText(%p) returns no zone",
  (text) => {
    expect(zoneFromText(text)).toBeUndefined();
  },
);
