/**
 * Reads the parameters `$1`, `$2`, … from JSON, preserving the digits of numbers.
 *
 * JSON.parse rounds numbers before its caller sees them. Lists, objects and any number that may
 * lose precision (because it has a fraction, an exponent, or more than 53 bits) are therefore
 * taken from the text of the request.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { SqlParameter } from "../../sql/mod.ts";
import { type JsonSlice, jsonElements, jsonMember, jsonRoot } from "../../types/mod.ts";
import { kindOf } from "./field_names.ts";

/**
 * Matches a digit followed by a fraction or an exponent. If nothing matches, every number in the
 * text is a plain integer.
 */
const FRACTION_OR_EXPONENT = /\d[.eE]/;

export interface ParameterLimits {
  readonly max_parameters: number;
  readonly max_parameter_bytes: number;
}

/**
 * Turns a `params` value into parameters.
 *
 * @param params The parsed value. Both undefined and null mean that no parameters were passed.
 * @param text The JSON text that contains `params`.
 * @param pathToParams The names of the members on the path from the root of `text` to the array.
 * @throws {DatabaseError} INVALID_INPUT if `params` is not an array, INVALID_PARAMETER if an
 *   element is refused.
 */
export function parametersFromJson(
  params: unknown,
  text: string,
  { pathToParams, limits }: { pathToParams: readonly string[]; limits: ParameterLimits },
): readonly SqlParameter[] {
  if (params === undefined || params === null) return [];
  if (!Array.isArray(params)) {
    throw new DatabaseError(
      "INVALID_INPUT",
      `Cannot read "params": it is ${kindOf(params)}, but must be an array of the values for ` +
        "$1, $2, …",
    );
  }
  const values: readonly unknown[] = params;
  requireCount(values.length, limits);
  const isExact =
    values.some(isNumber) && (values.some(isRounded) || FRACTION_OR_EXPONENT.test(text));
  if (isExact || values.some(isNested)) {
    return writtenParameters(values, text, { slices: slicesOf(text, pathToParams), limits });
  }
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (typeof value !== "number") checkedParameter(value, index, limits);
  }
  return values as readonly SqlParameter[];
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

function isRounded(value: unknown): boolean {
  return typeof value === "number" && !Number.isSafeInteger(value);
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns the range that each parameter occupies in the text. */
function slicesOf(text: string, path: readonly string[]): readonly JsonSlice[] {
  let own: JsonSlice | undefined = jsonRoot(text);
  for (const name of path) own = own === undefined ? undefined : jsonMember(text, own, name);
  return own === undefined ? [] : jsonElements(text, own);
}

/** Takes numbers, lists and objects from the text as written, without rounding. */
function writtenParameters(
  values: readonly unknown[],
  text: string,
  { slices, limits }: { slices: readonly JsonSlice[]; limits: ParameterLimits },
): readonly SqlParameter[] {
  return values.map((value, index) => {
    const isNumeric = isNumber(value);
    if (!isNumeric && !isNested(value)) return checkedParameter(value, index, limits);
    const slice = slices[index];
    if (slice === undefined) throw invalidParameter(index, "cannot be read");
    const written = checkedText(text.slice(slice.start, slice.end), index, limits);
    return isNumeric ? { number: written } : { json: written };
  });
}

/**
 * Checks parameters that do not come from JSON text. Their numbers are already exact.
 *
 * @throws {DatabaseError} INVALID_PARAMETER
 */
export function checkedValues(
  values: readonly unknown[],
  limits: ParameterLimits,
): readonly unknown[] {
  requireCount(values.length, limits);
  return values.map((value, index) => {
    if (typeof value === "bigint") return value;
    if (typeof value === "number") return finite(value, index);
    if (!isNested(value)) return checkedParameter(value, index, limits);
    return { json: checkedText(jsonOf(value, index), index, limits) };
  });
}

/** Returns the JSON of a decoded value. Integers beyond 53 bits keep all of their digits. */
function jsonOf(value: unknown, index: number): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return String(finite(value, index));
  if (Array.isArray(value)) return `[${value.map((item) => jsonOf(item, index)).join(",")}]`;
  if (!isNested(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}:${jsonOf(member, index)}`,
  );
  return `{${members.join(",")}}`;
}

function finite(value: number, index: number): number {
  if (Number.isFinite(value)) return value;
  throw invalidParameter(index, "is not a finite number");
}

function checkedParameter(value: unknown, index: number, limits: ParameterLimits): SqlParameter {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value !== "string") throw invalidParameter(index, `is ${kindOf(value)}`);
  return checkedText(value, index, limits);
}

function checkedText(text: string, index: number, limits: ParameterLimits): string {
  // UTF-8 takes at most three bytes for each UTF-16 code unit.
  if (text.length * 3 > limits.max_parameter_bytes) {
    if (Buffer.byteLength(text) > limits.max_parameter_bytes) {
      throw invalidParameter(index, `is longer than ${limits.max_parameter_bytes} bytes`);
    }
  }
  if (!text.isWellFormed()) throw invalidParameter(index, "contains an unpaired surrogate");
  return text;
}

function requireCount(count: number, limits: ParameterLimits): void {
  if (count <= limits.max_parameters) return;
  throw new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot bind ${count} parameters: the maximum is ${limits.max_parameters}`,
  );
}

function invalidParameter(index: number, what: string): DatabaseError {
  return new DatabaseError("INVALID_PARAMETER", `Cannot bind parameter ${index + 1}: it ${what}`);
}
