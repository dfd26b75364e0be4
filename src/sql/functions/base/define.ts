/** Provides shorthands for defining functions, so that their definitions read like tables. */
import { type DataType, TEXT, type Value } from "../../../types/mod.ts";
import type {
  CallDeps,
  Overload,
  ParameterType,
  ScalarFunction,
  VectorFunction,
  Volatility,
} from "./function.ts";

export interface OverloadOptions {
  readonly optionalCount?: number;
  readonly variadic?: ParameterType;
  readonly volatility?: Volatility;
  readonly seesNull?: boolean;
  readonly evaluateVector?: VectorFunction;
}

/** Creates an overload of a function. It is immutable unless the options say otherwise. */
export function overload(
  parameters: readonly ParameterType[],
  result: Overload["result"],
  evaluate: (values: readonly Value[], call: CallDeps, types: readonly DataType[]) => Value,
  options: OverloadOptions = {},
): Overload {
  return { parameters, result, evaluate, volatility: "immutable", ...options };
}

/** Creates a function under each of several names. All of them share the same overloads. */
export function functionsNamed(
  names: readonly string[],
  ...overloads: readonly Overload[]
): ScalarFunction[] {
  return names.map((name) => ({ name, overloads }));
}

/** Returns the type of the first argument. Used by functions that have this result type. */
export function firstType(types: readonly DataType[]): DataType {
  return types[0] ?? TEXT;
}
