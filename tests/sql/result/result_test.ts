/**
 * Verifies that cells of a result have the values of their rows, whatever form a column has, and
 * that the strings of a batch are decoded together. The tests compare columns of both forms, and
 * use a column that counts the accesses to its bytes.
 */
import { expect, test } from "bun:test";
import { CellRows } from "../../../src/sql/result/result.ts";
import { BIGINT, TEXT, type Utf8Vector } from "../../../src/types/mod.ts";

function textColumn(texts: readonly (string | null)[], onRead: () => void): Utf8Vector {
  const parts = texts.map((text) => Buffer.from(text ?? ""));
  const offsets = new Uint32Array(texts.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = (offsets[i] ?? 0) + part.length;
  const all = Buffer.concat(parts);
  return {
    kind: "utf8",
    length: texts.length,
    get bytes() {
      onRead();
      return all;
    },
    offsets,
    nulls: Uint8Array.from(texts, (text) => (text === null ? 1 : 0)),
  };
}

test.each([
  ["of many rows", Array.from({ length: 1000 }, (_, i) => (i % 7 === 0 ? null : `row ${i}`))],
  ["beyond ASCII", ["é", "", null, "\u{1f600}"]],
  ["of one row", ["only"]],
])("CellRows.append decodes the texts %s at once", (_, texts) => {
  let readCount = 0;
  const column = textColumn(texts, () => {
    readCount += 1;
  });
  const numbers = {
    kind: "any",
    length: texts.length,
    values: texts.map((_text, i) => i),
  } as const;
  const rows: unknown[][] = [["before"]];
  new CellRows([BIGINT, TEXT]).append({ rowCount: texts.length, columns: [numbers, column] }, rows);
  expect(rows).toEqual([["before"], ...texts.map((text, i) => [i, text])]);
  expect(readCount).toBeLessThan(4);
});
