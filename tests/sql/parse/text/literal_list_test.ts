/**
 * Tests how much memory the scanner of literal lists reserves, and that a list cannot be read once
 * its text is gone.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../../src/base/assert.ts";
import type { LiteralList, LiteralValuesStatement } from "../../../../src/sql/parse/ast/ast.ts";
import {
  literalPosition,
  literalText,
  scanLiteralList,
  textIn,
  Utf8Text,
} from "../../../../src/sql/parse/text/literal_list.ts";
import { literalValuesToRows } from "../../../../src/sql/parse/text/literal_nodes.ts";

test("scanLiteralList reserves space for the cells of its list, however long the rest of the text is", () => {
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

test("scanLiteralList returns values that no later list changes, and none of an earlier list", () => {
  const texts = [
    " (1, 'a', NULL), (2, 'b', -1.5)",
    " (true)",
    " (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    " ('c''d')",
  ];
  const alone = texts.map((text) => scanned(text));
  const lists = texts.map((text) => {
    // The parameter makes the scanner give up in the middle of a row.
    expect(scanned(" ('x', 'y', 'z', $1)")).toBeUndefined();
    return scanned(text);
  });
  expect(lists).toEqual(alone);
  expect(
    alone.map((list) => list && Array.from(list.kinds, (_, cell) => cellText(list, cell))),
  ).toEqual([
    ["1", "'a'", "NULL", "2", "'b'", "-1.5"],
    ["true"],
    ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
    ["'c''d'"],
  ]);
});

test("scanLiteralList does not keep the memory of a very large list", () => {
  const rows = Array.from({ length: 40_000 }, (_, i) => `(${i}, ${i})`);
  const list = scanned(` ${rows.join(",")}`);
  expect(scanned(" (1)")?.rowCount).toBe(1);
  expect(list && [cellText(list, 0), cellText(list, 79_999)]).toEqual(["0", "39999"]);
});

test("a list whose bytes were released cannot be read as empty cells", () => {
  const text = " (1, 'a long text of many words'), (2, 'b')";
  const bytes = new TextEncoder().encode(text);
  const list = defined(
    scanLiteralList(new Utf8Text(text, bytes), 0)?.list,
    "the list must be plain",
  );
  const _location = { start: 0, end: text.length };
  const statement: LiteralValuesStatement = { type: "literal values", ...list, _location };
  const reads: (() => unknown)[] = [
    () => literalText(list, 1),
    () => literalPosition(list, 2),
    () => literalValuesToRows(statement),
    () => new Utf8Text(text, bytes),
  ];
  for (const read of reads) expect(read).not.toThrow();
  bytes.buffer.transfer(0);
  for (const read of reads.slice(0, 3)) expect(read).toThrow("after its text was released");
  for (const read of reads.slice(3)) expect(read).toThrow("shorter than its UTF-16 form");
});

function scanned(text: string): LiteralList | undefined {
  return scanLiteralList(new Utf8Text(text), 0)?.list;
}

/** Returns the text of a cell as written in the list. */
function cellText({ bytes, ends, starts }: LiteralList, cell: number): string {
  return textIn(bytes, "utf8", starts[cell] ?? 0, ends[cell] ?? 0);
}
