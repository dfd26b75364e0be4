/** Validates the parameters of a request, and separates their values from their types. */
import { DatabaseError } from "../../base/errors.ts";
import { NESTING_MAX } from "../../base/limits.ts";
import { BIGINT, type DataType, type Value, valueFromParameter } from "../../types/mod.ts";
import type { ParseLimits } from "../parse/parser.ts";
import type { SqlParameter } from "./engine.ts";
import type { SqlLimits } from "./environment.ts";

export function parseLimitsOf(limits: SqlLimits): ParseLimits {
  return {
    sqlBytesMax: limits.sqlBytesMax,
    parametersMax: limits.parametersMax,
    nestingMax: NESTING_MAX,
  };
}

/** The values and the types of the parameters, as separate lists in parameter order. */
export interface TypedParameters {
  readonly types: DataType[];
  readonly values: Value[];
}

/**
 * Returns the values and types of the parameters of a request.
 * @throws {DatabaseError} INVALID_PARAMETER
 */
export function typedParameters(
  params: readonly SqlParameter[],
  { parameterBytesMax, parametersMax }: SqlLimits,
): TypedParameters {
  if (params.length > parametersMax) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind ${params.length} parameters: the maximum is ${parametersMax}`,
    );
  }
  const types: DataType[] = [];
  const values: Value[] = [];
  for (const parameter of params) {
    // Most parameters are numbers, so no object is created for them.
    if (typeof parameter === "number") {
      types.push(BIGINT);
      // Adding 0 turns -0 into 0, because integers have no negative zero.
      values.push(parameter + 0);
      continue;
    }
    const { type, value } = typedParameter(parameter, types.length, parameterBytesMax);
    types.push(type);
    values.push(value);
  }
  return { types, values };
}

/**
 * Returns the parameters with every safe integer as a number, even if it was sent as a string of
 * digits. Equal parameters then have the same representation and take little memory.
 */
export function shortParameters(params: readonly SqlParameter[]): readonly SqlParameter[] {
  return params.map((given) => {
    if (typeof given !== "object" || given === null || !("number" in given)) return given;
    const value = Number(given.number);
    return Number.isSafeInteger(value) && String(value) === given.number ? value : given;
  });
}

/**
 * Requires that the statements use every parameter number up to `count`.
 *
 * @throws {DatabaseError} INVALID_PARAMETER
 */
export function requireNoGap(used: ReadonlySet<number>, count: number): void {
  for (let number = 1; number <= count; number += 1) {
    if (used.has(number)) continue;
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${number}: the SQL does not use this parameter, although it uses a higher one`,
    );
  }
}

function typedParameter(
  parameter: SqlParameter,
  index: number,
  bytesMax: number,
): { type: DataType; value: Value } {
  const text = textOf(parameter);
  if (text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${index + 1}: the value is longer than ${bytesMax} bytes`,
    );
  }
  return valueFromParameter(parameter);
}

function textOf(parameter: SqlParameter): string {
  if (typeof parameter === "string") return parameter;
  return typeof parameter === "object" && parameter !== null && "json" in parameter
    ? parameter.json
    : "";
}
