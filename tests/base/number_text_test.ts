/** Verifies that numbers from tables, written as JSON text, read back as the same numbers. */
import { expect, test } from "bun:test";
import { millisecondsText, seqText } from "../../src/base/number_text.ts";

test("seqText writes every seq as the runtime does", () => {
  const seqs = [0, 1, 9999, 10_000, 1e8 - 1, 1e8, 1e8 + 1, 1e8 + 10_000, 114_809_241_600_002];
  seqs.push(Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, 330_000_000_000_000);
  for (let seq = 7; seq < Number.MAX_SAFE_INTEGER; seq = seq * 3 + 1) seqs.push(seq);
  for (const seq of [...seqs, ...seqs.toReversed()]) expect(seqText(seq)).toBe(String(seq));
});

test.each([-1, 0.5, 2 ** 53, Number.NaN])("seqText refuses %d, which is not a seq", (seq) => {
  expect(() => seqText(seq)).toThrow("seq to be formatted is not a non-negative safe integer");
});

test.each([
  [0, "0.000"],
  [0.0004, "0.000"],
  [0.0005, "0.001"],
  [0.999_999, "1.000"],
  [1.402, "1.402"],
  [12.05, "12.050"],
  [86_400_000.25, "86400000.250"],
])("millisecondsText writes %d as %s", (milliseconds, text) => {
  expect(millisecondsText(milliseconds)).toBe(text);
});
