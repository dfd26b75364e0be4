/**
 * Parameters: JSON values to be bound to `$1`, `$2`, …, numbers with their digits.
 *
 * JSON.parse rounds a number before anyone can look at it, so a text with numbers that may have
 * lost something (a fraction that is zero, an exponent, more than 53 bits) has its parameters
 * parsed once more, keeping the source of each.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Parameter } from "../../sql/mod.ts";
import { type JsonSlice, jsonMember } from "../../types/mod.ts";
import { kindOf } from "./field_names.ts";

/**
 * A digit followed by a fraction or exponent, anywhere: then some number may not be a plain one.
 */
const FRACTION_OR_EXPONENT = /\d[.eE]/;

const IS_ARRAY =
  'is an array: send its text, as "{1,2,3}" for = ANY($1) and columns of arrays, or "[1,2,3]" for JSON';

const IS_OBJECT = 'is an object: send its JSON as text, as "{\\"a\\":1}"';

export interface ParameterLimits {
  readonly max_parameters: number;
  readonly max_parameter_bytes: number;
}

/**
 * Turns a `params` value into parameters.
 *
 * @param params The value as parsed; undefined and null mean none.
 * @param text The JSON text in which it stands.
 * @param pathToParams Member names that lead from the top of `text` to the array.
 * @throws {DatabaseError} INVALID_INPUT if it is no array, INVALID_PARAMETER for what it holds.
 */
export function parametersFromJson(
  params: unknown,
  text: string,
  { pathToParams, limits }: { pathToParams: readonly string[]; limits: ParameterLimits },
): readonly Parameter[] {
  if (params === undefined || params === null) return [];
  if (!Array.isArray(params)) {
    throw new DatabaseError(
      "INVALID_INPUT",
      `Cannot read "params": expected an array of the values of $1, $2, …, but it is ${kindOf(params)}`,
    );
  }
  const values: readonly unknown[] = params;
  requireCount(values.length, limits);
  if (values.some(isNumber) && (values.some(isRounded) || FRACTION_OR_EXPONENT.test(text))) {
    return exactParameters(values, valuesWithDigits(text, pathToParams), limits);
  }
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (typeof value !== "number") checkedParameter(value, index, limits);
  }
  return values as readonly Parameter[];
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

function isRounded(value: unknown): boolean {
  return typeof value === "number" && !Number.isSafeInteger(value);
}

/** Takes every number with its digits. */
function exactParameters(
  values: readonly unknown[],
  exact: readonly unknown[],
  limits: ParameterLimits,
): readonly Parameter[] {
  return values.map((value, index) =>
    typeof value === "number"
      ? digitsOf(exact[index], index, limits)
      : checkedParameter(value, index, limits),
  );
}

/**
 * Checks the parameters of a message without text, whose numbers are already what they are.
 *
 * @throws {DatabaseError} INVALID_PARAMETER
 */
export function checkedValues(
  values: readonly unknown[],
  limits: ParameterLimits,
): readonly unknown[] {
  requireCount(values.length, limits);
  for (const [index, value] of values.entries()) {
    if (typeof value === "bigint") continue;
    if (typeof value === "number") {
      if (!Number.isFinite(value)) throw invalidParameter(index, "is no finite number");
    } else {
      checkedParameter(value, index, limits);
    }
  }
  return values;
}

/** Marks a number's text among the values of the second parse. */
class NumberText {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

function keepDigits(_key: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined ? new NumberText(source) : value;
}

function valuesWithDigits(text: string, path: readonly string[]): readonly unknown[] {
  // A reviver is called for each value, so it gets the parameters alone: their number is bounded.
  let own: JsonSlice | undefined = { start: 0, end: text.length };
  for (const name of path) own = own === undefined ? undefined : jsonMember(text, own, name);
  const source = own === undefined ? "[]" : text.slice(own.start, own.end);
  // The language has given revivers a third argument that the type library does not know yet.
  const reviver = keepDigits as (key: string, value: unknown) => unknown;
  return JSON.parse(source, reviver) as readonly unknown[];
}

function digitsOf(value: unknown, index: number, limits: ParameterLimits): Parameter {
  if (!(value instanceof NumberText)) throw invalidParameter(index, "cannot be read");
  if (value.source.length > limits.max_parameter_bytes) throw tooLong(index, limits);
  return { number: value.source };
}

function checkedParameter(value: unknown, index: number, limits: ParameterLimits): Parameter {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value !== "string") {
    throw invalidParameter(index, Array.isArray(value) ? IS_ARRAY : IS_OBJECT);
  }
  // UTF-8 has at most three bytes for each UTF-16 unit.
  if (value.length * 3 > limits.max_parameter_bytes) {
    if (Buffer.byteLength(value) > limits.max_parameter_bytes) throw tooLong(index, limits);
  }
  if (!value.isWellFormed()) throw invalidParameter(index, "has half a surrogate pair");
  return value;
}

function requireCount(count: number, limits: ParameterLimits): void {
  if (count <= limits.max_parameters) return;
  throw new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot bind ${count} parameters: at most ${limits.max_parameters} are allowed`,
  );
}

function tooLong(index: number, limits: ParameterLimits): DatabaseError {
  return invalidParameter(index, `is longer than ${limits.max_parameter_bytes} bytes`);
}

function invalidParameter(index: number, what: string): DatabaseError {
  return new DatabaseError("INVALID_PARAMETER", `Cannot bind parameter ${index + 1}: it ${what}`);
}
