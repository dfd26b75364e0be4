/**
 * Binds UNION, INTERSECT and EXCEPT, which combine two queries into a single relation. Its columns
 * have the common types of both sides and the names of the left side.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type { Expr, SelectFromUnion, SelectStatement } from "../../parse/ast/ast.ts";
import type { BoundOutput, BoundSelect, SetOperator } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { columnOutput, selectFrom, selectFromQuery } from "../bound_nodes.ts";
import { castTo, castToCommonType } from "../expression/casts.ts";
import { bindLimit, orderedOutput } from "./ordering.ts";
import type { SelectDeps } from "./select_deps.ts";
import { sortOf } from "./sort_entry.ts";

/**
 * Binds a set operation with its ORDER BY and LIMIT, in small steps.
 * @throws {DatabaseError}
 */
export function* bindSetOperation(
  query: SelectFromUnion,
  deps: SelectDeps,
): Generator<void, BoundSelect> {
  const inner: SelectDeps = { ...deps, isOutermost: false, keepsUntyped: true };
  const left = yield* deps.bindInSteps(query.left, inner);
  const right = yield* deps.bindInSteps(query.right, inner);
  return setOperationOf(query, [left, right], deps);
}

/**
 * Binds a set operation whose sides are already bound.
 * @throws {DatabaseError}
 */
export function setOperationOf(
  query: SelectFromUnion,
  [left, right]: readonly [BoundSelect, BoundSelect],
  deps: SelectDeps,
): BoundSelect {
  const [word = "", all] = query.type.split(" ");
  if (left.outputs.length !== right.outputs.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot run ${word.toUpperCase()}: its left side has ${left.outputs.length} columns, but ` +
        `its right side has ${right.outputs.length}`,
      {
        position: query.right._location.start,
        hint: "select the same number of columns on both sides",
      },
    );
  }
  const columns = withCommonTypes(query, [left, right]);
  if (all === undefined) {
    for (const { left: value } of columns) {
      requireOrder(value.type, word.toUpperCase(), query.right._location.start);
    }
  }
  const relation = columns.map(({ name, left: value }) =>
    deps.statement.newColumn({ name, type: value.type }),
  );
  const outputs = relation.map(columnOutput);
  const select = selectFrom(
    {
      kind: "set",
      operator: word as SetOperator,
      isAll: all !== undefined,
      left: withOutputs(
        left,
        columns.map((column) => column.left),
        deps,
      ),
      right: withOutputs(
        right,
        columns.map((column) => column.right),
        deps,
      ),
      alias: "",
      columns: relation,
    },
    outputs,
  );
  const orderBy = (query.orderBy ?? []).map((sort) => sortOf(sort, target(sort.by, outputs)));
  return { ...select, orderBy, ...bindLimit(query.limit, orderBy, deps) };
}

/**
 * A pair of corresponding columns from both sides of a set operation, cast to their common type.
 */
interface SetColumnPair {
  readonly name: string;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

function withCommonTypes(
  query: SelectFromUnion,
  [left, right]: readonly [BoundSelect, BoundSelect],
): SetColumnPair[] {
  const word = query.type.toUpperCase();
  return left.outputs.map(({ expression, name }, i): SetColumnPair => {
    const other = defined(
      right.outputs[i],
      "set operation: sides have different numbers of columns",
    ).expression;
    const nodes: SelectStatement[] = [query.right, query.right];
    const [l, r] = castToCommonType([expression, other], nodes, word).expressions;
    return { name, left: l ?? expression, right: r ?? other };
  });
}

/**
 * Returns one side of a set operation with its outputs cast. The casts are applied outside
 * DISTINCT, which must compare the original values.
 */
function withOutputs(
  query: BoundSelect,
  expressions: readonly BoundExpression[],
  { statement }: SelectDeps,
): BoundSelect {
  const isUnchanged = expressions.every((e, i) => e === query.outputs[i]?.expression);
  if (isUnchanged) return query;
  const named = expressions.map((expression, i) => {
    return { name: query.outputs[i]?.name ?? "", expression };
  });
  if (query.distinct === "none") return { ...query, outputs: named };
  const outer = selectFromQuery(query, statement);
  return {
    ...outer,
    outputs: outer.outputs.map(({ name, expression }, i) => {
      const to = expressions[i]?.type ?? expression.type;
      return { name, expression: castTo(expression, { to, mode: "implicit", node: undefined }) };
    }),
  };
}

function target(node: Expr, outputs: readonly BoundOutput[]): BoundExpression {
  const output = orderedOutput(node, outputs, "ORDER BY");
  if (output !== undefined) return output;
  if (node.type === "ref" && node.table === undefined && node.star !== true) {
    throw new DatabaseError(
      "COLUMN_NOT_FOUND",
      `Cannot find column "${node.name}": the result of the set operation has no column with ` +
        "this name",
      {
        position: node._location.start,
        hint: "the columns of a set operation have the names of the columns of its first query",
      },
    );
  }
  throw new DatabaseError(
    "INVALID_QUERY",
    "Cannot order the result of a set operation by an expression: use the name or the position " +
      "of a column",
    { position: node._location.start, hint: "put the set operation in a subquery in FROM" },
  );
}
