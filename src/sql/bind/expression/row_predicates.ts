/** Binds comparisons of rows, rewriting them as conditions on the fields. */
import { assert, defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { ORDERED_FIELDS_MAX } from "../../../base/limits.ts";
import { BOOLEAN } from "../../../types/mod.ts";
import type { AstNode, Expr, ExprBinary, ExprList, SelectStatement } from "../../parse/ast/ast.ts";
import { isSelectNode } from "../../parse/ast/query_nodes.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { binaryOf } from "./binary_forms.ts";
import { orToIn } from "./or_to_in.ts";
import { bindRowQuery } from "./subquery_binder.ts";

interface RowPair {
  readonly left: BoundExpression;
  readonly right: BoundExpression;
  readonly node: Expr;
}

/** Binds `(a, b) IN ((c, d), …)`. */
export function bindRowIn(
  left: ExprList,
  right: ExprList,
  { bind, negated, context }: { bind: Bind; negated: boolean; context: ExpressionContext },
): BoundExpression {
  const alternatives = right.expressions.map((item): BoundExpression => {
    if (item.type !== "list") {
      throw new DatabaseError(
        "INVALID_QUERY",
        "Cannot compare a row with a single value: both sides must be rows",
        {
          position: item._location.start,
          hint: "write (a, b) = (1, 2)",
        },
      );
    }
    return rowEquals(left, item, context, bind);
  });
  // The rewriting happens here rather than in the planner, because such a condition can also occur
  // outside WHERE.
  const any = orToIn({ kind: "or", type: BOOLEAN, operands: alternatives });
  return negated ? { kind: "not", type: BOOLEAN, operand: any } : any;
}

/** Binds `(a, b) < (c, d)`. The first pair of different values determines the result. */
export function bindRowComparison(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { left, op, right } = expression;
  if (left.type === "list" && isSelectNode(right)) {
    return bindRowAgainstQuery({ row: left, query: right, expression }, context, bind);
  }
  assert(
    left.type === "list" && right.type === "list",
    "row comparison: operand is not a row constructor",
  );
  if (op.endsWith("DISTINCT FROM")) return rowDistinct(op, pairsOf(left, right), context, bind);
  if (op === "=" || op === "!=") {
    const equal = rowEquals(left, right, context, bind);
    return op === "=" ? equal : { kind: "not", type: BOOLEAN, operand: equal };
  }
  const pairs = pairsOf(left, right).map(
    ([l, r]): RowPair => ({ left: bind(l, context), right: bind(r, context), node: r }),
  );
  return orderedRows(op, pairs, expression);
}

function rowEquals(
  left: ExprList,
  right: ExprList,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  requireFields(left.expressions, right);
  const pairs = pairsOf(left, right).map(([l, r]) =>
    binaryOf({ op: "=", left: bind(l, context), right: bind(r, context) }, r),
  );
  return { kind: "and", type: BOOLEAN, operands: pairs };
}

/**
 * Refuses rows without fields, which cannot be compared.
 *
 * @throws {DatabaseError} INVALID_QUERY
 */
function requireFields(fields: readonly unknown[], { _location }: AstNode): void {
  if (fields.length > 0) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    "Cannot compare empty rows: a row must have at least one value",
    {
      position: _location.start,
    },
  );
}

function pairsOf(left: ExprList, right: ExprList): [Expr, Expr][] {
  if (left.expressions.length !== right.expressions.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot compare a row of ${left.expressions.length} values with a row of ` +
        `${right.expressions.length}: both rows must have the same length`,
      { position: right._location.start, hint: "write the same number of values on both sides" },
    );
  }
  return left.expressions.flatMap((expression, i) => {
    const other = right.expressions[i];
    return other === undefined ? [] : [[expression, other] as [Expr, Expr]];
  });
}

/**
 * Binds `(a, b) IS DISTINCT FROM (c, d)`, which is true if any pair is distinct, and `IS NOT
 * DISTINCT FROM`, which is true if no pair is.
 */
function rowDistinct(
  op: string,
  pairs: readonly (readonly [Expr, Expr])[],
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const operands = pairs.map(([l, r]) =>
    binaryOf({ op, left: bind(l, context), right: bind(r, context) }, r),
  );
  const asksForOne = op === "IS DISTINCT FROM";
  if (operands.length === 0) return { kind: "constant", type: BOOLEAN, value: !asksForOne };
  return { kind: asksForOne ? "or" : "and", type: BOOLEAN, operands };
}

/** Maps each operator that includes equality to the operator without it. */
const STRICT: ReadonlyMap<string, string> = new Map([
  ["<=", "<"],
  [">=", ">"],
  ["~<=~", "~<~"],
  ["~>=~", "~>~"],
]);

/**
 * Returns a condition that compares rows by the first pair that differs. It is built from the last
 * pair outwards: a < c OR (a = c AND rest).
 */
function orderedRows(op: string, pairs: readonly RowPair[], node: Expr): BoundExpression {
  if (pairs.length > ORDERED_FIELDS_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot order rows by ${pairs.length} values: the maximum is ${ORDERED_FIELDS_MAX}`,
      { position: node._location.start, hint: "compare fewer values at a time" },
    );
  }
  const strict = STRICT.get(op) ?? op;
  let result: BoundExpression | undefined;
  for (const { left, node: at, right } of pairs.toReversed()) {
    if (result === undefined) {
      result = binaryOf({ op, left, right }, at);
      continue;
    }
    const before = binaryOf({ op: strict, left, right }, at);
    const same = binaryOf({ op: "=", left, right }, at);
    const both: BoundExpression = { kind: "and", type: BOOLEAN, operands: [same, result] };
    result = { kind: "or", type: BOOLEAN, operands: [before, both] };
  }
  requireFields(pairs, node);
  return defined(result, "row comparison: rows have no fields");
}

/** Binds `(a, b) = (SELECT …)`, a comparison with a query that returns at most one row. */
function bindRowAgainstQuery(
  { expression, query, row }: { row: ExprList; query: SelectStatement; expression: ExprBinary },
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { op } = expression;
  const left = row.expressions.map((item) => bind(item, context));
  requireFields(left, row);
  const right = bindRowQuery(query, { context, width: left.length });
  const pairs = left.map(
    (value, i): RowPair => ({
      left: value,
      right: defined(
        right[i],
        "row comparison: subquery returns fewer columns than the row has fields",
      ),
      node: query,
    }),
  );
  if (op !== "=" && op !== "!=") return orderedRows(op, pairs, expression);
  const operands = pairs.map((pair) => binaryOf({ op: "=", ...pair }, query));
  const equal: BoundExpression = { kind: "and", type: BOOLEAN, operands };
  return op === "=" ? equal : { kind: "not", type: BOOLEAN, operand: equal };
}
