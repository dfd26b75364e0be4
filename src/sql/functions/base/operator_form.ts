/**
 * What the operator files share: making a form, and the errors that arithmetic raises.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type DataType, unbounded, type Value } from "../../../types/mod.ts";
import type { OperatorForm } from "./function.ts";

/** A form of two operands. */
export function binaryForm(
  operands: readonly [DataType, DataType],
  result: DataType,
  compute: (left: Value, right: Value) => Value,
): OperatorForm {
  return {
    operands,
    result,
    evaluate: (values) => compute(values[0] ?? null, values[1] ?? null),
  };
}

/** A form of one operand. */
export function prefixForm(
  operand: DataType,
  result: DataType,
  compute: (value: Value) => Value,
): OperatorForm {
  return { operands: [operand], result, evaluate: (values) => compute(values[0] ?? null) };
}

export function divisionByZero(): DatabaseError {
  return new DatabaseError("DIVISION_BY_ZERO", "Cannot divide by zero");
}

/** An untyped literal takes the type of the other side, but not its digits; NULL takes both. */
export function knownType(type: DataType, other: DataType): DataType {
  if (type.kind !== "unknown") return type;
  return type.isNull === true ? other : unbounded(other);
}

/** A time of day counts from midnight where a span is needed, as beside an interval. */
export function isSpan({ kind }: DataType): boolean {
  return kind === "interval" || kind === "time";
}
