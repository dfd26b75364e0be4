/**
 * Defines operators on arrays: concatenation and containment. Arrays are compared like values of
 * any other type.
 */
import {
  type ArrayValue,
  BOOLEAN,
  commonType,
  type DataType,
  elementsOf,
  groupKeyOf,
  hasOrder,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import { flatItems, joined } from "../base/array_shapes.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

export function resolveArray(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (left.kind !== "array" && right.kind !== "array") return undefined;
  if (op === "||") return resolveJoin(left, right);
  if (op !== "@>" && op !== "<@" && op !== "&&") return undefined;
  const type = commonType([left, right]);
  if (type?.kind !== "array" || !hasOrder(type)) return undefined;
  const element = type.element.kind === "unknown" ? TEXT : type.element;
  const operand: DataType = { kind: "array", element };
  return binaryForm([operand, operand], BOOLEAN, (l, r) => {
    const [outer, inner] = op === "<@" ? [r, l] : [l, r];
    const held = keysOf(element, outer);
    const wanted = elementsOf(inner as ArrayValue);
    if (op === "&&") return wanted.some((item) => item !== null && held.has(keyOf(element, item)));
    // Nothing contains NULL in the sense of `@>`.
    return wanted.every((item) => item !== null && held.has(keyOf(element, item)));
  });
}

function keyOf(element: DataType, item: Value): unknown {
  return groupKeyOf(element, item);
}

function keysOf(element: DataType, array: Value): Set<unknown> {
  const keys = new Set<unknown>();
  for (const item of elementsOf(array as ArrayValue))
    if (item !== null) keys.add(keyOf(element, item));
  return keys;
}

function resolveJoin(left: DataType, right: DataType): OperatorForm | undefined {
  const isLeftArray = left.kind === "array";
  const isRightArray = right.kind === "array";
  const isBothArrays =
    (isLeftArray || left.kind === "unknown") && (isRightArray || right.kind === "unknown");
  if (isBothArrays) {
    const type = commonType([left, right]);
    if (type === undefined) return undefined;
    // A NULL array is treated as an empty array.
    return {
      operands: [type, type],
      result: type,
      seesNull: true,
      evaluate: ([l = null, r = null]) => joined(l, r),
    };
  }
  const array = isLeftArray ? left : right;
  if (array.kind !== "array") return undefined;
  const element = commonType([array.element, isLeftArray ? right : left]);
  if (element === undefined) return undefined;
  const type: DataType = { kind: "array", element };
  return {
    operands: isLeftArray ? [type, element] : [element, type],
    result: type,
    seesNull: true,
    evaluate: ([l = null, r = null]) =>
      isLeftArray
        ? [...flatItems(l, "append to", "INVALID_VALUE"), r]
        : [l, ...flatItems(r, "prepend to", "INVALID_VALUE")],
  };
}
