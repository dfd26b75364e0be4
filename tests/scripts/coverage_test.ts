/**
 * Verifies that the coverage figure counts a line only once, even if the test runner reports it
 * several times.
 */
import { expect, test } from "bun:test";
import { coverageFrom, spansOf, sumOf } from "../../scripts/support/coverage.ts";

const REPORT = [
  "TN:\nSF:src/a.ts\nFNF:3\nFNH:2\nDA:1,4\nDA:3,0\nDA:2,0\nDA:7,0\nLF:4\nLH:1\nend_of_record",
  "TN:\nSF:src/b.ts\nFNF:1\nFNH:1\nDA:1,9\nLF:1\nLH:1\nend_of_record\n",
].join("\n");

test("lines and functions are summed over the files", () => {
  const files = coverageFrom(REPORT);
  expect(files).toEqual([
    { path: "src/a.ts", lines: 4, linesRun: 1, functions: 3, functionsRun: 2, missing: [2, 3, 7] },
    { path: "src/b.ts", lines: 1, linesRun: 1, functions: 1, functionsRun: 1, missing: [] },
  ]);
  expect(sumOf(files)).toEqual({ lines: 5, linesRun: 2, functions: 4, functionsRun: 3 });
});

test("consecutive lines form a range", () => {
  expect(spansOf([1, 2, 3, 7, 9, 10])).toBe("1–3, 7, 9–10");
});

test("a report without counts is refused", () => {
  expect(() => coverageFrom("SF:src/a.ts\nLF:1\nend_of_record")).toThrow("no LH");
});
