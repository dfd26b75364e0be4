/**
 * What a request brings besides its text: its parameters.
 */
import { DatabaseError } from "../../base/errors.ts";
import { NESTING_MAX } from "../../base/limits.ts";
import { BIGINT, type DataType, type Value, valueFromParameter } from "../../types/mod.ts";
import type { ParseLimits } from "../parse/parser.ts";
import type { Parameter } from "./engine.ts";
import type { SqlLimits } from "./environment.ts";

export function parseLimitsOf(limits: SqlLimits): ParseLimits {
  return {
    sqlBytesMax: limits.sqlBytesMax,
    parametersMax: limits.parametersMax,
    nestingMax: NESTING_MAX,
  };
}

/** Parameters in their order, values and types apart. */
export interface TypedParameters {
  readonly types: DataType[];
  readonly values: Value[];
}

/** @throws {DatabaseError} INVALID_PARAMETER */
export function typedParameters(
  params: readonly Parameter[],
  { parameterBytesMax, parametersMax }: SqlLimits,
): TypedParameters {
  if (params.length > parametersMax) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind ${params.length} parameters: the most is ${parametersMax}`,
    );
  }
  const types: DataType[] = [];
  const values: Value[] = [];
  for (const parameter of params) {
    // The most frequent kind is taken without an object for each.
    if (typeof parameter === "number") {
      types.push(BIGINT);
      // A zero with a sign is a zero among whole numbers.
      values.push(parameter + 0);
      continue;
    }
    const { type, value } = typedParameter(parameter, types.length, parameterBytesMax);
    types.push(type);
    values.push(value);
  }
  return { types, values };
}

/** Every parameter up to the highest is named. @throws {DatabaseError} INVALID_PARAMETER */
export function requireNoGap(used: ReadonlySet<number>, count: number): void {
  for (let number = 1; number <= count; number += 1) {
    if (used.has(number)) continue;
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${number}: the text does not name it, only a higher one`,
    );
  }
}

function typedParameter(
  parameter: Parameter,
  index: number,
  bytesMax: number,
): { type: DataType; value: Value } {
  const text = typeof parameter === "string" ? parameter : "";
  if (text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${index + 1}: it has more than ${bytesMax} bytes`,
    );
  }
  return valueFromParameter(parameter);
}
