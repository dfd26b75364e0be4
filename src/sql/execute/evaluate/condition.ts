/**
 * Evaluates a filter condition as a selection of rows.
 *
 * The operands of AND are evaluated one after another, the cheapest first. While most rows remain,
 * each operand is evaluated over the whole batch, which avoids copying. Once few rows remain, each
 * operand is evaluated only over the remaining rows. Operands that may fail are evaluated only for
 * rows kept by all earlier operands.
 *
 * The drawback is that if two conditions fail, either error may be reported.
 */
import {
  type Batch,
  mayHoldNan,
  type RowNumbers,
  type Selection,
  typeOrder,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { childrenOf, conjunctsOf, hasSubquery, isVolatile, mayFailOnRow } from "../../bind/walk.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { selectNumbers } from "../kernels/numeric.ts";
import { compileExpression, type Evaluator, selectRows } from "./expression.ts";
import { type BatchLayout, positionsOf } from "./layout.ts";
import { takeColumns } from "./row_choice.ts";

/**
 * Returns the rows of a batch for which a condition is true.
 *
 * @param into Memory for as many rows as the batch has, in which the returned selection may be
 *   stored.
 * @throws {DatabaseError} The errors raised when a row is evaluated.
 */
export type Selector = (batch: Batch, context: ExecutionContext, into: RowNumbers) => Selection;

/** If fewer rows than this share of a batch remain, they are copied to a new batch. */
const NARROW_SHARE = 0.25;

interface ConditionPart {
  readonly evaluate: Evaluator;
  readonly needed: ReadonlySet<number>;
  readonly mayFail: boolean;
}

export function compileCondition(condition: BoundExpression, layout: BatchLayout): Selector {
  const conjuncts = conjunctsOf(condition);
  if (conjuncts.length < 2 || conjuncts.some(isVolatile)) {
    const evaluate = compileExpression(condition, layout);
    const select = compileSelection(condition, layout);
    return (batch, context, into) =>
      select?.(batch, context, into) ?? selectRows(evaluate(batch, context), batch.rowCount);
  }
  const parts = conjuncts
    .toSorted((left, right) => costOf(left) - costOf(right))
    .map(
      (conjunct): ConditionPart => ({
        evaluate: compileExpression(conjunct, layout),
        needed: positionsOf(conjunct, layout),
        mayFail: mayFailOnRow(conjunct),
      }),
    );
  return (batch, context) => choose(parts, batch, context);
}

/**
 * Compiles a comparison between a numeric column and a known number to a loop that selects rows
 * directly.
 */
function compileSelection(
  condition: BoundExpression,
  layout: BatchLayout,
): ((...args: Parameters<Selector>) => Selection | undefined) | undefined {
  if (condition.kind !== "compare" || condition.left.kind !== "column") return undefined;
  if (condition.right.kind !== "constant" && condition.right.kind !== "slot") return undefined;
  const left = compileExpression(condition.left, layout);
  const right = compileExpression(condition.right, layout);
  const { operator } = condition;
  const isDouble = typeOrder(condition.left.type) === "double";
  return (batch, context, into) => {
    const values = left(batch, context);
    const bounds = right(batch, context);
    if (isDouble && (mayHoldNan(values) || mayHoldNan(bounds))) return undefined;
    return selectNumbers({ operator, left: values, right: bounds }, into);
  };
}

function choose(
  parts: readonly ConditionPart[],
  batch: Batch,
  context: ExecutionContext,
): Selection {
  const { rowCount } = batch;
  /** Contains 1 for each remaining row while operands are evaluated over the whole batch. */
  const mask = new Uint8Array(rowCount).fill(1);
  let open = rowCount;
  for (const [index, part] of parts.entries()) {
    if (open === 0) return NONE;
    const isAll = open === rowCount;
    if (!isAll && (part.mayFail || open < rowCount * NARROW_SHARE)) {
      return narrow(parts.slice(index), batch, { rows: rowsIn(mask), context });
    }
    open = keepTrue(mask, part.evaluate(batch, context));
  }
  return rowsIn(mask);
}

function rowsIn(mask: Uint8Array): Selection {
  const { length } = mask;
  return selectRows({ kind: "bool", length, values: mask, nulls: undefined }, length);
}

const NONE: Selection = { rows: new Uint32Array(0), count: 0 };

/** Evaluates the remaining operands, each over the rows that are still selected. */
function narrow(
  parts: readonly ConditionPart[],
  batch: Batch,
  { rows, context }: { rows: Selection; context: ExecutionContext },
): Selection {
  let left = rows;
  for (const part of parts) {
    if (left.count === 0) return NONE;
    const kept = selectRows(
      part.evaluate(takeColumns(batch, left, part.needed), context),
      left.count,
    );
    if (kept.count === left.count) continue;
    for (let i = 0; i < kept.count; i += 1) kept.rows[i] = left.rows[kept.rows[i] ?? 0] ?? 0;
    left = kept;
  }
  return left;
}

/**
 * Clears the entries of `mask` for the rows in which an operand is not true. Returns the number of
 * remaining rows.
 */
function keepTrue(mask: Uint8Array, truth: Vector): number {
  let count = 0;
  if (truth.kind === "bool") {
    const { nulls, values } = truth;
    if (nulls === undefined) {
      for (let row = 0; row < mask.length; row += 1) {
        const kept = (mask[row] ?? 0) & (values[row] ?? 0);
        mask[row] = kept;
        count += kept;
      }
      return count;
    }
    for (let row = 0; row < mask.length; row += 1) {
      const kept = (mask[row] ?? 0) & (values[row] ?? 0) & ((nulls[row] ?? 0) ^ 1);
      mask[row] = kept;
      count += kept;
    }
    return count;
  }
  for (let row = 0; row < mask.length; row += 1) {
    if (valueAt(truth, row) !== true) mask[row] = 0;
    count += mask[row] ?? 0;
  }
  return count;
}

/**
 * Estimates the cost of an operand per row. From cheap to expensive: numeric loops, lists,
 * strings, queries.
 */
function costOf(condition: BoundExpression): number {
  if (hasSubquery(condition)) return readsAnew(condition) ? 6 : 5;
  switch (condition.kind) {
    case "constant":
    case "column":
    case "is":
      return 0;
    case "compare":
      return mayFailOnRow(condition) || isText(condition.left) ? 2 : 0;
    case "in":
      return mayFailOnRow(condition.operand) || isText(condition.operand) ? 2 : 1;
    default:
      return condition.kind === "call" ? 4 : 3;
  }
}

function isText({ type }: BoundExpression): boolean {
  return type.kind === "text" || type.kind === "json";
}

/** Whether a condition contains a correlated query, which has to be evaluated for each row. */
function readsAnew(condition: BoundExpression): boolean {
  if (condition.kind === "subquery" && condition.outerReferences.length > 0) return true;
  return childrenOf(condition).some(readsAnew);
}
