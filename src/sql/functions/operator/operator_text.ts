/**
 * Defines operators on strings: concatenation, LIKE and related operators, regular expressions, and
 * starts-with.
 *
 * Compiled patterns are cached, because a statement usually has only one.
 */

import {
  BOOLEAN,
  BYTES,
  compareCodePoints,
  type DataType,
  TEXT,
  textFromValue,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { binaryForm } from "../base/operator_form.ts";
import { remembering } from "../base/remembering.ts";
import { checkedEscape, compileLike } from "../regex/like.ts";
import { compileRegex } from "../regex/regex.ts";
import { regexFromSimilar } from "../regex/similar.ts";

function isTextual(type: DataType): boolean {
  return type.kind === "text" || type.kind === "unknown";
}

/**
 * Returns the form of `||` for strings and bytes. Either at least one operand must be a string, or
 * both must be bytes. The form for arrays and JSON is elsewhere.
 */
export function resolveConcatenation(left: DataType, right: DataType): OperatorForm | undefined {
  const kinds = [left.kind, right.kind];
  if (kinds.includes("bytes") && kinds.every((kind) => kind === "bytes" || kind === "unknown")) {
    return binaryForm([BYTES, BYTES], BYTES, (l, r) => {
      return new Uint8Array(Buffer.concat([l as Uint8Array, r as Uint8Array]));
    });
  }
  const isJoinable = kinds.includes("text") || kinds.every((kind) => kind === "unknown");
  const hasText = isTextual(left) || isTextual(right);
  // `||` on an array and a string is neither array nor string concatenation.
  if (!hasText || (kinds.includes("array") && isJoinable)) return undefined;
  const leftType = isTextual(left) ? TEXT : left;
  const rightType = isTextual(right) ? TEXT : right;
  if (leftType === TEXT && rightType === TEXT) {
    return binaryForm([TEXT, TEXT], TEXT, (l, r) => joined(l as string, r as string));
  }
  return binaryForm([leftType, rightType], TEXT, (l, r) =>
    joined(textFromValue(leftType, l), textFromValue(rightType, r)),
  );
}

function joined(left: string, right: string): string {
  checkMadeLength(left.length + right.length);
  return left + right;
}

const LIKE_FAMILY: ReadonlySet<string> = new Set(["LIKE", "ILIKE", "SIMILAR TO"]);

/**
 * Returns the form of `LIKE`, `ILIKE`, `SIMILAR TO` and their negations.
 *
 * @param operands The types of the text, the pattern and the escape character, if any.
 */
export function resolveLike(op: string, operands: readonly DataType[]): OperatorForm | undefined {
  const isNegated = op.startsWith("NOT ");
  const family = isNegated ? op.slice("NOT ".length) : op;
  if (family === "LIKE" && isBytes(operands)) return likeOfBytes(operands.length, isNegated);
  if (!LIKE_FAMILY.has(family) || !operands.every(isTextual)) return undefined;
  const matcherFor = likeMatchers(family);
  return {
    operands: operands.map(() => TEXT),
    result: BOOLEAN,
    evaluate: ([text, pattern, escape = "\\"]) => {
      const matches = matcherFor(pattern as string, escape as string);
      return matches(text as string) !== isNegated;
    },
  };
}

/** Whether all operands are bytes, or literals that can be read as bytes. */
function isBytes(operands: readonly DataType[]): boolean {
  const kinds = operands.map(({ kind }) => kind);
  return kinds.includes("bytes") && kinds.every((kind) => kind === "bytes" || kind === "unknown");
}

/** Creates the form of LIKE over bytes. Each byte counts as one character. */
function likeOfBytes(operandCount: number, isNegated: boolean): OperatorForm {
  const matcherFor = likeMatchers("LIKE");
  return {
    operands: Array.from({ length: operandCount }, () => BYTES),
    result: BOOLEAN,
    evaluate: ([bytes, pattern, escape]) => {
      const matches = matcherFor(latin(pattern), escape === undefined ? "\\" : latin(escape));
      return matches(latin(bytes)) !== isNegated;
    },
  };
}

/** Decodes bytes as Latin-1, so that each byte becomes one character. */
function latin(bytes: Value = null): string {
  return Buffer.from(bytes as Uint8Array).toString("latin1");
}

type TextTest = (text: string) => boolean;

function likeMatchers(family: string): (pattern: string, escape: string) => TextTest {
  let lastEscape = "\\";
  let matcherFor = remembering((pattern) => compilePattern(family, pattern, lastEscape));
  return (pattern, escape) => {
    if (escape !== lastEscape) {
      lastEscape = checkedEscape(escape);
      matcherFor = remembering((text) => compilePattern(family, text, lastEscape));
    }
    return matcherFor(pattern);
  };
}

function compilePattern(family: string, pattern: string, escape: string): TextTest {
  if (family !== "SIMILAR TO") {
    return compileLike(pattern, { escape, ignoreCase: family === "ILIKE" });
  }
  const regex = compileRegex(regexFromSimilar(pattern, escape), "");
  return (text) => regex.test(text);
}

export function resolveTextOperator(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (!isTextual(left) || !isTextual(right)) return undefined;
  switch (op) {
    case "~":
    case "~*":
    case "!~":
    case "!~*": {
      const flags = op.endsWith("*") ? "i" : "";
      const isNegated = op.startsWith("!");
      const regexFor = remembering((pattern) => compileRegex(pattern, flags));
      return binaryForm([TEXT, TEXT], BOOLEAN, (text, pattern) => {
        return regexFor(pattern as string).test(text as string) !== isNegated;
      });
    }
    case "^@":
      return binaryForm([TEXT, TEXT], BOOLEAN, (text, start) =>
        (text as string).startsWith(start as string),
      );
    default:
      return resolveCodePointOrder(op);
  }
}

const CODE_POINT_ORDERS: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ["~<~", (order: number) => order < 0],
  ["~<=~", (order: number) => order <= 0],
  ["~>=~", (order: number) => order >= 0],
  ["~>~", (order: number) => order > 0],
]);

/** Returns the form of an operator that compares strings by code point, in any collation. */
function resolveCodePointOrder(op: string): OperatorForm | undefined {
  const test = CODE_POINT_ORDERS.get(op);
  if (test === undefined) return undefined;
  return binaryForm([TEXT, TEXT], BOOLEAN, (left, right) =>
    test(compareCodePoints(left as string, right as string)),
  );
}
