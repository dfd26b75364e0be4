/**
 * Reads the values of a column of literals without creating a bound expression for each literal,
 * because a list of a hundred thousand literals is bound in one tick. Columns with different kinds
 * of literals are bound as ordinary expressions.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BIGINT,
  canCast,
  casterFor,
  commonType,
  type DataType,
  fitsInteger,
  INT,
  sameType,
  UNKNOWN,
  type Value,
} from "../../../types/mod.ts";
import { LiteralCell, type LiteralList } from "../../parse/ast/ast.ts";
import { literalText } from "../../parse/text/literal_list.ts";
import type { BoundExpression } from "../bound_expressions.ts";

/**
 * The maximum number of digits for which an integer is certain to fit into a BIGINT and to be
 * exact as a double.
 */
const DIGITS_MAX = 15;

export interface LiteralColumn {
  /** The type that each literal would get if it were bound as an expression. */
  readonly type: DataType;
  readonly values: readonly Value[];
}

/**
 * Reads a column of a list of literals, provided that apart from NULLs all are short integers or
 * all are strings. Returns undefined for any other column.
 */
export function literalColumnOf(list: LiteralList, column: number): LiteralColumn | undefined {
  const { columnCount, ends, kinds, rowCount, starts } = list;
  const values: Value[] = [];
  let hasNumbers = false;
  let hasTexts = false;
  let isWide = false;
  for (let row = 0, cell = column; row < rowCount; row += 1, cell += columnCount) {
    const kind = kinds[cell];
    if (kind === LiteralCell.null) {
      values.push(null);
    } else if (kind === LiteralCell.integer) {
      if ((ends[cell] ?? 0) - (starts[cell] ?? 0) > DIGITS_MAX) return undefined;
      // Adding 0 turns -0, which is not a valid integer value, into 0.
      const value = Number(literalText(list, cell)) + 0;
      if (!fitsInteger("int", value)) isWide = true;
      hasNumbers = true;
      values.push(value);
    } else if (kind === LiteralCell.string || kind === LiteralCell.encodedString) {
      hasTexts = true;
      values.push(literalText(list, cell));
    } else {
      return undefined;
    }
  }
  if (hasNumbers === hasTexts) return undefined;
  return { type: hasTexts ? UNKNOWN : isWide ? BIGINT : INT, values };
}

/**
 * Returns an array of many literals of the same kind; undefined if they must be bound one by one.
 */
export function constantArray(list: LiteralList): BoundExpression | undefined {
  const column = literalColumnOf(list, 0);
  const element = column === undefined ? undefined : commonType([column.type]);
  if (column === undefined || element === undefined) return undefined;
  const values = constantsOf(column, element);
  if (values === undefined) return undefined;
  return { kind: "constant", type: { kind: "array", element }, value: [...values] };
}

/**
 * Converts the values of a literal column to another type; undefined unless all of them can be
 * converted.
 */
export function constantsOf(
  { type, values }: LiteralColumn,
  to: DataType,
): readonly Value[] | undefined {
  if (sameType(type, to)) return values;
  if (!canCast(type, to, "implicit")) return undefined;
  const convert = casterFor(type, to, "implicit");
  if (convert === undefined) return values;
  try {
    return values.map((value) => (value === null ? null : convert(value)));
  } catch (error) {
    // Ignoring the error is safe: the cast raises the same error when the statement runs.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}
