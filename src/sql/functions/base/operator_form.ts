/** Provides functions for defining operators. They create operator forms and arithmetic errors. */
import { DatabaseError } from "../../../base/errors.ts";
import { type DataType, unbounded, type Value } from "../../../types/mod.ts";
import type { OperatorForm } from "./function.ts";

/** Creates the form of a binary operator. */
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

/** Creates the form of a prefix operator. */
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

/**
 * Returns the type of an operand. An untyped literal takes the type of the other operand without
 * its precision and scale; an untyped NULL also takes the precision and scale.
 */
export function knownType(type: DataType, other: DataType): DataType {
  if (type.kind !== "unknown") return type;
  return type.isNull === true ? other : unbounded(other);
}

/**
 * Whether a type is an interval or a time of day. Operators on intervals treat a time of day as
 * the interval since midnight.
 */
export function isSpan({ kind }: DataType): boolean {
  return kind === "interval" || kind === "time";
}
