/**
 * Builds filters and projections, the operators that pass rows on. They accept rows from any
 * source, so the scan below them can be replaced with a lookup or a sorted read.
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

/** Compiles a filter or a projection without compiling its input. */
export function buildPassing(node: Extract<PlanNode, { kind: "filter" | "project" }>): Passing {
  const layout = layoutOf(node.input.columns);
  if (node.kind === "filter") {
    const condition = compileCondition(node.condition, layout);
    const kept = node.columns.map(({ id }) =>
      defined(layout.get(id), "filter operator: output column is missing from the input"),
    );
    const inGroups = pacing([node.condition]);
    return (from, context) => new Filter(inGroups(from, context), { condition, kept, context });
  }
  const expressions = node.expressions.map((e) => compileExpression(e, layout));
  const inGroups = pacing(node.expressions);
  return (from, context) => new Project(inGroups(from, context), expressions, context);
}

/** The operators above a scan, compiled separately from the scan. */
export interface OverScan {
  readonly scan: ScanNode;
  /** Whether a filter above the scan may drop rows. */
  readonly isFiltered: boolean;
  readonly pass: Passing;
}

/**
 * Compiles the filters and projections above a single scan. `orderedColumnOf` and `keyedSideOf`
 * find such plans.
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
    "ordered scan: only filters and projections may stand above the scan",
  );
  const { isFiltered, pass: below, scan } = buildOverScan(node.input);
  const pass = buildPassing(node);
  return {
    scan,
    isFiltered: isFiltered || node.kind === "filter",
    pass: (from, context) => measured(node, pass(below(from, context), context), context),
  };
}

/** Wraps the operator of a plan node so that EXPLAIN ANALYZE can measure it. */
export function measured(
  node: PlanNode,
  operator: Operator,
  { profile }: ExecutionContext,
): Operator {
  return profile === undefined ? operator : profile.measured(node, operator);
}

/**
 * Limits the number of rows per batch if expressions over the rows may produce long values or call
 * programs.
 */
export function paced(
  expressions: readonly BoundExpression[],
  input: OperatorFactory,
): OperatorFactory {
  const inGroups = pacing(expressions);
  return (context) => inGroups(input(context), context);
}

/** Returns an operator that divides its input into batches suitable for the given expressions. */
function pacing(expressions: readonly BoundExpression[]): Passing {
  const isTimed = expressions.some(callsProgram);
  if (!isTimed && !expressions.some(mayMakeMuch)) return (from) => from;
  return (from, context) => new PacedRows(from, context, isTimed);
}

function callsProgram(expression: BoundExpression): boolean {
  return (
    (expression.kind === "call" && expression.program !== undefined) ||
    someChild(expression, callsProgram)
  );
}

/**
 * Whether evaluating an expression over a batch of rows may produce values of unlimited length.
 */
export function mayMakeMuch(expression: BoundExpression): boolean {
  return (
    (MAKING.has(expression.kind) && physicalKind(expression.type) === "any") ||
    someChild(expression, mayMakeMuch)
  );
}
