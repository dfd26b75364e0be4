/**
 * Reads a single row by its key and tests conditions on it, without operators. This is the plan of
 * a read by key from a table with policies. The conditions compare columns, or check whether
 * another table contains a row with a certain key.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type Batch, type DataType, type Row, type Value, valueAt } from "../../../types/mod.ts";
import type { BoundColumn, BoundExpression } from "../../bind/bound_expressions.ts";
import { hasSubquery, isVolatile, mapChildren } from "../../bind/walk.ts";
import { isAskedOnce } from "../../plan/folding.ts";
import type { PlanNode, ScanNode } from "../../plan/plan.ts";
import { existenceIn } from "../../plan/semi_joins.ts";
import type { RowRead } from "../build/build_scan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { InnerContext } from "../context/inner_context.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { type BatchLayout, layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { columnsFromRows } from "../operators/filter.ts";
import { readRow } from "../operators/scan.ts";
import { programOf } from "./subquery_program.ts";

/**
 * A row with the columns that the scan reads. It is converted to a batch only when an expression
 * is evaluated.
 */
class TestedRow {
  readonly row: Row;
  readonly #types: readonly DataType[];
  #batch: Batch | undefined;

  constructor(row: Row, types: readonly DataType[]) {
    this.row = row;
    this.#types = types;
  }

  get batch(): Batch {
    this.#batch ??= { rowCount: 1, columns: columnsFromRows([this.row], this.#types) };
    return this.#batch;
  }
}

type KeyedRowTest = (tested: TestedRow, context: ExecutionContext) => boolean;

/** Compiles a plan that reads a single row by key. Returns undefined for any other plan. */
export function buildGuardedRowRead(root: PlanNode): RowRead | undefined {
  if (root.kind !== "project") return undefined;
  const outputs = root.expressions.flatMap((expression) =>
    expression.kind === "column" ? expression.column : [],
  );
  if (outputs.length < root.expressions.length) return undefined;
  const read = rowReadOf(root.input, outputs);
  if (read === undefined) return undefined;
  return (context) => {
    const row = read(context);
    return row === undefined ? [] : [row];
  };
}

/**
 * Reads a row by its key. Returns undefined if there is no such row, or if a condition is not true
 * for the row.
 */
type GuardedRowRead = (context: ExecutionContext) => Row | undefined;

/**
 * Compiles the read of a single row. The conditions above the scan then test the row.
 * @param outputs The columns of the returned row.
 */
function rowReadOf(input: PlanNode, outputs: readonly BoundColumn[]): GuardedRowRead | undefined {
  const found = scanBelow(input);
  if (found === undefined) return undefined;
  const { conditions, key, scan } = found;
  const columns = [...outputs, ...columnsIn(conditions)];
  const columnIds = columns.flatMap(({ origin }) => origin?.columnId ?? []);
  if (columnIds.length < columns.length || key.some(hasSubquery)) return undefined;
  if (conditions.some(isVolatile)) return undefined;
  const layout = layoutOf(columns);
  const gate = gateOf(conditions.filter(isAskedOnce));
  const tests: KeyedRowTest[] = [];
  for (const condition of conditions) {
    if (isAskedOnce(condition)) continue;
    const test = testOf(condition, layout);
    if (test === undefined) return undefined;
    tests.push(test);
  }
  const parts = key.map((value) => compileScalar(value));
  const types = columns.map(({ type }) => type);
  const { past, table } = scan;
  return (context) => {
    const answer = gate(context);
    if (answer === false) return undefined;
    const values = parts.map((part) => part(context));
    if (values.includes(null)) return undefined;
    const row = readRow(context, table, { key: values, columnIds, past });
    if (row === undefined) return undefined;
    const tested = new TestedRow(row, types);
    for (const test of tests) if (!test(tested, context)) return undefined;
    if (answer !== true) throw answer;
    return row.length === outputs.length ? row : row.slice(0, outputs.length);
  };
}

/**
 * Returns a function that tests the conditions that are the same for all rows. They are tested
 * before the key is computed, because computing the key may fail if one of them is not true. If
 * evaluating such a condition raises an error, the error is returned rather than thrown, because
 * it must be raised only for a row that satisfies the other conditions.
 */
function gateOf(
  conditions: readonly BoundExpression[],
): (context: ExecutionContext) => boolean | DatabaseError {
  const gates = conditions.map((condition) => compileScalar(condition));
  return (context) => {
    let failure: DatabaseError | undefined;
    for (const gate of gates) {
      try {
        if (gate(context) !== true) return false;
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        failure ??= error;
      }
    }
    return failure ?? true;
  };
}

interface ScanBelow {
  readonly scan: ScanNode;
  readonly key: readonly BoundExpression[];
  /** The conditions above the scan, from the bottom up. */
  readonly conditions: readonly BoundExpression[];
}

function scanBelow(node: PlanNode): ScanBelow | undefined {
  if (node.kind === "scan") {
    const { key, withTombstones } = node;
    return key === undefined || withTombstones ? undefined : { scan: node, key, conditions: [] };
  }
  if (node.kind !== "filter" || node.raisesAlways === true) return undefined;
  const below = scanBelow(node.input);
  return below && { ...below, conditions: [...below.conditions, node.condition] };
}

function columnsIn(expressions: readonly BoundExpression[]): readonly BoundColumn[] {
  const found = new Map<number, BoundColumn>();
  const visit = (expression: BoundExpression): BoundExpression => {
    if (expression.kind === "column") found.set(expression.column.id, expression.column);
    return mapChildren(expression, visit);
  };
  for (const expression of expressions) visit(expression);
  return [...found.values()];
}

/**
 * Returns a function that tests whether a condition is true; undefined if the test requires
 * operators.
 */
function testOf(condition: BoundExpression, layout: BatchLayout): KeyedRowTest | undefined {
  if (!hasSubquery(condition)) {
    const evaluate = compileExpression(condition, layout);
    return (tested, context) => valueAt(evaluate(tested.batch, context), 0) === true;
  }
  if (condition.kind === "and" || condition.kind === "or") {
    const tests: KeyedRowTest[] = [];
    for (const operand of condition.operands) {
      const test = testOf(operand, layout);
      if (test === undefined) return undefined;
      tests.push(test);
    }
    return condition.kind === "and"
      ? (tested, context) => tests.every((test) => test(tested, context))
      : (tested, context) => tests.some((test) => test(tested, context));
  }
  return existenceTestOf(condition, layout);
}

function existenceTestOf(
  condition: BoundExpression,
  layout: BatchLayout,
): KeyedRowTest | undefined {
  const existence = existenceIn(condition);
  if (existence === undefined) return undefined;
  const { isNegated, subquery } = existence;
  const { outerIds } = subquery.subquery;
  const { root } = programOf(subquery.subquery);
  const read = root.kind === "project" ? rowReadOf(root.input, []) : undefined;
  if (read === undefined || subquery.outerReferences.some(hasSubquery)) return undefined;
  const references = subquery.outerReferences.map((each) => valueOf(each, layout));
  return (tested, context) => {
    const outer = new Map<number, Value>();
    for (const [i, id] of outerIds.entries()) {
      outer.set(id, references[i]?.(tested, context) ?? null);
    }
    return (read(new InnerContext(context, { outer })) === undefined) === isNegated;
  };
}

function valueOf(
  expression: BoundExpression,
  layout: BatchLayout,
): (tested: TestedRow, context: ExecutionContext) => Value {
  const position = expression.kind === "column" ? layout.get(expression.column.id) : undefined;
  if (position !== undefined) return ({ row }) => row[position] ?? null;
  const evaluate = compileExpression(expression, layout);
  return (tested, context) => valueAt(evaluate(tested.batch, context), 0);
}
