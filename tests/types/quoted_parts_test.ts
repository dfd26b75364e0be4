/**
 * Tests how quoted cells of rows and quoted bounds of ranges are read. SQL cases cover usual
 * values.
 */
import { expect, test } from "bun:test";
import { rangeFromText, textFromRange } from "../../src/types/range_text.ts";
import { cellsFromRowText } from "../../src/types/row_text.ts";

const RANGE = { kind: "range", bound: { kind: "text" } } as const;

function readAndWritten(text: string): string {
  const range = rangeFromText(RANGE, text, (bound) => bound);
  return textFromRange(RANGE, range, (bound) => bound as string);
}

test("the cells of a row lose their quotes and backslashes", () => {
  expect(cellsFromRowText('(a"b""c,"d,"",\\,e,"\\"f")')).toEqual(['ab"c,d', "", ",e", '"f']);
});

test.each(['("a', '("a)', '("a"")', "(a\\)", "(a\\"])("the row %s is refused", (text) => {
  expect(cellsFromRowText(text)).toBeUndefined();
});

test("each special character in a bound survives being read and written", () => {
  expect(readAndWritten('[a" "",\\)"\\],"b\\\\""é")')).toBe('["a "",)]","b\\\\""é")');
});

test.each(['["a,b)', '["a"",b)', "[a,b\\)", "[a,b\\"])("the range %s is refused", (text) => {
  expect(() => readAndWritten(text)).toThrow("Cannot read");
});

test("every byte of a bound survives being encoded", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const range = rangeFromText({ kind: "range", bound: { kind: "bytes" } }, "[,x)", () => bytes);
  const texts: unknown[] = [];
  textFromRange({ kind: "range", bound: { kind: "bytes" } }, range, (bound) => {
    texts.push(bound);
    return "";
  });
  expect(texts).toEqual([bytes]);
});
