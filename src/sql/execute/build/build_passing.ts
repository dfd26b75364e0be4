/**
 * Plan → operators, of what passes rows on: filters and projections. They stand over whatever
 * yields the rows, so that a scan below them can be read in another way than its plan says.
 *
 *     sort, join ──rows in order, rows of some keys──► filter, project ──► the same columns as ever
 */
import { assert, defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX, CORRELATED_ROWS_MAX } from "../../../base/limits.ts";
import { physicalKind } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { mayTakeLong, readsForEachRow } from "../../bind/walk.ts";
import type { PlanNode, ScanNode } from "../../plan/plan.ts";
import { compileCondition } from "../evaluate/condition.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { Filter, Project } from "../operators/filter.ts";
import type { Operator } from "../run/operator.ts";
import { Resuming } from "../run/pausing.ts";
import type { Run } from "../run/run.ts";
import { rowsTogether, Slices } from "../run/slices.ts";

/** Makes the operator that takes rows from another one. */
export type Passing = (from: Operator, run: Run) => Operator;

/** Compiles a filter or a projection, without its input. */
export function buildPassing(node: Extract<PlanNode, { kind: "filter" | "project" }>): Passing {
  const layout = layoutOf(node.input.columns);
  if (node.kind === "filter") {
    const condition = compileCondition(node.condition, layout);
    const kept = node.columns.map(({ id }) => defined(layout.get(id), "a filter adds no column"));
    return sliced([node.condition], (from, run) => new Filter(from, { condition, kept, run }));
  }
  const expressions = node.expressions.map((e) => compileExpression(e, layout));
  return sliced(node.expressions, (from, run) => new Project(from, expressions, run));
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

/**
 * Over small batches where a row may cost a reading of another query, and with pauses wherever rows
 * may take long.
 */
function sliced(expressions: readonly BoundExpression[], make: Passing): Passing {
  const isReading = expressions.some(readsForEachRow);
  const together = rowsTogether(expressions.length);
  const isShort = together >= BATCH_ROWS_MAX && !expressions.some(mayTakeLong);
  if (isShort && !isReading && !expressions.some(mayBeLong)) return make;
  const rowsOf = together >= BATCH_ROWS_MAX ? Number.POSITIVE_INFINITY : together;
  const rowsMax = isReading ? CORRELATED_ROWS_MAX : rowsOf;
  return (from, run) => {
    const slices = new Slices(from, run.pauses, rowsMax);
    return new Resuming(make(slices, run), slices, run);
  };
}

/** Whether it is a value of any length that all rows have. */
function mayBeLong({ kind, type }: BoundExpression): boolean {
  if (kind !== "constant" && kind !== "slot" && kind !== "outer") return false;
  return physicalKind(type) === "any";
}
