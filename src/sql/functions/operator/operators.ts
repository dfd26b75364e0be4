/**
 * Resolves an operator: finds its form for the given operand types.
 */
import { BOOLEAN, type DataType, DOUBLE } from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, prefixForm } from "../base/operator_form.ts";
import {
  cosineDistance,
  innerProduct,
  isVectorLike,
  l2Distance,
  vectorOf,
  vectorOperand,
} from "../base/vector_math.ts";
import { resolveArithmetic, resolveNumericPrefix } from "./operator_arithmetic.ts";
import { resolveArray } from "./operator_array.ts";
import { resolveBits, resolveBitsPrefix } from "./operator_bits.ts";
import { resolveComparison } from "./operator_compare.ts";
import { resolveGeometry, resolveGeometryPrefix } from "./operator_geometry.ts";
import { resolveJson } from "./operator_json.ts";
import { resolveMoney } from "./operator_money.ts";
import { resolveNetwork, resolveNetworkPrefix } from "./operator_network.ts";
import { resolveRange } from "./operator_range.ts";
import { resolveRow } from "./operator_row.ts";
import { resolveSearch, resolveSearchPrefix } from "./operator_search.ts";
import { resolveConcatenation, resolveLike, resolveTextOperator } from "./operator_text.ts";
import { resolveTime, resolveTimePrefix } from "./operator_time.ts";
import { resolveUnsigned } from "./operator_unsigned.ts";

export { resolveLike };

/**
 * Returns the form of `left op right`. An untyped operand takes the type of the other operand.
 *
 * @param op The operator as the parser names it; `<>` and `!=` are equivalent.
 * @returns undefined if no such operator accepts these types.
 */
export function resolveBinary(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  return (
    resolveComparison(op, left, right) ??
    resolveArithmetic(op, left, right) ??
    resolveTime(op, left, right) ??
    resolveArray(op, left, right) ??
    resolveJson(op, left, right) ??
    resolveBits(op, left, right) ??
    resolveNetwork(op, left, right) ??
    resolveMoney(op, left, right) ??
    resolveUnsigned(op, left, right) ??
    resolveRange(op, left, right) ??
    resolveRow(op, left, right) ??
    resolveGeometry(op, left, right) ??
    resolveSearch(op, left, right) ??
    (op === "||" ? resolveConcatenation(left, right) : undefined) ??
    resolveLike(op, [left, right]) ??
    resolveTextOperator(op, left, right) ??
    resolveVector(op, left, right)
  );
}

/** Returns the form of a prefix operator: `+ - ~ @ |/ ||/ NOT`, or a geometric operator. */
export function resolvePrefix(op: string, operand: DataType): OperatorForm | undefined {
  if (op === "NOT") {
    const isTruth = operand.kind === "boolean" || operand.kind === "unknown";
    return isTruth ? prefixForm(BOOLEAN, BOOLEAN, (value) => value !== true) : undefined;
  }
  return (
    resolveSearchPrefix(op, operand) ??
    resolveBitsPrefix(op, operand) ??
    resolveNetworkPrefix(op, operand) ??
    resolveGeometryPrefix(op, operand) ??
    resolveTimePrefix(op, operand) ??
    resolveNumericPrefix(op, operand)
  );
}

const DISTANCES: ReadonlyMap<string, (left: Float32Array, right: Float32Array) => number> = new Map(
  [
    ["<=>", cosineDistance],
    ["<->", l2Distance],
    ["<#>", (left: Float32Array, right: Float32Array) => 0 - innerProduct(left, right)],
  ],
);

function resolveVector(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  const distance = DISTANCES.get(op);
  if (distance === undefined || !isVectorLike(left) || !isVectorLike(right)) return undefined;
  if (left.kind !== "embedding" && right.kind !== "embedding") return undefined;
  return binaryForm([vectorOperand(left), vectorOperand(right)], DOUBLE, (l, r) =>
    distance(vectorOf(l), vectorOf(r)),
  );
}
