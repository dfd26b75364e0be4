/** Compiles the subqueries of a plan. All runs of the plan share the compiled code. */
import type { DataType } from "../../../types/mod.ts";
import type { BoundSelect } from "../../bind/bound.ts";
import type { BoundExpression, BoundSubquery, KeyedQuery } from "../../bind/bound_expressions.ts";
import { mapChildren } from "../../bind/walk.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { isLookup } from "../../plan/plan_walk.ts";
import { planSelect } from "../../plan/planner.ts";
import { buildPlan } from "../build/build.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { OperatorFactory } from "../context/operator.ts";
import { compileExpression, type Evaluator } from "../evaluate/expression.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { rowCountFrom } from "../operators/filter.ts";

export interface SubqueryProgram {
  /** The plan that runs for each set of outer values, or once if there are no outer references. */
  readonly root: PlanNode;
  readonly build: OperatorFactory;
  readonly columnCount: number;
  readonly keyed: KeyedProgram | undefined;
}

export interface KeyedProgram {
  readonly root: PlanNode;
  readonly build: OperatorFactory;
  readonly columnCount: number;
  /** The keys, evaluated over vectors that contain the outer references in order. */
  readonly keys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  readonly limit: (context: ExecutionContext) => number;
  readonly offset: (context: ExecutionContext) => number;
  readonly buildWithoutRows: OperatorFactory | undefined;
}

const PROGRAMS = new WeakMap<BoundSubquery, SubqueryProgram>();

/** Returns the compiled code of a subquery. Every call returns the same object. */
export function programOf(subquery: BoundSubquery): SubqueryProgram {
  const known = PROGRAMS.get(subquery);
  if (known !== undefined) return known;
  const { keyed, query } = subquery;
  const { root } = planSelect(query);
  const program: SubqueryProgram = {
    root,
    build: buildPlan(root),
    columnCount: query.outputs.length,
    // If the plan looks up rows by key for each outer row, a hash table of all rows is not needed.
    keyed:
      keyed === undefined || isLookup(root) ? undefined : compileKeyed(keyed, subquery.outerIds),
  };
  PROGRAMS.set(subquery, program);
  return program;
}

/** Returns the plans of a subquery: its keyed form, if any, and the query itself. */
export function plansOfSubquery(subquery: BoundSubquery): readonly PlanNode[] {
  const { keyed, root } = programOf(subquery);
  return [keyed?.root ?? root];
}

function compileKeyed(
  { keys, limit, offset, query, withoutRows }: KeyedQuery,
  outerIds: readonly number[],
): KeyedProgram {
  const layout = new Map(outerIds.map((id, position) => [id, position]));
  const limitOf = limit === undefined ? undefined : compileScalar(limit);
  const offsetOf = offset === undefined ? undefined : compileScalar(offset);
  const { root } = planSelect(query);
  return {
    root,
    build: buildPlan(root),
    columnCount: query.outputs.length - keys.length,
    keys: keys.map((key) => compileExpression(outerReferencesAsColumns(key), layout)),
    keyTypes: keys.map(({ type }) => type),
    limit: (context) =>
      limitOf === undefined ? Number.POSITIVE_INFINITY : rowCountFrom(limitOf(context), "LIMIT"),
    offset: (context) => (offsetOf === undefined ? 0 : rowCountFrom(offsetOf(context), "OFFSET")),
    buildWithoutRows: withoutRows === undefined ? undefined : buildSelect(withoutRows),
  };
}

function outerReferencesAsColumns(expression: BoundExpression): BoundExpression {
  if (expression.kind !== "outer") return mapChildren(expression, outerReferencesAsColumns);
  const { id, type } = expression;
  return { kind: "column", type, column: { id, name: "", type } };
}

function buildSelect(query: BoundSelect): OperatorFactory {
  return buildPlan(planSelect(query).root);
}
