/**
 * Finds the sort keys among the outputs of a followed query. A sort key is an output that calls
 * `sort_key` with the value of another output, in every block of a set operation.
 *
 * Invariant: rows with equal values have equal sort keys, so a sort key neither adds rows to a
 * DISTINCT or a set operation nor helps to identify a row.
 */
import type { BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { sameExpression } from "../bind/walk.ts";
import { SORT_KEY } from "../functions/sort_key.ts";
import type { Expr, SelectFromStatement } from "../parse/ast/ast.ts";

/** Returns the position of the output with the given value, or -1 if there is no such output. */
export function outputOf({ outputs }: BoundSelect, value: BoundExpression): number {
  return outputs.findIndex(({ expression }) => sameExpression(expression, value));
}

/** Returns the position of the output with the sort key of a value, or -1 if there is none. */
export function sortKeyOutputOf(select: BoundSelect, value: BoundExpression): number {
  const field = outputOf(select, value);
  return select.outputs.findIndex(({ expression }, index) => {
    const keyed = keyedValue(expression);
    if (keyed !== undefined) return sameExpression(keyed, value);
    return field >= 0 && keyedOutputOf(select, index) === field;
  });
}

/**
 * Returns the position of the output whose sort key is the output at `index`, or -1 if that output
 * is not the sort key of another one.
 */
export function keyedOutputOf(select: BoundSelect, index: number): number {
  const value = select.outputs[index]?.expression;
  if (value === undefined) return -1;
  const keyed = keyedValue(value);
  if (keyed !== undefined) return outputOf(select, keyed);
  const set = setOf(select);
  const column = set?.columns.findIndex((each) => isColumn(value, each)) ?? -1;
  if (set === undefined || column < 0) return -1;
  const ofLeft = keyedOutputOf(set.left, column);
  if (ofLeft < 0 || keyedOutputOf(set.right, column) !== ofLeft) return -1;
  return select.outputs.findIndex(({ expression }) => isColumn(expression, set.columns[ofLeft]));
}

/** Returns the argument of a call of `sort_key`; undefined for any other expression. */
function keyedValue(value: BoundExpression): BoundExpression | undefined {
  return value.kind === "call" && value.name === SORT_KEY ? value.args[0] : undefined;
}

type SetRelation = Extract<BoundRelation, { kind: "set" }>;

function setOf({ from }: BoundSelect): SetRelation | undefined {
  return from?.kind === "relation" && from.relation.kind === "set" ? from.relation : undefined;
}

function isColumn(value: BoundExpression, column: SetRelation["columns"][number] | undefined) {
  return value.kind === "column" && value.column === column;
}

/** Returns a call that computes the sort key of an ORDER BY term; undefined if it has no value. */
export function sortKeyCall(core: SelectFromStatement, by: Expr): Expr | undefined {
  const value = valueOfTerm(core, by);
  if (value === undefined) return undefined;
  const { _location } = value;
  return { type: "call", function: { name: SORT_KEY, _location }, args: [value], _location };
}

/**
 * Returns the value of an ORDER BY term as an expression over the tables. The term may be the
 * position or the alias of a select item. Returns undefined for a position that `*` makes
 * uncertain.
 */
function valueOfTerm({ columns = [] }: SelectFromStatement, by: Expr): Expr | undefined {
  if (by.type === "integer") {
    const before = columns.slice(0, by.value);
    const hasStar = before.some(({ expr }) => expr.type === "ref" && expr.star === true);
    return hasStar ? undefined : before[by.value - 1]?.expr;
  }
  if (by.type !== "ref" || by.table !== undefined) return by;
  return columns.find(({ alias }) => alias?.name === by.name)?.expr ?? by;
}
