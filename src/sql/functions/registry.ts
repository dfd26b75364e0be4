/**
 * The function library: finds the overload for a name and argument types.
 *
 * An argument fits a parameter exactly, as an untyped literal, or by an implicit cast. The
 * overload that needs the fewest and closest casts wins. Among overloads that fit equally well,
 * the one defined first wins.
 */
import {
  canCast,
  commonType,
  type DataType,
  DOUBLE,
  INT,
  isExactDecimal,
  isInteger,
  isNumeric,
  isRangeType,
  JSON_TEXT,
  JSONB,
  NUMERIC,
  type RangeType,
  sameRanges,
  TEXT,
  type Value,
} from "../../types/mod.ts";
import { ADVISORY_FUNCTIONS } from "./advisory.ts";
import { ARRAY_FUNCTIONS } from "./array.ts";
import type { Overload, ParameterType, ScalarFunction, Signature } from "./base/function.ts";
import { BIT_FUNCTIONS } from "./bit_strings.ts";
import { BYTES_FUNCTIONS } from "./bytes.ts";
import { CONDITIONAL_FUNCTIONS } from "./conditional.ts";
import { ENUM_FUNCTIONS } from "./enums.ts";
import { FILE_URL_FUNCTIONS } from "./file_url.ts";
import { FORMAT_FUNCTIONS } from "./format/format.ts";
import { HASH_FUNCTIONS } from "./hashes.ts";
import { ID_FUNCTIONS } from "./ids.ts";
import { JSON_FUNCTIONS } from "./json/json.ts";
import { JSON_BUILD_FUNCTIONS } from "./json/json_build_functions.ts";
import { JSON_EDIT_FUNCTIONS } from "./json/json_edit.ts";
import { PATH_FUNCTIONS } from "./jsonpath/path_functions.ts";
import { MATH_FUNCTIONS } from "./math.ts";
import { MATH_DEGREES_FUNCTIONS } from "./math_degrees.ts";
import { MATH_DOUBLE_FUNCTIONS } from "./math_double.ts";
import { NETWORK_FUNCTIONS } from "./network.ts";
import { OBJECT_FUNCTIONS } from "./objects.ts";
import { PRIVILEGE_FUNCTIONS } from "./privileges.ts";
import { RANGE_FUNCTIONS } from "./ranges.ts";
import { PATTERN_FUNCTIONS } from "./regex/pattern.ts";
import { SEARCH_FUNCTIONS } from "./search/search_functions.ts";
import { TRIGRAM_FUNCTIONS } from "./search/trigrams.ts";
import { SEQUENCE_FUNCTIONS } from "./sequences.ts";
import { SESSION_FUNCTIONS } from "./session.ts";
import { SHAPE_FUNCTIONS } from "./shapes.ts";
import { SIZE_FUNCTIONS } from "./sizes.ts";
import { SORT_KEY_FUNCTIONS } from "./sort_key.ts";
import { TEXT_FUNCTIONS } from "./text/text.ts";
import { TEXT_POSITION_FUNCTIONS } from "./text/text_positions.ts";
import { TEXT_SYNTAX_FUNCTIONS } from "./text/text_syntax.ts";
import { DATETIME_FUNCTIONS } from "./time/datetime.ts";
import { DATETIME_MAKE_FUNCTIONS } from "./time/datetime_make.ts";
import { TRANSITION_FUNCTIONS } from "./transitions.ts";
import { VALUE_HASH_FUNCTIONS } from "./value_hashes.ts";
import { VECTOR_FUNCTIONS } from "./vector.ts";
import { XML_FUNCTIONS } from "./xml/xml_functions.ts";
import { XML_PATH_FUNCTIONS } from "./xml/xml_paths.ts";

const FUNCTIONS: ReadonlyMap<string, ScalarFunction> = byName([
  ...ADVISORY_FUNCTIONS,
  ...ARRAY_FUNCTIONS,
  ...BYTES_FUNCTIONS,
  ...CONDITIONAL_FUNCTIONS,
  ...DATETIME_FUNCTIONS,
  ...DATETIME_MAKE_FUNCTIONS,
  ...ENUM_FUNCTIONS,
  ...FILE_URL_FUNCTIONS,
  ...FORMAT_FUNCTIONS,
  ...HASH_FUNCTIONS,
  ...VALUE_HASH_FUNCTIONS,
  ...ID_FUNCTIONS,
  ...JSON_BUILD_FUNCTIONS,
  ...JSON_EDIT_FUNCTIONS,
  ...JSON_FUNCTIONS,
  ...MATH_FUNCTIONS,
  ...MATH_DEGREES_FUNCTIONS,
  ...MATH_DOUBLE_FUNCTIONS,
  ...NETWORK_FUNCTIONS,
  ...OBJECT_FUNCTIONS,
  ...PRIVILEGE_FUNCTIONS,
  ...PATH_FUNCTIONS,
  ...PATTERN_FUNCTIONS,
  ...RANGE_FUNCTIONS,
  ...SEARCH_FUNCTIONS,
  ...SEQUENCE_FUNCTIONS,
  ...SESSION_FUNCTIONS,
  ...SORT_KEY_FUNCTIONS,
  ...SHAPE_FUNCTIONS,
  ...SIZE_FUNCTIONS,
  ...TEXT_FUNCTIONS,
  ...TEXT_POSITION_FUNCTIONS,
  ...TEXT_SYNTAX_FUNCTIONS,
  ...TRANSITION_FUNCTIONS,
  ...TRIGRAM_FUNCTIONS,
  ...BIT_FUNCTIONS,
  ...VECTOR_FUNCTIONS,
  ...XML_FUNCTIONS,
  ...XML_PATH_FUNCTIONS,
]);

/** Indexes functions by name, because several groups may define overloads of the same function. */
function byName(functions: readonly ScalarFunction[]): ReadonlyMap<string, ScalarFunction> {
  const found = new Map<string, ScalarFunction>();
  for (const { name, overloads } of functions) {
    const known = found.get(name)?.overloads ?? [];
    found.set(name, { name, overloads: [...known, ...overloads] });
  }
  return found;
}

/** The overload to which a function call resolves. */
export interface ResolvedFunction {
  /**
   * The overload. Its `evaluate` is specialised for the argument types of this call, and ignores
   * its third argument.
   */
  readonly overload: Overload;
  /** The types to which the arguments of a call are implicitly cast. */
  readonly argumentTypes: readonly DataType[];
  readonly result: DataType;
}

/** Returns the forms of the scalar function with the given name; none if it does not exist. */
export function overloadsNamed(name: string): readonly Overload[] {
  return FUNCTIONS.get(name)?.overloads ?? [];
}

/** Whether a scalar function with this name, in lower case, exists. */
export function functionExists(name: string): boolean {
  return FUNCTIONS.has(name);
}

/** Returns every scalar function. */
export function scalarFunctions(): Iterable<ScalarFunction> {
  return FUNCTIONS.values();
}

/** Returns the names of all functions in the library, sorted. */
export function functionNames(): string[] {
  return [...FUNCTIONS.keys()].toSorted();
}

/**
 * Returns the first overload of a function that accepts named arguments; undefined if there is no
 * such overload.
 */
export function namedForm(name: string): Signature | undefined {
  return FUNCTIONS.get(name)?.overloads.find((each) => each.parameterNames !== undefined);
}

/**
 * Finds the overload for a function call.
 *
 * @param name The name in lower case.
 * @param constants The values of constant arguments, which determine the scale of some results:
 *   `round(x, 2)` has two decimal places. For any other argument, the value is undefined.
 * @returns undefined if no such function accepts these types.
 */
export function resolveFunction(
  name: string,
  argumentTypes: readonly DataType[],
  constants: readonly (Value | undefined)[] = [],
): ResolvedFunction | undefined {
  return resolveAmong(overloadsNamed(name), argumentTypes, constants);
}

/** Resolves a call to one of the given overloads, as {@linkcode resolveFunction} does. */
export function resolveAmong(
  overloads: readonly Overload[],
  argumentTypes: readonly DataType[],
  constants: readonly (Value | undefined)[] = [],
): ResolvedFunction | undefined {
  const best = bestFit(overloads, argumentTypes);
  if (best === undefined) return undefined;
  const { form: overload, types } = best;
  if (overload.specialise !== undefined) {
    const special = overload.specialise(types, constants);
    if (special === undefined) return undefined;
    const evaluate: Overload["evaluate"] = (values, call) => special.evaluate(values, call);
    return { overload: { ...overload, evaluate }, argumentTypes: types, result: special.result };
  }
  const result = typeof overload.result === "function" ? overload.result(types) : overload.result;
  const evaluate: Overload["evaluate"] = (values, call) => overload.evaluate(values, call, types);
  return { overload: { ...overload, evaluate }, argumentTypes: types, result };
}

/** Whether two calls to a function with the same arguments may return different values. */
export function isVolatileFunction(name: string): boolean {
  return FUNCTIONS.get(name)?.overloads.some((each) => each.volatility === "volatile") === true;
}

/**
 * Whether a function takes any number of arguments, so that VARIADIC can pass them as an array.
 */
export function takesMany(overloads: readonly Overload[]): boolean {
  return overloads.some(({ variadic }) => variadic !== undefined);
}

/**
 * Returns the form that fits the arguments best; if several fit equally well, the first of them.
 */
export function bestFit<Form extends Signature>(
  forms: readonly Form[],
  argumentTypes: readonly DataType[],
): BestFit<Form> | undefined {
  let best: { form: Form; fit: Fit } | undefined;
  for (const form of forms) {
    const fit = fitSignature(form, argumentTypes);
    if (fit !== undefined && (best === undefined || fit.cost < best.fit.cost)) best = { form, fit };
  }
  return best === undefined ? undefined : { form: best.form, ...best.fit };
}

/** The form that fits the arguments of a call best. */
export interface BestFit<Form> extends Fit {
  readonly form: Form;
}

interface Fit {
  /** The types to which the arguments are cast. */
  readonly types: readonly DataType[];
  /** The distance of the argument types from the parameter types; 0 if they are identical. */
  readonly cost: number;
}

/** The cost of passing an untyped literal to a parameter that is not text. */
const UNTYPED_COST = 1;
const CAST_COST = 10;

/**
 * The cost of passing an integer as NUMERIC. It is higher than the cost of passing it as DOUBLE,
 * except when another argument is a DECIMAL.
 */
const INEXACT_COST = 16;

function fitSignature(signature: Signature, given: readonly DataType[]): Fit | undefined {
  const parameters = parametersFor(signature, given.length);
  if (parameters === undefined) return undefined;
  const shared = sharedTypes(parameters, given);
  if (shared === undefined) return undefined;
  const types: DataType[] = [];
  let cost = 0;
  for (const [index, parameter] of parameters.entries()) {
    const fit = fitArgument(parameter, given[index] ?? TEXT, shared);
    if (fit === undefined) return undefined;
    types.push(fit.type);
    cost += fit.cost;
  }
  return { types, cost };
}

function parametersFor(
  { parameters, optionalCount = 0, variadic }: Signature,
  count: number,
): readonly ParameterType[] | undefined {
  if (count < parameters.length - optionalCount) return undefined;
  if (count <= parameters.length) return parameters.slice(0, count);
  if (variadic === undefined) return undefined;
  const more = Array.from({ length: count - parameters.length }, () => variadic);
  return [...parameters, ...more];
}

/**
 * The concrete types that the parameter types "same", "array", "element" and "range" have in a
 * call.
 */
interface SharedTypes {
  readonly same: DataType;
  readonly element: DataType;
  /** The type of one of the ranges in the call; undefined if there are none. */
  readonly range: RangeType | undefined;
}

function sharedTypes(
  parameters: readonly ParameterType[],
  given: readonly DataType[],
): SharedTypes | undefined {
  const same = commonType(given.filter((_, index) => parameters[index] === "same"));
  const elements: DataType[] = [];
  for (const [index, parameter] of parameters.entries()) {
    const type = given[index] ?? TEXT;
    if (parameter === "element") elements.push(type);
    if (parameter === "array" && type.kind === "array") elements.push(type.element);
    // The elements of an untyped literal keep their lengths and scales.
    if (parameter === "array" && type.kind === "unknown") elements.push(type);
  }
  const element = commonType(elements);
  if (same === undefined || element === undefined) return undefined;
  return { same, element, range: given.find(isRangeType) };
}

function fitExact(given: DataType): { type: DataType; cost: number } | undefined {
  if (given.kind === "unknown") return { type: NUMERIC, cost: UNTYPED_COST };
  if (isExactDecimal(given)) return { type: NUMERIC, cost: 0 };
  return isInteger(given) ? { type: NUMERIC, cost: INEXACT_COST } : undefined;
}

function fitJson(
  parameter: "json" | "jsonText",
  given: DataType,
): { type: DataType; cost: number } | undefined {
  if (given.kind === "unknown") {
    return { type: parameter === "json" ? JSONB : JSON_TEXT, cost: UNTYPED_COST };
  }
  if (given.kind === "file") return { type: JSON_TEXT, cost: 0 };
  return given.kind === "json" ? { type: given, cost: 0 } : undefined;
}

function fitArgument(
  parameter: ParameterType,
  given: DataType,
  shared: SharedTypes,
): { type: DataType; cost: number } | undefined {
  const isUntyped = given.kind === "unknown";
  switch (parameter) {
    case "any":
      return { type: isUntyped ? TEXT : given, cost: 0 };
    case "numeric":
      if (isUntyped) return { type: DOUBLE, cost: UNTYPED_COST };
      return isNumeric(given) ? { type: given, cost: 0 } : undefined;
    case "exact":
      return fitExact(given);
    case "integer":
      if (isUntyped) return { type: INT, cost: UNTYPED_COST };
      return isInteger(given) ? { type: given, cost: 0 } : undefined;
    case "json":
    case "jsonText":
      return fitJson(parameter, given);
    case "array": {
      const type: DataType = { kind: "array", element: shared.element };
      if (isUntyped) return { type, cost: UNTYPED_COST };
      return given.kind === "array" ? { type, cost: 0 } : undefined;
    }
    case "element":
      return { type: shared.element, cost: 0 };
    case "range":
    case "multirange":
      return fitRange(parameter, given, shared.range);
    case "same":
      return { type: shared.same, cost: 0 };
    default:
      return fitType(parameter, given);
  }
}

/**
 * Fits an untyped literal to a range parameter only if another argument is a range, because the
 * bounds of that range determine its type.
 */
function fitRange(
  kind: "range" | "multirange",
  given: DataType,
  range: RangeType | undefined,
): { type: DataType; cost: number } | undefined {
  if (range === undefined) return undefined;
  if (given.kind === "unknown") return { type: { ...range, kind }, cost: UNTYPED_COST };
  const isSame = given.kind === kind && sameRanges(given, range);
  return isSame ? { type: given, cost: 0 } : undefined;
}

/**
 * The kinds of types that keep their precision, scale or fields, because arguments of these types
 * are passed unchanged.
 */
const KEPT: ReadonlySet<string> = new Set(["decimal", "embedding", "numeric", "row"]);

function fitType(
  parameter: DataType,
  given: DataType,
): { type: DataType; cost: number } | undefined {
  if (given.kind === "unknown") {
    return { type: parameter, cost: parameter.kind === "text" ? 0 : UNTYPED_COST };
  }
  if (given.kind === parameter.kind) {
    const isCompound = given.kind === "array" || isRangeType(given);
    if (isCompound && !canCast(given, parameter, "implicit")) return undefined;
    const keepsOwn = KEPT.has(given.kind);
    return { type: keepsOwn ? given : parameter, cost: 0 };
  }
  if (!canCast(given, parameter, "implicit")) return undefined;
  return { type: parameter, cost: CAST_COST + castDistance(given, parameter) };
}

const NUMERIC_ORDER = ["smallint", "int", "bigint", "decimal", "numeric", "float", "double"];

/**
 * Returns the cost of an implicit cast; closer types cost less. As in PostgreSQL, the preferred
 * cast of a date is to a timestamp with time zone.
 */
function castDistance(from: DataType, to: DataType): number {
  if (isNumeric(from)) return NUMERIC_ORDER.indexOf(to.kind) - NUMERIC_ORDER.indexOf(from.kind);
  return to.kind === "timestamp" ? 1 : 0;
}
