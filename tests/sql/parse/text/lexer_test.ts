/**
 * Verifies that every kind of token is read with its exact value and position.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { parseExpression, parseStatements } from "../../../../src/sql/parse/parser.ts";
import { Token, tokenize } from "../../../../src/sql/parse/text/lexer.ts";
import { bare } from "../bare.ts";

function words(text: string): readonly string[] {
  const { ends, starts, words: all } = tokenize(text);
  return all.slice(0, -1).map((_, index) => text.slice(starts[index], ends[index]));
}

function valueOf(text: string): unknown {
  const node = parseExpression(text);
  return node.type === "string" ? node.value : bare(node);
}

function errorOf(text: string): DatabaseError | undefined {
  try {
    parseStatements(text);
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
  return undefined;
}

test("tokenize splits operators at the longest known one", () => {
  expect(words("a<=>b <->c <#>d->>e->f#>>g#>h||i::j!=k<>l")).toEqual(
    "a <=> b <-> c <#> d ->> e -> f #>> g #> h || i :: j != k <> l".split(" "),
  );
  expect(words("a<-1 b=-1 c=>d e^@f ?| ?& ?")).toEqual(
    "a < - 1 b = - 1 c => d e ^@ f ?| ?& ?".split(" "),
  );
});

test("tokenize treats comments as white space, even after operators and nested", () => {
  expect(words("a --x\n+ /* 1 /* 2 */ 3 */ b/**/c")).toEqual(["a", "+", "b", "c"]);
  expect(words("a|/* x */b #--y\nc")).toEqual(["a", "|", "b", "#", "c"]);
  expect(words("a -- to the end")).toEqual(["a"]);
});

test("tokenize recognizes Unicode white space", () => {
  expect(words("a\u00a0b\u2003c\ufeffd\u3000e")).toEqual(["a", "b", "c", "d", "e"]);
});

test("tokenize reads a part of a text with positions relative to the whole text", () => {
  const tokens = tokenize("SELECT 1; SELECT 2", 10, 18);
  expect(tokens.words).toEqual(["select", "", ""]);
  expect(Array.from(tokens.starts.subarray(0, 3))).toEqual([10, 17, 18]);
  expect(tokens.kinds[2]).toBe(Token.end);
});

test("tokenize has capacity for as many tokens as there are characters", () => {
  const text = "a,".repeat(500);
  const tokens = tokenize(text);
  expect(tokens.words).toHaveLength(1001);
  expect(words(text).join("")).toBe(text);
  expect(tokens.kinds[1000]).toBe(Token.end);
});

test("tokenize recognizes keywords in any case, and no other words", () => {
  expect(tokenize("SeLeCt selects _select").words).toEqual(["select", "", "", ""]);
});

test.each([
  ["'it''s'", "it's"],
  ["''", ""],
  ["E'a\\n\\t\\x41\\u00e9\\U0001F600\\\\\\'\\q'", "a\n\tAé😀\\'q"],
  ["E'\\101''x'", "A'x"],
  ["$$it's$$", "it's"],
  ["$tag$a $$ b $x$ c$tag$", "a $$ b $x$ c"],
  ["'a'\n'b'", "ab"],
  ["'a'  \n\t 'b''c'\r\n'd'", "ab'cd"],
  ["'€ 😀'", "€ 😀"],
])("parseExpression reads the string %s as %s", (text, value) => {
  expect(valueOf(text)).toBe(value);
});

test.each([
  ["42", { type: "integer", value: 42, text: "42" }],
  ["9223372036854775807", { type: "integer", value: 2 ** 63, text: "9223372036854775807" }],
  ["-9223372036854775808", { type: "integer", value: -(2 ** 63), text: "-9223372036854775808" }],
  ["0xff", { type: "integer", value: 255, text: "255" }],
  ["0o17", { type: "integer", value: 15, text: "15" }],
  ["0b101", { type: "integer", value: 5, text: "5" }],
  ["0xFFFF_FFFF_FFFF_FFFF", { type: "integer", value: 2 ** 64, text: "18446744073709551615" }],
  ["1_000", { type: "integer", value: 1000, text: "1000" }],
  ["4.20", { type: "numeric", value: 4.2, text: "4.20" }],
  [".5", { type: "numeric", value: 0.5, text: ".5" }],
  ["1.", { type: "numeric", value: 1, text: "1." }],
  ["1e3", { type: "numeric", value: 1000, text: "1e3" }],
  ["1.5E-7", { type: "numeric", value: 1.5e-7, text: "1.5E-7" }],
  ["-4.20", { type: "numeric", value: -4.2, text: "-4.20" }],
  ["X'0aFF'", { type: "bytes", hex: "0aff" }],
  ["b'0110'", { type: "bits", bits: "0110" }],
  ["$12", { type: "parameter", name: "$12", index: 12 }],
  ["abc$1", { type: "ref", name: "abc$1" }],
  ["ABC", { type: "ref", name: "abc" }],
  ['"A""b"', { type: "ref", name: 'A"b' }],
  ['"*"', { type: "ref", name: "*" }],
])("parseExpression, %s keeps its exact text", (text, expected) => {
  expect(bare(parseExpression(text))).toEqual(expected);
});

test.each([
  ["SELECT 'abc", "BATCH_PARSE_ERROR", 7],
  ["SELECT 1; SELECT 'a''", "BATCH_PARSE_ERROR", 17],
  ['SELECT "abc', "BATCH_PARSE_ERROR", 7],
  ["SELECT $$abc", "BATCH_PARSE_ERROR", 7],
  ["SELECT $a$abc$$", "BATCH_PARSE_ERROR", 7],
  ["SELECT /* x /* y */", "BATCH_PARSE_ERROR", 7],
  ["SELECT E'abc\\'", "BATCH_PARSE_ERROR", 7],
  ["SELECT X'ab", "BATCH_PARSE_ERROR", 7],
  ["SELECT 'a'\n'b", "BATCH_PARSE_ERROR", 7],
  ["SELECT 1\0", "INVALID_SQL", 8],
  ["SELECT 'a\0b'", "INVALID_SQL", 9],
  ["SELECT E'\\u0000'", "INVALID_SQL", 9],
  ["SELECT E'\\x00'", "INVALID_SQL", 9],
  ["SELECT E'\\xe9'", "INVALID_SQL", 9],
  ["SELECT E'\\u12'", "INVALID_SQL", 9],
  ["SELECT E'\\ud800'", "INVALID_SQL", 9],
  ["SELECT E'\\U00110000'", "INVALID_SQL", 9],
  ["SELECT X'abc'", "INVALID_SQL", 7],
  ["SELECT X'zz'", "INVALID_SQL", 7],
  ["SELECT 12abc", "INVALID_SQL", 7],
  ["SELECT 1e", "INVALID_SQL", 7],
  ["SELECT 0x", "INVALID_SQL", 7],
  ["SELECT 1__0", "INVALID_SQL", 7],
  ["SELECT $1a", "INVALID_SQL", 7],
  ["SELECT $", "INVALID_SQL", 7],
  ["SELECT a ! b", "INVALID_SQL", 9],
  ["SELECT `a`", "INVALID_SQL", 7],
  ["SELECT a\\b", "INVALID_SQL", 8],
  ["SELECT \u0001", "INVALID_SQL", 7],
  ['SELECT ""', "INVALID_SQL", 7],
  ["SELECT größe", "INVALID_SQL", 9],
  ["SELECT B'012'", "INVALID_SQL", 7],
  ["SELECT B'01", "BATCH_PARSE_ERROR", 7],
] as const)("parseStatements refuses %j with %s at %d", (text, condition, position) => {
  const error = errorOf(text);
  expect(error?.code).toBe(condition);
  expect(error?.position).toBe(position);
  expect(error?.statementIndex).toBe(text.startsWith("SELECT 1;") ? 1 : 0);
});
