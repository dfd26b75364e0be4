/**
 * Evaluates the conditions of JSON paths on single items. A condition is unknown if the items
 * cannot be compared.
 */
import { compareCodePoints, compareJson, type PathComparison } from "../../../types/mod.ts";
import { regexOf } from "../regex/pattern.ts";
import { numberOf, type PathItem } from "./path_items.ts";
import { compareMoments, PathMoment } from "./path_moments.ts";

/**
 * Compares two items of a JSON path.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if only functions with the suffix `_tz` can compare
 *   them.
 */
export function compareItems(
  op: PathComparison,
  [left, right]: readonly [PathItem, PathItem],
  usesZone: boolean,
): boolean | undefined {
  const isNull = left === null || right === null;
  if (isNull && left !== right) return op === "!=";
  const order = isNull ? 0 : orderOf(left, right, usesZone);
  if (order === undefined) return undefined;
  switch (op) {
    case "==":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

function orderOf(left: PathItem, right: PathItem, usesZone: boolean): number | undefined {
  if (typeof left === "string") {
    return typeof right === "string" ? compareCodePoints(left, right) : undefined;
  }
  if (typeof left === "boolean") {
    return typeof right === "boolean" ? Number(left) - Number(right) : undefined;
  }
  if (left instanceof PathMoment) {
    return right instanceof PathMoment ? compareMoments(left, right, usesZone) : undefined;
  }
  const [number, other] = [numberOf(left), numberOf(right)];
  if (number === undefined || other === undefined) return undefined;
  return compareJson({ number }, { number: other });
}

export function startsWith(text: PathItem, beginning: PathItem): boolean | undefined {
  if (typeof text !== "string" || typeof beginning !== "string") return undefined;
  return text.startsWith(beginning);
}

/**
 * Tests a string against `like_regex`.
 *
 * @throws {DatabaseError} INVALID_VALUE, UNSUPPORTED_FEATURE for an invalid pattern.
 */
export function matchesPattern(
  text: PathItem,
  pattern: string,
  flags: string,
): boolean | undefined {
  if (typeof text !== "string") return undefined;
  const cases = flags.includes("i") ? "i" : "";
  if (flags.includes("q")) return regexOf(escaped(pattern), cases).test(text);
  const lines = flags.includes("m")
    ? flags.includes("s")
      ? "w"
      : "n"
    : flags.includes("s")
      ? "s"
      : "p";
  return regexOf(pattern, cases + lines).test(text);
}

/** Returns a pattern that matches exactly the given string. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
