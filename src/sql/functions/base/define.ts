/**
 * Short ways to write down functions, so that their tables read as tables.
 */
import { type DataType, TEXT, type Value } from "../../../types/mod.ts";
import type {
  CallWorld,
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

/** An overload, immutable unless the options say otherwise. */
export function overload(
  parameters: readonly ParameterType[],
  result: Overload["result"],
  evaluate: (values: readonly Value[], call: CallWorld, types: readonly DataType[]) => Value,
  options: OverloadOptions = {},
): Overload {
  return { parameters, result, evaluate, volatility: "immutable", ...options };
}

/** Several names for the same overloads. */
export function functionsNamed(
  names: readonly string[],
  ...overloads: readonly Overload[]
): ScalarFunction[] {
  return names.map((name) => ({ name, overloads }));
}

/** The result has the type of the first argument. */
export function firstType(types: readonly DataType[]): DataType {
  return types[0] ?? TEXT;
}
