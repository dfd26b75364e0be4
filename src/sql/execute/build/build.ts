/**
 * Turns a plan into operators. Expressions are compiled once per plan, and operators are created
 * for each run.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import type {
  BoundExpression,
  BoundFrameBound,
  BoundSort,
  BoundWindowCall,
} from "../../bind/bound_expressions.ts";
import { columnValue } from "../../bind/bound_nodes.ts";
import { isAskedOnce } from "../../plan/folding.ts";
import type {
  AggregateNode,
  ExpandNode,
  LateralNode,
  PlanNode,
  WindowNode,
} from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { type BatchLayout, layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { LateralJoin } from "../join/lateral_join.ts";
import { Aggregate, type AggregateColumn } from "../operators/aggregate.ts";
import { buildChanges } from "../operators/changes_scan.ts";
import { Distinct } from "../operators/distinct.ts";
import { BatchSource, RowsOperator } from "../operators/filter.ts";
import { Expand, FunctionScan } from "../operators/function_scan.ts";
import { Recursion, SharedRowsReader, WorkingTable } from "../operators/recursion.ts";
import { Concatenation, SetOperation } from "../operators/set_operation.ts";
import { stateFactory, stepsOver } from "../operators/stepped_state.ts";
import { buildValues } from "../operators/values.ts";
import { type WindowCall, WindowOperator } from "../window/window.ts";
import type { CompiledFrameBound } from "../window/window_frame.ts";
import { buildExtremes } from "./build_extremes.ts";
import { buildJoin } from "./build_join.ts";
import { buildOrder, sortKeys } from "./build_order.ts";
import { buildPassing, measured, type Passing, paced } from "./build_passing.ts";
import { buildScan, buildSystemView, type ScanUse } from "./build_scan.ts";
import { boundsBelow, boundsWith, firstsBelow, type NumberBound } from "./numbered_rows.ts";

/** How the consumer of a plan node uses the node's rows. */
interface Use extends ScanUse {
  /**
   * Present if the consumer of a sort needs only the first row of each group. A group consists of
   * the rows with equal values of these expressions.
   */
  readonly firstsOf?: readonly BoundExpression[] | undefined;
  /**
   * Bounds on the row number of a window. The consumer does not need rows whose numbers are
   * outside these bounds.
   */
  readonly bounds?: readonly NumberBound[];
}

/** Compiles a plan into a factory of operators. */
export function buildPlan(node: PlanNode, use: Use = {}): OperatorFactory {
  const build = buildNode(node, use);
  return (context) => measured(node, build(context), context);
}

function buildNode(node: PlanNode, use: Use): OperatorFactory {
  switch (node.kind) {
    case "single":
      return () => new RowsOperator([[]], []);
    case "scan":
      return buildScan(node, use);
    case "system":
      return buildSystemView(node);
    case "changes":
      return buildChanges(node);
    case "values":
      return buildValues(node);
    case "function":
      return buildFunctions(node);
    case "expand":
      return buildExpand(node);
    case "filter":
      return buildFilter(node, use);
    case "project": {
      const input = buildPlan(node.input, { ...use, bounds: boundsBelow(node, use.bounds) });
      return passing(buildPassing(node), input);
    }
    case "join":
      return buildJoin(node, buildPlan);
    case "lateral":
      return buildLateral(node);
    case "set":
      return buildSet(node);
    case "cte":
      return (context) => new SharedRowsReader(context.subqueries.takeRows(node.cte, context));
    case "working":
      return buildWorking(node);
    case "gathered":
      return buildGathered;
    case "recursive":
      return buildRecursion(node);
    case "aggregate":
      return buildAggregate(node);
    case "window":
      return buildWindow(node, use);
    case "distinct":
      return buildDistinct(node);
    default:
      return buildOrder(node, buildPlan, use.firstsOf);
  }
}

function buildDistinct(node: Extract<PlanNode, { kind: "distinct" }>): OperatorFactory {
  const input = paced(node.on, buildPlan(node.input, { firstsOf: node.on }));
  const layout = layoutOf(node.input.columns);
  const on = node.on.map((expression) => compileExpression(expression, layout));
  const types = node.on.map(({ type }) => type);
  const isOrdered = node.input.kind === "sort";
  const ordered = isOrdered ? node.input.columns.map(({ type }) => type) : undefined;
  return (context) => new Distinct(input(context), { context, node, on, types, ordered });
}

function passing(pass: Passing, input: OperatorFactory): OperatorFactory {
  return (context) => pass(input(context), context);
}

function buildLateral(node: LateralNode): OperatorFactory {
  const { join } = node;
  const left = buildPlan(node.left);
  const right = buildPlan(node.right);
  const leftLayout = layoutOf(node.left.columns);
  const outerReferences = node.outerReferences.map(({ id, value }) => {
    return { id, evaluate: compileExpression(value, leftLayout) };
  });
  const rightTypes = node.right.columns.map(({ type }) => type);
  const condition =
    node.condition === undefined
      ? undefined
      : compileExpression(node.condition, layoutOf(node.columns));
  return (context) =>
    new LateralJoin({
      context,
      join,
      left: left(context),
      right,
      rightTypes,
      outerReferences,
      condition,
    });
}

function buildFilter(node: Extract<PlanNode, { kind: "filter" }>, use: Use): OperatorFactory {
  if (isAskedOnce(node.condition)) return buildAskedOnce(node, use);
  const bounds = boundsWith(node.condition, use.bounds);
  const input = buildPlan(node.input, { ...use, bounds, isFiltered: true });
  return passing(buildPassing(node), input);
}

/**
 * Builds a filter whose condition is the same for all rows. The input is opened only if the
 * condition is true.
 */
function buildAskedOnce(node: Extract<PlanNode, { kind: "filter" }>, use: Use): OperatorFactory {
  const ask = compileScalar(node.condition);
  const layout = layoutOf(node.input.columns);
  const kept = node.columns.map(({ id }) =>
    defined(layout.get(id), "filter operator: output column is missing from the input"),
  );
  const isWhole = kept.length === node.input.columns.length && kept.every((at, i) => at === i);
  const input = buildPlan(node.input, use);
  const tested = passing(buildPassing(node), input);
  return (context) => {
    let answer: Value;
    try {
      answer = ask(context);
    } catch (error) {
      if (!(error instanceof DatabaseError) || node.raisesAlways === true) throw error;
      // The condition is evaluated only once the input has yielded a row, because an error in the
      // condition must not be raised if there are no rows.
      return tested(context);
    }
    if (answer !== true) return new RowsOperator([], []);
    return isWhole ? input(context) : tested(context);
  };
}

function buildExpand({ columns, functions, input }: ExpandNode): OperatorFactory {
  const rows = paced(
    functions.flatMap(({ args }) => args),
    buildPlan(input),
  );
  const layout = layoutOf(input.columns);
  const calls = functions.map((call) => ({
    call,
    args: call.args.map((arg) => compileExpression(arg, layout)),
  }));
  const madeCount = functions.reduce((sum, { width }) => sum + width, 0);
  const keptCount = columns.length - madeCount;
  const types = columns.slice(keptCount).map(({ type }) => type);
  return (context) => new Expand({ context, input: rows(context), calls, keptCount, types });
}

function buildFunctions(node: Extract<PlanNode, { kind: "function" }>): OperatorFactory {
  const { hasOrdinality } = node;
  const types = node.columns.map(({ type }) => type);
  const calls = node.functions.map((call) => ({
    call,
    args: call.args.map((arg) => compileScalar(arg)),
  }));
  return (context) => new FunctionScan({ context, calls, hasOrdinality, types });
}

function buildSet(node: Extract<PlanNode, { kind: "set" }>): OperatorFactory {
  const { isAll, operator } = node;
  const left = buildPlan(node.left);
  const right = buildPlan(node.right);
  const types = node.columns.map(({ type }) => type);
  if (operator !== "union") {
    return (context) =>
      new SetOperation({
        context,
        node,
        operator,
        isAll,
        types,
        left: left(context),
        right: right(context),
      });
  }
  if (isAll) return (context) => new Concatenation(left(context), right(context));
  const layout = layoutOf(node.columns);
  const on = node.columns.map((column) => compileExpression(columnValue(column), layout));
  return (context) =>
    new Distinct(new Concatenation(left(context), right(context)), { context, node, on, types });
}

function buildWorking({ recursion }: Extract<PlanNode, { kind: "working" }>): OperatorFactory {
  return (context) => new WorkingTable(recursion, context);
}

function buildGathered({ division }: ExecutionContext): Operator {
  return new BatchSource(
    defined(division, "gather operator: query is not divided among readers").gathered,
  );
}

function buildRecursion(node: Extract<PlanNode, { kind: "recursive" }>): OperatorFactory {
  const { isAll, recursion } = node;
  const types = node.columns.map(({ type }) => type);
  const first = buildPlan(node.first);
  const next = buildPlan(node.next);
  return (context) => new Recursion({ context, recursion, isAll, types, first, next });
}

function buildAggregate(node: AggregateNode): OperatorFactory {
  const evaluated = [
    ...node.groupBy.map(({ expression }) => expression),
    ...node.aggregates.flatMap(({ argument, extra }) => [
      ...extra,
      ...(argument === undefined ? [] : [argument]),
    ]),
  ];
  const input = paced(evaluated, buildPlan(node.input, { isConsumed: true }));
  const { groupingSets } = node;
  const inputLayout = layoutOf(node.input.columns);
  const keys = node.groupBy.map(({ expression }) => compileExpression(expression, inputLayout));
  const layout =
    groupingSets === undefined
      ? inputLayout
      : layoutOf([...node.input.columns, ...node.groupBy.map(({ column }) => column)]);
  const keyTypes = node.groupBy.map(({ expression }) => expression.type);
  const aggregates = node.aggregates.map((aggregate): AggregateColumn => {
    const args = aggregate.argument === undefined ? [] : [aggregate.argument, ...aggregate.extra];
    return {
      form: aggregate.form,
      create: stateFactory(aggregate.form, aggregate.steps),
      args: args.map((argument) => compileExpression(argument, layout)),
      argumentTypes: args.map(({ type }) => type),
      isDistinct: aggregate.isDistinct,
      filter:
        aggregate.filter === undefined ? undefined : compileExpression(aggregate.filter, layout),
      orderBy: sortKeys(aggregate.orderBy, layout),
    };
  });
  const options = { keys, keyTypes, aggregates, sets: groupingSets?.sets };
  return buildExtremes(
    node,
    (context) => new Aggregate({ ...options, context, node, input: input(context) }),
  );
}

function buildWindow(node: WindowNode, { bounds }: Use): OperatorFactory {
  const evaluated = node.calls.flatMap(({ args, window }) => [
    ...args,
    ...window.partitionBy,
    ...window.orderBy.map(({ expression }) => expression),
  ]);
  const input = firstsBelow(node, paced(evaluated, buildPlan(node.input)), bounds);
  const layout = layoutOf(node.input.columns);
  const ids = new Set(node.calls.map(({ column }) => column.id));
  const keptColumns = node.columns.filter(({ id }) => !ids.has(id));
  const kept = keptColumns.map(({ id }) =>
    defined(layout.get(id), "window operator: output column is missing from the input"),
  );
  const keptTypes = keptColumns.map(({ type }) => type);
  const { orderBy, partitionBy } = defined(
    node.calls[0],
    "window operator: node has no window function calls",
  ).window;
  const partitionKeys = partitionBy.map((expression): BoundSort => {
    return { expression, isDescending: false, nullsFirst: false };
  });
  const partition = sortKeys(partitionKeys, layout);
  const order = sortKeys(orderBy, layout);
  const calls = node.calls.map((call) => compileCall(call, layout));
  const options = { node, kept, keptTypes, partition, order, calls };
  return (context) => new WindowOperator({ ...options, context, input: input(context) });
}

function compileCall(call: BoundWindowCall, layout: BatchLayout): WindowCall {
  const { column, filter, form, window } = call;
  const compiledBound = ({ offset, reach, type }: BoundFrameBound): CompiledFrameBound => ({
    type,
    offset: offset === undefined ? undefined : compileScalar(offset),
    reach:
      reach === undefined
        ? undefined
        : {
            key: compileExpression(reach.key, layout),
            type: reach.key.type,
            step: reach.step,
            isNegative: reach.isNegative,
          },
  });
  const { end, exclude, mode, start } = window.frame;
  return {
    form,
    create: form.kind === "aggregate" ? stateFactory(form.aggregate, stepsOver(call)) : undefined,
    type: column.type,
    args: call.args.map((argument) => compileExpression(argument, layout)),
    argumentTypes: call.args.map(({ type }) => type),
    filter: filter === undefined ? undefined : compileExpression(filter, layout),
    frame: { mode, exclude, start: compiledBound(start), end: compiledBound(end) },
  };
}
