/**
 * Plans a table with policies, which restrict its rows.
 *
 *     conditions that may fail      they see permitted rows only
 *       └► EXISTS of the rule       as semi joins; for one row, as filters
 *            └► the other conditions, and the rest of the rule, above the scan
 *                 └► scan
 *
 * If a condition of the statement fails on a row, its error reveals that row. A condition that may
 * fail is therefore tested above the rule. The same applies to a condition with a part that is
 * evaluated only for some values, as in `$1 = 0 OR a = 10 / $1`. All other conditions are tested
 * together with the rule, so that both determine the keys and indexes by which rows are found. A
 * part that fails on all rows, such as `1/0`, is computed before any row is read, so that its
 * error reveals no row either.
 *
 * A part that fails for some rows of an outer query, as in `id = 10 / outer.n`, is computed first
 * only if the condition finds rows by a key or an index. Otherwise, an outer row without a match
 * would raise an error, although the same query on a table without policies raises none.
 */
import { BOOLEAN } from "../../types/mod.ts";
import type { BoundRelation } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, isVolatile, mayFailOnRow, readsColumn } from "../bind/walk.ts";
import { type Condition, expressionsOf } from "./conditions.ts";
import { mayFailForOuterRow, mayFailIfReached, partsThatMayFail } from "./early_parts.ts";
import { areNever, isConditionOnce } from "./folding.ts";
import type { PlanNode } from "./plan.ts";
import { filtered, narrowed, type PlanningState, stillRead } from "./planning_state.ts";
import { isExistence, semiJoined } from "./semi_joins.ts";
import { planTable } from "./table_scan.ts";

type RuledRelation = Extract<BoundRelation, { kind: "table" }>;

/**
 * Plans a table with policies.
 *
 * @param rule The folded conditions under which the policies permit a row.
 */
export function planRuledTable(
  relation: RuledRelation,
  { conditions, rule }: { conditions: readonly Condition[]; rule: readonly Condition[] },
  state: PlanningState,
): PlanNode {
  const { readers } = state;
  if (areNever(rule)) {
    readers.close([...rule, ...conditions]);
    const never = conjunctionOf(expressionsOf(rule));
    return { kind: "values", rows: [], never, columns: stillRead(relation.columns, state) };
  }
  const { early, late } = divided(conditions, relation);
  const once = rule.filter(isConditionOnce);
  const existences = rule.filter(({ expression }) => isExistence(expression));
  const plain = rule.filter((each) => !once.includes(each) && !existences.includes(each));
  readers.close(once);
  let node = planTable(relation, [...early, ...plain], state);
  for (const existence of existences) {
    const { expression } = existence;
    node = isOneRow(node)
      ? filtered(node, [expression])
      : (semiJoined(node, expression, state.planWhole) ?? filtered(node, [expression]));
    readers.close([existence]);
    node = { ...node, columns: stillRead(node.columns, state) };
  }
  const ruled = narrowed(filtered(node, expressionsOf(once)), late, state);
  return computedFirst(expressionsOf(early).flatMap(partsThatMayFail), ruled);
}

/**
 * Separates the conditions to test together with the rule from the conditions to test above it.
 */
function divided(
  conditions: readonly Condition[],
  relation: RuledRelation,
): { readonly early: readonly Condition[]; readonly late: readonly Condition[] } {
  const early: Condition[] = [];
  const late: Condition[] = [];
  const finding: Condition[] = [];
  for (const condition of conditions) {
    const { expression } = condition;
    if (isForPermittedRows(expression)) late.push(condition);
    else if (!mayFailForOuterRow(expression)) early.push(condition);
    else (findsRows(expression, relation) ? finding : late).push(condition);
  }
  const isFound = early.some(({ expression }) => findsRows(expression, relation));
  const [first, ...others] = finding;
  if (first === undefined) return { early, late };
  if (isFound) return { early, late: [...late, ...finding] };
  return { early: [...early, first], late: [...late, ...others] };
}

/** Whether a condition is an equality on the first column of the primary key or of an index. */
function findsRows(expression: BoundExpression, { columns, table }: RuledRelation): boolean {
  if (expression.kind !== "compare" || expression.operator !== "=") return false;
  const { left, right } = expression;
  const lists = [table.primaryKey, ...(table.indexes ?? []).map(({ columnIds }) => columnIds)];
  const finds = (side: BoundExpression, value: BoundExpression): boolean => {
    if (side.kind !== "column" || readsColumn(value)) return false;
    const column = columns.find(({ id }) => id === side.column.id);
    return lists.some(([first]) => first !== undefined && first === column?.origin?.columnId);
  };
  return finds(left, right) || finds(right, left);
}

/** Whether a condition must be tested only on rows that the policies permit. */
function isForPermittedRows(condition: BoundExpression): boolean {
  return mayFailOnRow(condition) || isVolatile(condition) || mayFailIfReached(condition);
}

/**
 * Adds a node that computes expressions before any row is read. Their errors are raised even if
 * there are no rows.
 */
function computedFirst(expressions: readonly BoundExpression[], input: PlanNode): PlanNode {
  const condition = conjunctionOf(expressions.map(isNullOrNot));
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, raisesAlways: true, columns: input.columns };
}

/**
 * Whether a node yields at most one row, found by its key. Subqueries in a filter above the node
 * then run at most once.
 */
function isOneRow(node: PlanNode): boolean {
  return node.kind === "filter"
    ? isOneRow(node.input)
    : node.kind === "scan" && node.key !== undefined;
}

/** Returns a condition that is always true, unless evaluating an expression raises an error. */
function isNullOrNot(operand: BoundExpression): BoundExpression {
  const test = (negated: boolean): BoundExpression => ({
    kind: "is",
    type: BOOLEAN,
    test: "null",
    negated,
    operand,
  });
  return { kind: "or", type: BOOLEAN, operands: [test(false), test(true)] };
}
