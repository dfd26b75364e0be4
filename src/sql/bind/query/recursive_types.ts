/**
 * Determines the column types of a recursive query, which its initial and its recursive side have
 * in common.
 *
 * Each step computes its values from the previous step, so it may need more digits or a longer
 * string than the initial side has. A column keeps its kind of type, and is widened to fit the
 * recursive side. The recursive side is then bound again, until no column has to be widened.
 *
 *     SELECT 1.0 UNION ALL SELECT x + 0.25 …     numeric(2,1) → numeric(4,2) → numeric(38,2)
 *     SELECT 1.0 UNION ALL SELECT x * 1.5 …      numeric(2,1) → numeric(4,2) → numeric(38,26)
 *
 * A product has more digits at each step, up to the limit of 38. If the scale of a column keeps
 * growing, the column immediately gets a large scale. A value that needs an even larger scale makes
 * the query fail, because rounding would go unnoticed. The elements of an array are widened in the
 * same way.
 */

import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  castBetween,
  commonType,
  compareWhole,
  type DataType,
  DECIMAL_PRECISION_MAX,
  DECIMAL_TOO_LONG,
  decimalOf,
  decimalType,
  fitDecimal,
  isInteger,
  mapElements,
  rescale,
  sameType,
  textFromDecimal,
  typeName,
  unbounded,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import type { DecimalDataType } from "../expression/decimal_literal.ts";
import { someChild } from "../walk.ts";

/** A column whose precision and scale are still being determined. */
interface RoomyColumn {
  readonly type: DataType;
  /** The number of digits before and after the point on the initial side. */
  readonly wholeDigits: number;
  readonly scaleMin: number;
  /** The index of the current scale in `GROWN_SCALES`. */
  readonly grown: number | undefined;
}

/** The scales that a column gets, one after another, if its scale keeps growing. */
const GROWN_SCALES: readonly number[] = [26, 16, 10];
const GROWN_LAST: number = GROWN_SCALES.length - 1;

/** The largest scale that one step may compute, which leaves a few digits before the point. */
const STEP_SCALE_MAX = 32;

/** The minimum number of digits before the point for a column whose values keep growing. */
const WHOLE_DIGITS_MIN = 12;
const WHOLE_DIGITS_MORE = 6;

/**
 * The number of rounds in which columns may widen one another. In later rounds, every column that
 * grows gets the maximum immediately.
 */
const PATIENT_ROUNDS = 3;

/** Returns the columns with the types of the initial side, before the recursive side is bound. */
export function roomyColumns(types: readonly DataType[]): readonly RoomyColumn[] {
  return types.map((type) => {
    const held = elementOf(type);
    const { precision, scale } = held.kind === "decimal" ? held : { precision: 0, scale: 0 };
    // A DECIMAL without a declared size has 38 digits, which says nothing about its values.
    const isTold = precision < DECIMAL_PRECISION_MAX;
    const wholeDigits = isTold ? precision - scale : 0;
    return { type: exactly(type), wholeDigits, scaleMin: scale, grown: undefined };
  });
}

/** Returns a variant of the type in which operations do not round. */
function exactly(type: DataType): DataType {
  if (type.kind === "array") return { kind: "array", element: exactly(type.element) };
  return type.kind === "decimal" ? { ...type, isExact: true } : type;
}

/** Returns the innermost element type of an array; any other type is returned unchanged. */
function elementOf(type: DataType): DataType {
  return type.kind === "array" ? elementOf(type.element) : type;
}

/** Returns the same type with a different element type. */
function withElement(type: DataType, element: DataType): DataType {
  if (type.kind !== "array") return element;
  return { kind: "array", element: withElement(type.element, element) };
}

/**
 * Widens the columns to fit the recursive side. Returns the same columns if they already fit. The
 * product of two columns may require both to have a smaller scale.
 */
export function widened(
  columns: readonly RoomyColumn[],
  given: readonly DataType[],
  round: number,
): readonly RoomyColumn[] {
  const isTooFine = columns.some(({ grown, type }, i) => {
    const held = elementOf(given[i] ?? type);
    return grown === GROWN_LAST && held.kind === "decimal" && held.scale > STEP_SCALE_MAX;
  });
  const next = columns.map((column, i) => {
    const { grown } = column;
    if (isTooFine && grown !== undefined && grown < GROWN_LAST) {
      return grownColumn(column, grown + 1);
    }
    return widerColumn(column, given[i] ?? column.type, round);
  });
  return next.every((column, i) => column === columns[i]) ? columns : next;
}

function widerColumn(column: RoomyColumn, given: DataType, round: number): RoomyColumn {
  const { type } = column;
  if (type.kind === "decimal") {
    const isExact = given.kind === "decimal" || isInteger(given);
    return isExact ? widerDecimal(column, { type, given: decimalOf(given), round }) : column;
  }
  if (type.kind !== given.kind) return column;
  if (type.kind === "array" && given.kind === "array") {
    const before = { ...column, type: type.element };
    const element = widerColumn(before, given.element, round);
    if (element === before) return column;
    return { ...element, type: { kind: "array", element: element.type } };
  }
  const common = commonType([type, given]);
  if (common === undefined || sameType(common, type)) return column;
  return { ...column, type: exactly(round < PATIENT_ROUNDS ? common : unbounded(common)) };
}

function widerDecimal(
  column: RoomyColumn,
  { given, round, type }: { type: DecimalDataType; given: DecimalDataType; round: number },
): RoomyColumn {
  const { grown } = column;
  const scale = Math.max(type.scale, given.scale);
  const whole = Math.max(type.precision - type.scale, given.precision - given.scale);
  const isFull = type.precision === DECIMAL_PRECISION_MAX;
  if (scale === type.scale && (isFull || whole === type.precision - type.scale)) return column;
  if (grown !== undefined) {
    if (given.scale <= STEP_SCALE_MAX || grown === GROWN_LAST) return column;
    return grownColumn(column, grown + 1);
  }
  if (round === 0 && whole + scale <= DECIMAL_PRECISION_MAX) {
    return { ...column, type: exactly(decimalType(whole + scale, scale)) };
  }
  if (scale > type.scale) return grownColumn(column, 0);
  return { ...column, type: exactly(decimalType(DECIMAL_PRECISION_MAX, scale)) };
}

function grownColumn(column: RoomyColumn, grown: number): RoomyColumn {
  const { scaleMin, wholeDigits } = column;
  const whole = Math.max(WHOLE_DIGITS_MIN, wholeDigits + WHOLE_DIGITS_MORE);
  const scale = Math.max(
    scaleMin,
    Math.min(GROWN_SCALES[grown] ?? 0, DECIMAL_PRECISION_MAX - whole),
  );
  const type = withElement(column.type, exactly(decimalType(DECIMAL_PRECISION_MAX, scale)));
  return { ...column, grown, type };
}

/** The recursive query and its columns, for use in messages. */
export interface RecursivePlace {
  readonly name: string;
  readonly columnNames: readonly string[];
  readonly node: AstNode;
}

/**
 * Casts the outputs of the recursive side to the column types. A quotient is rounded as usual; sums
 * and products are either exact or fail the query.
 *
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function recursiveOutputs(
  { outputs }: BoundSelect,
  types: readonly DataType[],
  place: RecursivePlace,
): BoundSelect["outputs"] {
  const isRounded = outputs.some(({ expression }) => isInexact(expression));
  return outputs.map(({ expression, name }, i) => {
    const to = types[i] ?? expression.type;
    const from = expression.type;
    if (castBetween(from, to, "implicit") === undefined) throw otherType(from, to, { i, place });
    const column = `column "${place.columnNames[i] ?? ""}" of recursive query "${place.name}"`;
    const convert = isRounded ? undefined : exactConversion(from, to, column);
    if (convert === undefined) {
      return { name, expression: castTo(expression, { to, mode: "implicit", node: place.node }) };
    }
    const exact: BoundExpression = {
      kind: "cast",
      type: to,
      operand: expression,
      convert,
      isNumericIdentity: false,
    };
    return { name, expression: exact };
  });
}

/**
 * Whether an expression computes a quotient. Division is the only decimal operation whose result
 * may have infinitely many digits.
 */
function isInexact(expression: BoundExpression): boolean {
  const { kind, type } = expression;
  if (kind === "call" && expression.name === "/" && type.kind === "decimal") return true;
  return someChild(expression, isInexact);
}

/** Converts decimals, or arrays of them, to a smaller scale. Returns undefined for other types. */
function exactConversion(
  from: DataType,
  to: DataType,
  column: string,
): ((value: Value) => Value) | undefined {
  if (from.kind === "array" && to.kind === "array") {
    const convert = exactConversion(from.element, to.element, column);
    if (convert === undefined) return undefined;
    return (value) => (value === null ? null : mapElements(value as ArrayValue, convert));
  }
  if (from.kind !== "decimal" || to.kind !== "decimal" || from.scale <= to.scale) return undefined;
  return (value) => {
    if (value === null) return null;
    const whole = value as Whole;
    const cut = rescale(whole, from.scale, to.scale);
    if (compareWhole(rescale(cut, to.scale, from.scale), whole) === 0) {
      return fitDecimal(cut, to.precision, to.scale);
    }
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot represent ${textFromDecimal(whole, from.scale)} in ${column}: ${typeName(to)} has ${to.scale} digits after the point`,
      { hint: DECIMAL_TOO_LONG },
    );
  };
}

function otherType(
  from: DataType,
  to: DataType,
  { i, place }: { i: number; place: RecursivePlace },
): DatabaseError {
  const { columnNames, name, node } = place;
  return new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot run recursive query "${name}": column "${columnNames[i] ?? ""}" is ${nameOf(to)} in its first query and ${nameOf(from)} in the recursive one`,
    {
      position: node._location.start,
      hint: `cast it in the first query to ${nameOf(from)}, or in the recursive one to ${nameOf(to)}`,
    },
  );
}

/**
 * Returns the type name without digits, which would not help the reader: a different kind of type
 * is needed.
 */
function nameOf(type: DataType): string {
  if (type.kind === "array") return `${nameOf(type.element)}[]`;
  return type.kind === "decimal" ? "numeric" : typeName(type);
}
