/**
 * Plan → operators. Expressions are compiled once for a plan; operators are made for each run.
 */
import { defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { type ColumnRange, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import type { Row, Value } from "../../types/mod.ts";
import type {
  BoundColumn,
  BoundExpression,
  BoundFrameBound,
  BoundSort,
  BoundWindowCall,
} from "../bind/bound.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { hasSubquery, readsForEachRow } from "../bind/walk.ts";
import type {
  AggregateNode,
  JoinNode,
  LateralNode,
  PlanNode,
  ScanNode,
  WindowNode,
} from "../plan/plan.ts";
import { Aggregate, type AggregateColumn } from "./aggregate.ts";
import { compileCondition } from "./condition.ts";
import { Distinct } from "./distinct.ts";
import { compileExpression } from "./expression.ts";
import { Filter, Limit, Project, RowCounts, RowSource, rowCountFrom, Slices } from "./filter.ts";
import { FunctionScan } from "./function_scan.ts";
import { HashJoin } from "./hash_join.ts";
import { HeldSemiJoin } from "./held_semi_join.ts";
import { LateralJoin } from "./lateral_join.ts";
import type { Layout } from "./layout.ts";
import type { Operator } from "./operator.ts";
import { Resuming } from "./pausing.ts";
import { Recursion, SharedRowsReader, WorkingTable } from "./recursion.ts";
import type { Run } from "./run.ts";
import { compileScalar } from "./scalar.ts";
import { KeyLookup, readRow, TableScan } from "./scan.ts";
import { Concatenation, SetOperation } from "./set_operation.ts";
import { LimitWithTies, Sort } from "./sort.ts";
import type { SortKey } from "./sort_key.ts";
import { buildValues } from "./values.ts";
import { Window, type WindowCall } from "./window.ts";
import type { FrameBound } from "./window_frame.ts";

/** Makes the operators of one execution. */
export type OperatorFactory = (run: Run) => Operator;

/** Reads the one row that a query can yield, as its output columns. */
export type RowRead = (run: Run) => Row | undefined;

/**
 * Compiles a plan that takes columns of one row by its key as they are, and does nothing else: the
 * most frequent of all reads needs no operators. Undefined for every other plan.
 */
export function buildRowRead(root: PlanNode): RowRead | undefined {
  if (root.kind !== "project" || root.input.kind !== "scan") return undefined;
  const { key, table } = root.input;
  const columnIds = root.expressions.flatMap((expression) =>
    expression.kind === "column" ? (expression.column.origin?.columnId ?? []) : [],
  );
  if (key === undefined || columnIds.length < root.expressions.length) return undefined;
  if (key.some(hasSubquery)) return undefined;
  const parts = key.map((value) => compileScalar(value));
  return (run) => {
    const values: Value[] = [];
    for (const part of parts) {
      const value = part(run);
      if (value === null) return undefined;
      values.push(value);
    }
    return readRow(run, table, { key: values, columnIds });
  };
}

/** How what a node yields is used. */
interface Use {
  /** Whoever reads it is done with a batch before asking for the next one. */
  readonly isConsumed?: boolean;
}

/** Compiles a plan. */
export function buildPlan(node: PlanNode, use: Use = {}): OperatorFactory {
  const build = buildNode(node, use);
  return (run) => run.profile?.measured(node, build(run)) ?? build(run);
}

function buildNode(node: PlanNode, use: Use): OperatorFactory {
  switch (node.kind) {
    case "single":
      return () => new RowSource([[]], []);
    case "scan":
      return buildScan(node, use);
    case "system":
      return buildSystemView(node);
    case "values":
      return buildValues(node);
    case "function":
      return buildFunctions(node);
    case "filter": {
      const input = buildPlan(node.input, use);
      const layout = layoutOf(node.input.columns);
      const condition = compileCondition(node.condition, layout);
      const kept = node.columns.map(({ id }) => defined(layout.get(id), "a filter adds no column"));
      const make = (from: Operator, run: Run): Operator =>
        new Filter(from, { condition, kept, run });
      return slicedFor([node.condition], input, make);
    }
    case "project": {
      const input = buildPlan(node.input, use);
      const layout = layoutOf(node.input.columns);
      const expressions = node.expressions.map((e) => compileExpression(e, layout));
      const make = (from: Operator, run: Run): Operator => new Project(from, expressions, run);
      return slicedFor(node.expressions, input, make);
    }
    case "join":
      return buildJoin(node);
    case "lateral":
      return buildLateral(node);
    case "set":
      return buildSet(node);
    case "cte":
      return (run) => new SharedRowsReader(run.subqueries.takeRows(node.cte, run));
    case "working":
      return (run) =>
        new WorkingTable(defined(run.working.get(node.recursion), "a recursion has its rows"));
    case "recursive":
      return buildRecursion(node);
    case "aggregate":
      return buildAggregate(node);
    case "window":
      return buildWindow(node);
    case "distinct": {
      const input = buildPlan(node.input);
      const layout = layoutOf(node.input.columns);
      const on = node.on.map((expression) => compileExpression(expression, layout));
      const types = node.on.map(({ type }) => type);
      const isOrdered = node.input.kind === "sort";
      const ordered = isOrdered ? node.columns.map(({ type }) => type) : undefined;
      return (run) => new Distinct(input(run), { run, node, on, types, ordered });
    }
    case "sort":
    case "limit":
      return buildOrder(node);
  }
}

function buildSystemView(node: Extract<PlanNode, { kind: "system" }>): OperatorFactory {
  const { columns, positions, source } = node;
  const types = columns.map(({ type }) => type);
  return ({ principal }) => {
    const { isImpersonated, role, userId } = principal;
    const rows = source({ userId, role, isImpersonated });
    const picked = rows.map((row) => positions.map((position) => row[position] ?? null));
    return new RowSource(picked, types);
  };
}

/** Over small batches, and with pauses, where a row may cost a reading of another query. */
function slicedFor(
  expressions: readonly BoundExpression[],
  input: OperatorFactory,
  make: (from: Operator, run: Run) => Operator,
): OperatorFactory {
  if (!expressions.some(readsForEachRow)) return (run) => make(input(run), run);
  return (run) => {
    const slices = new Slices(input(run), run.subqueries.pauses);
    return new Resuming(make(slices, run), slices, run);
  };
}

/** Where each column of a list lies. */
export function layoutOf(columns: readonly BoundColumn[]): Layout {
  return new Map(columns.map(({ id }, position) => [id, position]));
}

/**
 * Rows of a batch when nobody above wants rows one by one. Its arrays stay in the second-level
 * cache, and what is done with it ends before others have waited for long.
 */
const BULK_BATCH_ROWS: number = 2 * BATCH_ROWS_MAX;

function buildScan(node: ScanNode, { isConsumed = false }: Use): OperatorFactory {
  const { isBulk, table, withTombstones } = node;
  const columnIds = node.columns.map(({ origin }) => {
    return defined(origin, "a scanned column is a stored one").columnId;
  });
  const key = node.key?.map((value) => compileScalar(value));
  const bounds = node.ranges.map(({ columnId, min, max }) => ({
    columnId,
    min: min === undefined ? undefined : compileScalar(min),
    max: max === undefined ? undefined : compileScalar(max),
  }));
  const batchRows = isBulk ? BULK_BATCH_ROWS : BATCH_ROWS_MAX;
  // A condition on the key reads no column of the row; the scan still has to say that it is there.
  const readIds = columnIds.length === 0 ? [SEQ_COLUMN_ID] : columnIds;

  const shaped = (operator: Operator): Operator =>
    columnIds.length === 0 ? new RowCounts(operator) : operator;

  return (run) => {
    const options = {
      run,
      table,
      columnIds: readIds,
      ranges: [],
      withTombstones: withTombstones && run.mayReadHistory(table),
      batchRows,
      reusesMemory: isConsumed,
    };
    if (key !== undefined) {
      const values = key.map((value) => value(run));
      return shaped(new KeyLookup(options, values.includes(null) ? undefined : values));
    }
    const ranges: ColumnRange[] = bounds.map(({ columnId, min, max }) => ({
      columnId,
      min: min === undefined ? Number.NEGATIVE_INFINITY : numberFrom(min(run), "min"),
      max: max === undefined ? Number.POSITIVE_INFINITY : numberFrom(max(run), "max"),
    }));
    const onEnd = (read: number, pruned: number): void =>
      run.profile?.scanned(node, { read, pruned });
    return shaped(new TableScan({ ...options, ranges, onEnd }));
  };
}

/** A bound as a number; beyond 2^53 it is rounded outwards, so that it can only be too generous. */
function numberFrom(value: Value, side: "min" | "max"): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") {
    const nearest = Number(value);
    return side === "min"
      ? nearest - Math.abs(nearest) * 1e-15
      : nearest + Math.abs(nearest) * 1e-15;
  }
  // NULL: the condition is true for no row, and the filter above says so.
  return side === "min" ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

function buildJoin(node: JoinNode): OperatorFactory {
  const left = buildPlan(node.left);
  const right = buildPlan(node.right);
  const leftLayout = layoutOf(node.left.columns);
  const rightLayout = layoutOf(node.right.columns);
  const pairLayout = layoutOf([...node.left.columns, ...node.right.columns]);
  const leftKeys = node.leftKeys.map((key) => compileExpression(key, leftLayout));
  const rightKeys = node.rightKeys.map((key) => compileExpression(key, rightLayout));
  const keyTypes = node.leftKeys.map(({ type }) => type);
  const leftTypes = node.left.columns.map(({ type }) => type);
  const rightTypes = node.right.columns.map(({ type }) => type);
  const residual =
    node.residual === undefined ? undefined : compileExpression(node.residual, pairLayout);
  const kept = node.columns.map(({ id }) => defined(pairLayout.get(id), "a join adds no column"));
  const { holdsLeft = false, isGuarded = false, join } = node;
  const shape = {
    node,
    kept,
    join,
    isGuarded,
    leftTypes,
    rightTypes,
    leftKeys,
    rightKeys,
    keyTypes,
  };
  return (run) => {
    const options = { ...shape, residual, run, left: left(run), right: right(run) };
    return holdsLeft ? new HeldSemiJoin(options) : new HashJoin(options);
  };
}

function buildLateral(node: LateralNode): OperatorFactory {
  const { join } = node;
  const left = buildPlan(node.left);
  const right = buildPlan(node.right);
  const leftLayout = layoutOf(node.left.columns);
  const captures = node.captures.map(({ id, value }) => {
    return { id, evaluate: compileExpression(value, leftLayout) };
  });
  const rightTypes = node.right.columns.map(({ type }) => type);
  const condition =
    node.condition === undefined
      ? undefined
      : compileExpression(node.condition, layoutOf(node.columns));
  return (run) =>
    new LateralJoin({ run, join, left: left(run), right, rightTypes, captures, condition });
}

function buildFunctions(node: Extract<PlanNode, { kind: "function" }>): OperatorFactory {
  const { hasOrdinality } = node;
  const types = node.columns.map(({ type }) => type);
  const calls = node.functions.map((call) => ({
    call,
    args: call.args.map((arg) => compileScalar(arg)),
  }));
  return (run) => new FunctionScan({ run, calls, hasOrdinality, types });
}

function buildSet(node: Extract<PlanNode, { kind: "set" }>): OperatorFactory {
  const { isAll, operator } = node;
  const left = buildPlan(node.left);
  const right = buildPlan(node.right);
  const types = node.columns.map(({ type }) => type);
  if (operator !== "union") {
    return (run) =>
      new SetOperation({ run, node, operator, isAll, types, left: left(run), right: right(run) });
  }
  if (isAll) return (run) => new Concatenation(left(run), right(run));
  const layout = layoutOf(node.columns);
  const on = node.columns.map((column) => compileExpression(columnValue(column), layout));
  return (run) => new Distinct(new Concatenation(left(run), right(run)), { run, node, on, types });
}

function buildRecursion(node: Extract<PlanNode, { kind: "recursive" }>): OperatorFactory {
  const { isAll, recursion } = node;
  const types = node.columns.map(({ type }) => type);
  const first = buildPlan(node.first);
  const next = buildPlan(node.next);
  return (run) => new Recursion({ run, recursion, isAll, types, first, next });
}

function buildAggregate(node: AggregateNode): OperatorFactory {
  const input = buildPlan(node.input, { isConsumed: true });
  const layout = layoutOf(node.input.columns);
  const keys = node.groupBy.map(({ expression }) => compileExpression(expression, layout));
  const keyTypes = node.groupBy.map(({ expression }) => expression.type);
  const aggregates = node.aggregates.map((aggregate): AggregateColumn => {
    const args = aggregate.argument === undefined ? [] : [aggregate.argument, ...aggregate.extra];
    return {
      form: aggregate.form,
      args: args.map((argument) => compileExpression(argument, layout)),
      argumentTypes: args.map(({ type }) => type),
      isDistinct: aggregate.isDistinct,
      filter:
        aggregate.filter === undefined ? undefined : compileExpression(aggregate.filter, layout),
      orderBy: sortKeys(aggregate.orderBy, layout),
    };
  });
  const { groupingSets } = node;
  const options = { keys, keyTypes, aggregates, sets: groupingSets?.sets };
  return (run) => new Aggregate({ ...options, run, node, input: input(run) });
}

function buildWindow(node: WindowNode): OperatorFactory {
  const input = buildPlan(node.input);
  const layout = layoutOf(node.input.columns);
  const ids = new Set(node.calls.map(({ column }) => column.id));
  const keptColumns = node.columns.filter(({ id }) => !ids.has(id));
  const kept = keptColumns.map(({ id }) => defined(layout.get(id), "a window keeps columns"));
  const keptTypes = keptColumns.map(({ type }) => type);
  const { orderBy, partitionBy } = defined(node.calls[0], "a window has a call").window;
  const partitionKeys = partitionBy.map((expression): BoundSort => {
    return { expression, isDescending: false, nullsFirst: false };
  });
  const partition = sortKeys(partitionKeys, layout);
  const order = sortKeys(orderBy, layout);
  const calls = node.calls.map((call) => compileCall(call, layout));
  const options = { node, kept, keptTypes, partition, order, calls };
  return (run) => new Window({ ...options, run, input: input(run) });
}

function compileCall(call: BoundWindowCall, layout: Layout): WindowCall {
  const { column, filter, form, window } = call;
  const compiledBound = ({ offset, reach, type }: BoundFrameBound): FrameBound => ({
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
    type: column.type,
    args: call.args.map((argument) => compileExpression(argument, layout)),
    argumentTypes: call.args.map(({ type }) => type),
    filter: filter === undefined ? undefined : compileExpression(filter, layout),
    frame: { mode, exclude, start: compiledBound(start), end: compiledBound(end) },
  };
}

function sortKeys(sorts: readonly BoundSort[], layout: Layout): SortKey[] {
  return sorts.map(({ expression, isDescending, nullsFirst }) => ({
    evaluate: compileExpression(expression, layout),
    type: expression.type,
    isDescending,
    nullsFirst,
  }));
}

function buildOrder(node: Extract<PlanNode, { kind: "sort" | "limit" }>): OperatorFactory {
  const input = buildPlan(node.input);
  const layout = layoutOf(node.input.columns);
  const limit = countOf(node.limit, "LIMIT");
  const offset = countOf(node.offset, "OFFSET");
  if (node.kind === "sort") {
    const keys = sortKeys(node.keys, layout);
    const inputTypes = node.input.columns.map(({ type }) => type);
    return (run) => {
      const rowsMax = limit(run) + offset(run);
      return new Sort({ run, node, input: input(run), inputTypes, keys, rowsMax });
    };
  }
  if (node.ties === undefined) {
    return (run) => new Limit(input(run), { limit: limit(run), offset: offset(run) });
  }
  const keys = sortKeys(node.ties, layout);
  return (run) =>
    new LimitWithTies(input(run), { run, keys, limit: limit(run), offset: offset(run) });
}

function countOf(
  expression: BoundExpression | undefined,
  clause: "LIMIT" | "OFFSET",
): (run: Run) => number {
  if (expression === undefined) {
    const none = clause === "LIMIT" ? Number.POSITIVE_INFINITY : 0;
    return () => none;
  }
  const value = compileScalar(expression);
  return (run) => rowCountFrom(value(run), clause);
}
