/**
 * What a scalar function is: names, argument types, result type, and how to compute one value.
 *
 * Functions are looked up by `sql/functions/registry.ts`. A function sees values in the form of
 * `types/value.ts`, already cast to the parameter types of the overload chosen.
 */
import type { DataType, Value, Vector } from "../../../types/mod.ts";

/** What a function may ask of its surroundings. Fixed for the length of a statement. */
export interface CallWorld {
  /** Time of the statement, or of BEGIN inside a transaction: microseconds since 1970, UTC. */
  readonly nowMicros: number;
  readonly userId: string;
  readonly sessionUserId: string;
  readonly role: string;
  readonly namespace: string;
  readonly version: string;
  /** The clock now, in microseconds, for clock_timestamp(). */
  clockMicros(): number;
  snowflakeId(): number;
  /** The wall clock at which a `_seq` was issued, in Unix milliseconds. */
  commitMs(seq: number): number;
  /** The last `_seq` issued up to and including a Unix millisecond. */
  lastSeqUpTo(unixMs: number): number;
  randomBytes(count: number): Uint8Array;
  randomUnit(): number;
  /** Returns when the time is over; throws what has the row at hand evaluated again before. */
  sleep(seconds: number): void;
}

/**
 * A parameter's type: one data type, or a family.
 * - any: every type; unknown becomes text
 * - numeric: any numeric type, passed as it is
 * - integer: smallint, int or bigint, passed as it is
 * - json, jsonText: json or jsonb; an untyped literal is jsonb, or json
 * - array: any array
 * - element: the element type of the `array` argument
 * - same: all arguments of this kind are cast to their common type (GREATEST, COALESCE)
 */
export type ParameterType =
  | DataType
  | "any"
  | "numeric"
  | "integer"
  | "json"
  | "jsonText"
  | "array"
  | "element"
  | "same";

export type Volatility = "immutable" | "stable" | "volatile";

/** Which arguments a function takes. */
export interface Signature {
  readonly parameters: readonly ParameterType[];
  /** How many of `parameters` may be left out, from the right; default 0. */
  readonly optionalCount?: number;
  /** Further arguments of this type may follow. */
  readonly variadic?: ParameterType;
}

/**
 * Computes a call over one argument that is not the same for all rows, a column at once.
 *
 * @param values The other arguments, none of them NULL; unspecified at `position`.
 * @param position Which argument the vector is.
 * @returns undefined if there is no loop for this; the values are then computed one by one.
 */
export type VectorFunction = (
  vector: Vector,
  values: readonly Value[],
  position: number,
) => Vector | undefined;

export interface Overload extends Signature {
  /** A function of the argument types after casting. */
  readonly result: DataType | ((argumentTypes: readonly DataType[]) => DataType);
  readonly volatility: Volatility;
  /** Called also when an argument is NULL; otherwise a NULL argument gives NULL uncalled. */
  readonly seesNull?: boolean;
  /** @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE, … */
  evaluate(values: readonly Value[], call: CallWorld, types: readonly DataType[]): Value;
  /** The same for a column at once, if there is a loop for its form. */
  readonly evaluateVector?: VectorFunction;
  /** Names of the parameters, for calls such as `make_interval(days => 3)`; gaps are 0. */
  readonly parameterNames?: readonly string[];
  /**
   * For a result whose type depends on more than types, such as `round(x, 2)`: what to use instead
   * of `result` and `evaluate`. A constant is undefined where an argument is not known before the
   * statement runs.
   *
   * @returns undefined if there is no such function for these types after all.
   */
  specialise?(
    types: readonly DataType[],
    constants: readonly (Value | undefined)[],
  ): Specialised | undefined;
}

/** An overload made for one call. */
export interface Specialised {
  readonly result: DataType;
  evaluate(values: readonly Value[], call: CallWorld): Value;
}

export interface ScalarFunction {
  /** Lower case. */
  readonly name: string;
  readonly overloads: readonly Overload[];
}

/** How one operator works on two (or, prefix, one) typed operands. */
export interface OperatorForm {
  /** Types to which the operands are cast first. */
  readonly operands: readonly DataType[];
  readonly result: DataType;
  readonly seesNull?: boolean;
  /** @throws {DatabaseError} DIVISION_BY_ZERO, VALUE_OUT_OF_RANGE, … */
  readonly evaluate: (values: readonly Value[]) => Value;
  /** The same for a column at once, if there is a loop for its form. */
  readonly evaluateVector?: VectorFunction;
}
