/**
 * Operators on arrays: joining and containment. Their comparison is that of any type.
 */
import {
  BOOLEAN,
  commonType,
  type DataType,
  groupKeyOf,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

type Items = readonly Value[];

export function resolveArray(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (left.kind !== "array" && right.kind !== "array") return undefined;
  if (op === "||") return resolveJoin(left, right);
  if (op !== "@>" && op !== "<@" && op !== "&&") return undefined;
  const type = commonType([left, right]);
  if (type?.kind !== "array") return undefined;
  const element = type.element.kind === "unknown" ? TEXT : type.element;
  const operand: DataType = { kind: "array", element };
  return binaryForm([operand, operand], BOOLEAN, (l, r) => {
    const [outer, inner] = op === "<@" ? [r, l] : [l, r];
    const held = keysOf(element, outer);
    const wanted = inner as Items;
    if (op === "&&") return wanted.some((item) => item !== null && held.has(keyOf(element, item)));
    // NULL is contained in nothing.
    return wanted.every((item) => item !== null && held.has(keyOf(element, item)));
  });
}

function keyOf(element: DataType, item: Value): unknown {
  return groupKeyOf(element, item);
}

function keysOf(element: DataType, array: Value): Set<unknown> {
  const keys = new Set<unknown>();
  for (const item of array as Items) if (item !== null) keys.add(keyOf(element, item));
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
    // A NULL array joins as an empty one.
    return {
      operands: [type, type],
      result: type,
      seesNull: true,
      evaluate: ([l = null, r = null]) => {
        if (l === null || r === null) return l ?? r;
        return [...(l as Items), ...(r as Items)];
      },
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
      isLeftArray ? [...((l ?? []) as Items), r] : [l, ...((r ?? []) as Items)],
  };
}
