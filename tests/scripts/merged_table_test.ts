/**
 * Verifies that a benchmark run with only some jobs changes only the rows of these jobs in
 * docs/performance.md.
 */
import { expect, test } from "bun:test";
import type { Line } from "../../scripts/bench/compare/jobs.ts";
import { mergedTable } from "../../scripts/bench/compare/merged_table.ts";
import { tableOf } from "../../scripts/bench/compare/report.ts";

function line(job: string, values: Line["values"], target?: Line["target"]): Line {
  return { job, unit: "ms", isRate: false, values, ...(target !== undefined && { target }) };
}

const earlier = tableOf([
  line("a", { Tidemark: 10, SQLite: 20 }, { atMost: 5 }),
  line("b", { Tidemark: 30, SQLite: 15 }),
  line("c", { Tidemark: 7 }),
]);

test("mergedTable replaces the rows of the jobs that were run in place, and marks the others", () => {
  const latest = tableOf([line("b", { Tidemark: 10, SQLite: 30 })]);
  expect(mergedTable(earlier, latest).split("\n")).toEqual([
    "| job | unit | Tidemark | SQLite | ratio | target |",
    "| --- | --- | ---: | ---: | ---: | ---: |",
    "| a ° | ms | 10 | 20 | 2.00 × | ≤ 5 ms: MISSED |",
    "| b | ms | 10 | 30 | 3.00 × |  |",
    "| c ° | ms | 7 |  |  |  |",
  ]);
});

test("mergedTable accepts a column that only one of the tables has, and a new row", () => {
  const latest = tableOf([line("d", { Tidemark: 4, DuckDB: 2 })]);
  expect(mergedTable(earlier, latest).split("\n").slice(0, 3)).toEqual([
    "| job | unit | Tidemark | SQLite | ratio | DuckDB | ratio | target |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    "| a ° | ms | 10 | 20 | 2.00 × |  |  | ≤ 5 ms: MISSED |",
  ]);
  expect(mergedTable(earlier, latest)).toEndWith("| d | ms | 4 |  |  | 2 | 0.50 × |  |");
});

test("mergedTable marks a row once, and removes the mark when the row is measured again", () => {
  const once = mergedTable(earlier, tableOf([line("b", { Tidemark: 1 })]));
  const twice = mergedTable(once, tableOf([line("a", { Tidemark: 1 })]));
  expect(twice).toContain("| a |");
  expect(twice).toContain("| b ° |");
  expect(twice).toContain("| c ° |");
  expect(twice).not.toContain("° °");
});

test("mergedTable loses no row of the tables in docs/performance.md", async () => {
  const text = await Bun.file(new URL("../../docs/performance.md", import.meta.url)).text();
  for (const mark of ["bench", "bench live"]) {
    const [, part = ""] = new RegExp(`<!-- ${mark} -->([^]*)<!-- /${mark} -->`).exec(text) ?? [];
    const table = part.slice(part.indexOf("|")).trim();
    expect(table.split("\n").length).toBeGreaterThan(10);
    const merged = mergedTable(table, tableOf([line("new", { Tidemark: 1 })])).split("\n");
    expect(merged.slice(0, -1).map((row) => row.replaceAll(" °", ""))).toEqual(
      table.replaceAll(" °", "").split("\n"),
    );
  }
});
