/**
 * The values of a column of literals, without a bound expression for any of them: a list of a
 * hundred thousand is bound in one turn. Columns of mixed forms go the way of every expression.
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

/** Digits of an integer that is surely BIGINT at most, and exact as a number. */
const DIGITS_MAX = 15;

export interface LiteralColumn {
  /** What each of its literals would have. */
  readonly type: DataType;
  readonly values: readonly Value[];
}

/**
 * Undefined unless all are whole numbers of few digits, or all are strings; NULL may be among them.
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
      // A sum: there is no -0 among whole numbers.
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

/** An array of many literals of one form; undefined where they have to be bound one by one. */
export function constantArray(list: LiteralList): BoundExpression | undefined {
  const column = literalColumnOf(list, 0);
  const element = column === undefined ? undefined : commonType([column.type]);
  if (column === undefined || element === undefined) return undefined;
  const values = constantsOf(column, element);
  if (values === undefined) return undefined;
  return { kind: "constant", type: { kind: "array", element }, value: [...values] };
}

/** The values as those of another type; undefined unless each of them is one. */
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
    // The cast raises the same error again where the statement runs.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}
