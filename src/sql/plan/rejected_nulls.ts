/**
 * Turns a left join into an inner join if a later condition drops every left row without a partner.
 *
 *     a LEFT JOIN b ON b.k = a.k WHERE b.x = 5      =      a JOIN b ON b.k = a.k WHERE b.x = 5
 *
 * The columns of b are NULL in a row without a partner, and a comparison with NULL is not true. An
 * inner join can be reordered, and conditions move into both of its sides.
 */
import type { BoundFrom, BoundJoin, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctsOf } from "../bind/walk.ts";
import { isPlainJoin } from "./inner_joins.ts";
import { type ColumnIds, columnIdsOf } from "./join_keys.ts";

/**
 * Replaces each left join of a query block if later conditions drop all its rows without a
 * partner.
 */
export function withoutIdleLeftJoins(select: BoundSelect): BoundSelect {
  const from = select.from === undefined ? undefined : joined(select.from, [select.where]);
  return from === select.from ? select : { ...select, from };
}

type Conditions = readonly (BoundExpression | undefined)[];

/**
 * Replaces left joins within an item of FROM by inner joins.
 *
 * @param conditions The conditions that every row of FROM must satisfy in the end.
 */
function joined(from: BoundFrom, conditions: Conditions): BoundFrom {
  if (from.kind === "relation") return from;
  if (isPlainLeftJoin(from)) {
    if (dropsUnmatched(conditions, columnIdsOf(from.right))) {
      return joined({ ...from, join: "inner" }, conditions);
    }
    const right = joined(from.right, [from.condition]);
    return withSides(from, joined(from.left, conditions), right);
  }
  if (!isPlainJoin(from)) return from;
  const all = [...conditions];
  addConditions(from, all);
  return joinedPlainly(from, all);
}

function joinedPlainly(from: BoundFrom, conditions: Conditions): BoundFrom {
  if (!isPlainJoin(from)) return joined(from, conditions);
  const left = joinedPlainly(from.left, conditions);
  return withSides(from, left, joinedPlainly(from.right, conditions));
}

/**
 * Adds the conditions of nested plain joins. All of them hold for the rows of the outermost join.
 */
function addConditions(from: BoundFrom, into: (BoundExpression | undefined)[]): void {
  if (!isPlainJoin(from)) return;
  into.push(from.condition);
  addConditions(from.left, into);
  addConditions(from.right, into);
}

function withSides(from: BoundJoin, left: BoundFrom, right: BoundFrom): BoundFrom {
  return left === from.left && right === from.right ? from : { ...from, left, right };
}

function isPlainLeftJoin({ isBeside, join, outerReferences }: BoundJoin): boolean {
  return join === "left" && outerReferences === undefined && isBeside !== true;
}

function dropsUnmatched(conditions: Conditions, ids: ColumnIds): boolean {
  return conditions.some((condition) =>
    conjunctsOf(condition).some((each) => isUntrueWithout(each, ids)),
  );
}

/**
 * Whether a condition is false or NULL in every row in which all of the given columns are NULL.
 */
function isUntrueWithout(condition: BoundExpression, ids: ColumnIds): boolean {
  switch (condition.kind) {
    case "and":
      return condition.operands.some((each) => isUntrueWithout(each, ids));
    case "or":
      return condition.operands.every((each) => isUntrueWithout(each, ids));
    case "is": {
      const { negated, operand, test } = condition;
      if (negated) return test === "null" && isNullWithout(operand, ids);
      if (test === "true") return isUntrueWithout(operand, ids);
      return test === "false" && isNullWithout(operand, ids);
    }
    case "in":
      return !condition.negated && isNullWithout(condition.operand, ids);
    case "row in":
      return condition.operands.some((each) => isNullWithout(each, ids));
    default:
      return isNullWithout(condition, ids);
  }
}

/** Whether an expression is NULL in every row in which all of the given columns are NULL. */
function isNullWithout(expression: BoundExpression, ids: ColumnIds): boolean {
  switch (expression.kind) {
    case "column":
      return ids.has(expression.column.id);
    case "cast":
    case "not":
      return isNullWithout(expression.operand, ids);
    case "compare":
    case "arithmetic":
      return isNullWithout(expression.left, ids) || isNullWithout(expression.right, ids);
    case "call":
      return !expression.seesNull && expression.args.some((each) => isNullWithout(each, ids));
    case "in": {
      const { constants, items, operand } = expression;
      // NULL IN (…) is false, and NOT IN is true, if the list is empty.
      return items.length + constants.length > 0 && isNullWithout(operand, ids);
    }
    default:
      return false;
  }
}
