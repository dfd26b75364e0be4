/**
 * Plan → operators, of what passes rows on: filters and projections. They stand over whatever
 * yields the rows, so that a scan below them can be read in another way than its plan says.
 *
 *     sort, join ──rows in order, rows of some keys──► filter, project ──► the same columns as ever
 */
import { assert, defined } from "../../../base/assert.ts";
import { physicalKind } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { someChild } from "../../bind/walk.ts";
import type { PlanNode, ScanNode } from "../../plan/plan.ts";
import { compileCondition } from "../evaluate/condition.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { Filter, Project } from "../operators/filter.ts";
import type { Operator, OperatorFactory } from "../run/operator.ts";
import { PacedRows } from "../run/paced_rows.ts";
import type { Run } from "../run/run.ts";

/** Expressions whose values may have any length. */
const MAKING: ReadonlySet<BoundExpression["kind"]> = new Set([
  "call",
  "cast",
  "constant",
  "outer",
  "slot",
  "subquery",
]);

/** Makes the operator that takes rows from another one. */
export type Passing = (from: Operator, run: Run) => Operator;

/** Compiles a filter or a projection, without its input. */
export function buildPassing(node: Extract<PlanNode, { kind: "filter" | "project" }>): Passing {
  const layout = layoutOf(node.input.columns);
  if (node.kind === "filter") {
    const condition = compileCondition(node.condition, layout);
    const kept = node.columns.map(({ id }) => defined(layout.get(id), "a filter adds no column"));
    const isMade = mayMakeMuch(node.condition);
    return (from, run) =>
      new Filter(isMade ? new PacedRows(from, run) : from, { condition, kept, run });
  }
  const expressions = node.expressions.map((e) => compileExpression(e, layout));
  const isMade = node.expressions.some(mayMakeMuch);
  return (from, run) => new Project(isMade ? new PacedRows(from, run) : from, expressions, run);
}

/** What stands over a scan, and is compiled without it. */
export interface OverScan {
  readonly scan: ScanNode;
  /** Whether rows are left out above the scan. */
  readonly isFiltered: boolean;
  readonly pass: Passing;
}

/**
 * Compiles filters and projections over one scan: `orderedColumnOf` and `keyedSideOf` find these.
 */
export function buildOverScan(node: PlanNode): OverScan {
  if (node.kind === "scan") {
    return { scan: node, isFiltered: false, pass: (from, run) => measured(node, from, run) };
  }
  assert(
    node.kind === "filter" || node.kind === "project",
    "only rows that pass have a scan below",
  );
  const { isFiltered, pass: below, scan } = buildOverScan(node.input);
  const pass = buildPassing(node);
  return {
    scan,
    isFiltered: isFiltered || node.kind === "filter",
    pass: (from, run) => measured(node, pass(below(from, run), run), run),
  };
}

/** An operator of a node, measured where EXPLAIN ANALYZE asks for it. */
export function measured(node: PlanNode, operator: Operator, { profile }: Run): Operator {
  return profile === undefined ? operator : profile.measured(node, operator);
}

/** Hands on as many rows at a time as make little, where expressions over them may make much. */
export function paced(
  expressions: readonly BoundExpression[],
  input: OperatorFactory,
): OperatorFactory {
  return expressions.some(mayMakeMuch) ? (run) => new PacedRows(input(run), run) : input;
}

/** Whether an expression over a batch of rows may make values of any length. */
export function mayMakeMuch(expression: BoundExpression): boolean {
  return (
    (MAKING.has(expression.kind) && physicalKind(expression.type) === "any") ||
    someChild(expression, mayMakeMuch)
  );
}
