/**
 * What the scanner of literal lists makes room for.
 */
import { expect, test } from "bun:test";
import { scanLiteralList, Utf8Text } from "../../../../src/sql/parse/text/literal_list.ts";

test("scanLiteralList makes room for the cells of its list, however long the text behind it is", () => {
  const statement = "INSERT INTO t VALUES (1, 2)";
  const text = Array.from({ length: 5000 }, () => statement).join("; ");
  const list = scanLiteralList(new Utf8Text(text), statement.indexOf(" (1"))?.list;
  expect([list?.rowCount, list?.columnCount]).toEqual([1, 2]);
  expect(list?.kinds.buffer.byteLength).toBeLessThan(1000);
});

test("scanLiteralList grows with its list", () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => `(${i}, 'x', NULL, -1.5)`);
  const list = scanLiteralList(new Utf8Text(` ${rows.join(", ")}`), 0)?.list;
  expect([list?.rowCount, list?.columnCount]).toEqual([20_000, 4]);
  expect(list?.kinds.buffer.byteLength).toBeLessThan(2 * 80_000);
});
