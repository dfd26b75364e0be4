/**
 * Verifies that a list of literals cannot be read as columns once its source text has been
 * released.
 */
import { expect, test } from "bun:test";
import { readLiteralColumn } from "../../../../src/sql/execute/change/literal_columns.ts";
import { BIGINT, TEXT } from "../../../../src/types/mod.ts";
import { literalRowsIn } from "../../../support/parsed.ts";

test("readLiteralColumn refuses a list whose bytes were released", () => {
  const text = " (1, 'a long text of many words'), (2, 'b')";
  const bytes = new TextEncoder().encode(text);
  const rows = literalRowsIn(text, bytes);
  const reads = [() => readLiteralColumn(rows, 0, BIGINT), () => readLiteralColumn(rows, 1, TEXT)];
  for (const read of reads) expect(read).not.toThrow();
  bytes.buffer.transfer(0);
  for (const read of reads) expect(read).toThrow("after its text was released");
});
