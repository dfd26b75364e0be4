/**
 * Builds the operators that pass rows on: filters and projections. They accept rows from any
 * source, so the scan below them can be replaced by a look-up or a sorted read.
 *
 *     sort, join ──rows in order, rows of some keys──► filter, project ──► the same columns as always
 */
import { assert, defined } from "../../../base/assert.ts";
import { physicalKind } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { someChild } from "../../bind/walk.ts";
import type { PlanNode, ScanNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { PacedRows } from "../context/paced_rows.ts";
import { compileCondition } from "../evaluate/condition.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { Filter, Project } from "../operators/filter.ts";

/** The kinds of expressions that may produce values of unlimited length. */
const MAKING: ReadonlySet<BoundExpression["kind"]> = new Set([
  "call",
  "cast",
  "constant",
  "outer",
  "slot",
  "subquery",
]);

/** Creates an operator that takes its rows from another operator. */
export type Passing = (from: Operator, context: ExecutionContext) => Operator;

/** Compiles a filter or a projection without its input. */
export function buildPassing(node: Extract<PlanNode, { kind: "filter" | "project" }>): Passing {
  const layout = layoutOf(node.input.columns);
  if (node.kind === "filter") {
    const condition = compileCondition(node.condition, layout);
    const kept = node.columns.map(({ id }) =>
      defined(layout.get(id), "a filter must yield only columns of its input"),
    );
    const isMade = mayMakeMuch(node.condition);
    return (from, context) =>
      new Filter(isMade ? new PacedRows(from, context) : from, { condition, kept, context });
  }
  const expressions = node.expressions.map((e) => compileExpression(e, layout));
  const isMade = node.expressions.some(mayMakeMuch);
  return (from, context) =>
    new Project(isMade ? new PacedRows(from, context) : from, expressions, context);
}

/** The operators above a scan, which are compiled without it. */
export interface OverScan {
  readonly scan: ScanNode;
  /** Whether a filter above the scan drops rows. */
  readonly isFiltered: boolean;
  readonly pass: Passing;
}

/**
 * Compiles the filters and projections above a single scan, which `orderedColumnOf` and
 * `keyedSideOf` find.
 */
export function buildOverScan(node: PlanNode): OverScan {
  if (node.kind === "scan") {
    return {
      scan: node,
      isFiltered: false,
      pass: (from, context) => measured(node, from, context),
    };
  }
  assert(
    node.kind === "filter" || node.kind === "project",
    "only filters and projections may pass on the rows of a scan",
  );
  const { isFiltered, pass: below, scan } = buildOverScan(node.input);
  const pass = buildPassing(node);
  return {
    scan,
    isFiltered: isFiltered || node.kind === "filter",
    pass: (from, context) => measured(node, pass(below(from, context), context), context),
  };
}

/** Measures the operator of a node for EXPLAIN ANALYZE. */
export function measured(
  node: PlanNode,
  operator: Operator,
  { profile }: ExecutionContext,
): Operator {
  return profile === undefined ? operator : profile.measured(node, operator);
}

/** Limits the number of rows per batch if expressions over the rows may produce long values. */
export function paced(
  expressions: readonly BoundExpression[],
  input: OperatorFactory,
): OperatorFactory {
  return expressions.some(mayMakeMuch)
    ? (context) => new PacedRows(input(context), context)
    : input;
}

/** Whether an expression over a batch of rows may produce values of unlimited length. */
export function mayMakeMuch(expression: BoundExpression): boolean {
  return (
    (MAKING.has(expression.kind) && physicalKind(expression.type) === "any") ||
    someChild(expression, mayMakeMuch)
  );
}
