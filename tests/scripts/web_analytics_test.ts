/** Tests the data and queries that the web analytics benchmark relies on. */
import { expect, test } from "bun:test";
import { viewsOf } from "../../scripts/bench/web_analytics/data.ts";
import { QUERIES } from "../../scripts/bench/web_analytics/queries.ts";
import { COLUMNS, VIEWS } from "../../scripts/bench/web_analytics/schema.ts";

test("rows depend only on the seed, and each has a hundred cells", () => {
  const rows = [...viewsOf(200, 1)];
  expect([...viewsOf(200, 1)]).toEqual(rows);
  expect([...viewsOf(200, 2)]).not.toEqual(rows);
  expect(COLUMNS.length).toBe(100);
  expect(rows.every(({ row, table }) => row.length === 100 && table === VIEWS.name)).toBe(true);
});

test("cells contain only characters that are allowed within a line of a file", () => {
  const cells = [...viewsOf(500, 3)].flatMap(({ row }) => row);
  expect(cells.filter((cell) => /[|'"\\\n]/.test(String(cell)))).toEqual([]);
});

test("there are 43 different questions", () => {
  expect(QUERIES.map(({ label }) => label)).toEqual(
    Array.from({ length: 43 }, (_, i) => String(i + 1)),
  );
  expect(new Set(QUERIES.map(({ sql }) => sql)).size).toBe(43);
});
