/**
 * Verifies that intervals are read and written in PostgreSQL's forms, and that fractions carry
 * over to smaller units as in PostgreSQL.
 */
import { expect, test } from "bun:test";
import { intervalSpan } from "../../src/types/interval.ts";
import { textFromInterval } from "../../src/types/interval_text.ts";
import {
  addIntervals,
  divideInterval,
  intervalFromText,
  makeInterval,
  negateInterval,
  scaleInterval,
} from "../../src/types/mod.ts";

test.each([
  ["1 day 02:00:00", "1 day 02:00:00"],
  ["1 2:03", "1 day 02:03:00"],
  ["1.5 months", "1 mon 15 days"],
  ["0.1 month", "3 days"],
  ["1.7 years", "1 year 8 mons"],
  ["-1-2", "-1 years -2 mons"],
  ["1-2 3 4:05", "1 year 2 mons 3 days 04:05:00"],
  ["1 year -1 day", "1 year -1 days"],
  ["1 week 3h ago", "-7 days -03:00:00"],
  ["P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"],
  ["P-1D", "-1 days"],
  ["PT", "00:00:00"],
  ["2 1 hour", "2 days 01:00:00"],
  ["4:05:60", "04:06:00"],
  ["PT36H", "36:00:00"],
  ["90 minutes", "01:30:00"],
  ["5", "00:00:05"],
  ["1h30m", "01:30:00"],
  ["2 decades", "20 years"],
  ["-1 day +2 hours", "-1 days +02:00:00"],
  ["1 microsecond", "00:00:00.000001"],
  ["0", "00:00:00"],
  ["@ 1 minute", "00:01:00"],
])("%p is read as %p, which is read back", (text, written) => {
  const interval = intervalFromText(text);
  expect(textFromInterval(interval)).toBe(written);
  expect(intervalFromText(written)).toEqual(interval);
});

test.each([
  "",
  "ago",
  "@",
  "x",
  "1 parsec",
  "P",
  "-P1D",
  "1e3",
  "1-12",
  "4:05:61",
  "2 1 minute",
  "1:60",
  "2025-01-01",
  "1 day ago 2",
  "--1 day",
])("%p is not an interval", (text) => {
  expect(() => intervalFromText(text)).toThrow("as an interval");
});

test.each(["1 day 1 day", "1 hour 02:00", "1-2 3 months", "1 5", "1 day 1 2:03"])(
  "%p contains a field twice, and is not an interval",
  (text) => {
    expect(() => intervalFromText(text)).toThrow("as an interval");
  },
);

test.each([
  ["P0001-02-03T04:05:06.5", "1 year 2 mons 3 days 04:05:06.5"],
  ["P0001-02-03", "1 year 2 mons 3 days"],
  ["PT10:11:12", "10:11:12"],
])("the interval %p is printed as %p", (text, written) => {
  expect(textFromInterval(intervalFromText(text))).toBe(written);
});

test.each([
  ["1", ["year"], undefined, "1 year"],
  ["90", ["minute"], undefined, "01:30:00"],
  ["1 5", ["day", "hour"], undefined, "1 day 05:00:00"],
  ["1:30", ["minute", "second"], undefined, "00:01:30"],
  ["1:30", ["hour", "minute"], undefined, "01:30:00"],
  ["1 day 02:03:04", ["hour"], undefined, "1 day 02:00:00"],
  ["-26:03:04.56", ["minute"], undefined, "-26:03:00"],
  ["-1.26", ["second"], 1, "-00:00:01.3"],
  ["1.6 seconds", undefined, 0, "00:00:02"],
] as const)("%p limited to %p and %p digits is %p", (text, fields, digits, written) => {
  expect(textFromInterval(intervalFromText(text, { fields, digits }))).toBe(written);
});

test("scaleInterval and divideInterval carry months over to days, and days to time", () => {
  const month = intervalFromText("1 month");
  expect(textFromInterval(scaleInterval(month, 1.5))).toBe("1 mon 15 days");
  expect(textFromInterval(divideInterval(month, 7))).toBe("4 days 06:51:25.6896");
  expect(textFromInterval(divideInterval(intervalFromText("1 hour"), 4))).toBe("00:15:00");
  expect(textFromInterval(divideInterval(intervalFromText("49 months"), 49))).toBe("1 mon");
});

test("intervals are compared with 30 days in a month and 24 hours in a day", () => {
  expect(intervalSpan(intervalFromText("1 month"))).toBe(intervalSpan(intervalFromText("30 days")));
  expect(intervalSpan(intervalFromText("1 day"))).toBe(intervalSpan(intervalFromText("24:00")));
  expect(intervalSpan(makeInterval(2_000_000_000, 0, 0))).toBe(
    2_000_000_000n * 30n * 86_400_000_000n,
  );
});

test("the parts of an interval are limited", () => {
  expect(() => makeInterval(2 ** 31, 0, 0)).toThrow("Cannot create the interval");
  const largest = makeInterval(2 ** 31 - 1, 0, 0);
  expect(() => addIntervals(largest, largest)).toThrow("Cannot create the interval");
  expect(negateInterval(makeInterval(0, 0, 0))).toEqual({ months: 0, days: 0, micros: 0 });
});
