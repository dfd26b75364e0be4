/** The compiled code of a plan's subqueries, which all runs of the plan share. */
import type { DataType } from "../../../types/mod.ts";
import type { BoundSelect } from "../../bind/bound.ts";
import type { BoundExpression, BoundSubquery, KeyedQuery } from "../../bind/bound_expressions.ts";
import { mapChildren } from "../../bind/walk.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { isLookup } from "../../plan/plan_walk.ts";
import { planSelect } from "../../plan/planner.ts";
import { buildPlan } from "../build/build.ts";
import { compileExpression, type Evaluator } from "../evaluate/expression.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { rowCountFrom } from "../operators/filter.ts";
import type { OperatorFactory } from "../run/operator.ts";
import type { Run } from "../run/run.ts";

export interface Program {
  /** Read for each set of captures, or once. */
  readonly root: PlanNode;
  readonly build: OperatorFactory;
  readonly columnCount: number;
  readonly keyed: KeyedProgram | undefined;
}

export interface KeyedProgram {
  readonly root: PlanNode;
  readonly build: OperatorFactory;
  readonly columnCount: number;
  /** Over vectors of the captures, in their order. */
  readonly keys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  readonly limit: (run: Run) => number;
  readonly offset: (run: Run) => number;
  readonly buildWithoutRows: OperatorFactory | undefined;
}

const PROGRAMS = new WeakMap<BoundSubquery, Program>();

/** The same at each call. */
export function programOf(subquery: BoundSubquery): Program {
  const known = PROGRAMS.get(subquery);
  if (known !== undefined) return known;
  const { keyed, query } = subquery;
  const { root } = planSelect(query);
  const program: Program = {
    root,
    build: buildPlan(root),
    columnCount: query.outputs.length,
    // Rows that are found by their own key need no table of all of them.
    keyed:
      keyed === undefined || isLookup(root) ? undefined : compileKeyed(keyed, subquery.captureIds),
  };
  PROGRAMS.set(subquery, program);
  return program;
}

/** What a subquery reads: its keyed form, where it has one, or the query as it stands. */
export function plansOfSubquery(subquery: BoundSubquery): readonly PlanNode[] {
  const { keyed, root } = programOf(subquery);
  return [keyed?.root ?? root];
}

function compileKeyed(
  { keys, limit, offset, query, withoutRows }: KeyedQuery,
  captureIds: readonly number[],
): KeyedProgram {
  const layout = new Map(captureIds.map((id, position) => [id, position]));
  const limitOf = limit === undefined ? undefined : compileScalar(limit);
  const offsetOf = offset === undefined ? undefined : compileScalar(offset);
  const { root } = planSelect(query);
  return {
    root,
    build: buildPlan(root),
    columnCount: query.outputs.length - keys.length,
    keys: keys.map((key) => compileExpression(capturesAsColumns(key), layout)),
    keyTypes: keys.map(({ type }) => type),
    limit: (run) =>
      limitOf === undefined ? Number.POSITIVE_INFINITY : rowCountFrom(limitOf(run), "LIMIT"),
    offset: (run) => (offsetOf === undefined ? 0 : rowCountFrom(offsetOf(run), "OFFSET")),
    buildWithoutRows: withoutRows === undefined ? undefined : buildSelect(withoutRows),
  };
}

function capturesAsColumns(expression: BoundExpression): BoundExpression {
  if (expression.kind !== "outer") return mapChildren(expression, capturesAsColumns);
  const { id, type } = expression;
  return { kind: "column", type, column: { id, name: "", type } };
}

function buildSelect(query: BoundSelect): OperatorFactory {
  return buildPlan(planSelect(query).root);
}
