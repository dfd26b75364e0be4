/**
 * A condition as a choice of rows: what a filter asks of its batches.
 *
 * The operands of AND are evaluated one after the other, cheap ones first. While most rows are
 * left, each is evaluated over the whole batch, which costs no copy; once few are, only over those.
 * What may fail is only ever asked about rows that all operands before it kept.
 *
 * It costs that which of two failing conditions is reported is open.
 */
import {
  type Batch,
  type RowNumbers,
  type Selection,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { childrenOf, conjunctsOf, hasSubquery, isVolatile, mayFailOnRow } from "../../bind/walk.ts";
import { selectNumbers } from "../kernels/numeric.ts";
import type { Run } from "../run/run.ts";
import { compileExpression, type Evaluator, selectRows } from "./expression.ts";
import { type Layout, positionsOf } from "./layout.ts";
import { takeColumns } from "./row_choice.ts";

/**
 * The rows of a batch on which a condition is true.
 *
 * @param into Memory for as many rows as the batch has, which the selection may be in.
 * @throws {DatabaseError} What a row raises.
 */
export type Selector = (batch: Batch, run: Run, into: RowNumbers) => Selection;

/** Below this share of a batch, the rows that are left are copied out. */
const NARROW_SHARE = 0.25;

interface Part {
  readonly evaluate: Evaluator;
  readonly needed: ReadonlySet<number>;
  readonly mayFail: boolean;
}

export function compileCondition(condition: BoundExpression, layout: Layout): Selector {
  const conjuncts = conjunctsOf(condition);
  if (conjuncts.length < 2 || conjuncts.some(isVolatile)) {
    const evaluate = compileExpression(condition, layout);
    const select = compileSelection(condition, layout);
    return (batch, run, into) =>
      select?.(batch, run, into) ?? selectRows(evaluate(batch, run), batch.rowCount);
  }
  const parts = conjuncts
    .toSorted((left, right) => costOf(left) - costOf(right))
    .map(
      (conjunct): Part => ({
        evaluate: compileExpression(conjunct, layout),
        needed: positionsOf(conjunct, layout),
        mayFail: mayFailOnRow(conjunct),
      }),
    );
  return (batch, run) => choose(parts, batch, run);
}

/** A number of a column beside a known one: the rows are found without a truth value for each. */
function compileSelection(
  condition: BoundExpression,
  layout: Layout,
): ((...args: Parameters<Selector>) => Selection | undefined) | undefined {
  if (condition.kind !== "compare" || condition.left.kind !== "column") return undefined;
  if (condition.right.kind !== "constant" && condition.right.kind !== "slot") return undefined;
  const left = compileExpression(condition.left, layout);
  const right = compileExpression(condition.right, layout);
  const { operator } = condition;
  return (batch, run, into) =>
    selectNumbers({ operator, left: left(batch, run), right: right(batch, run) }, into);
}

function choose(parts: readonly Part[], batch: Batch, run: Run): Selection {
  const { rowCount } = batch;
  /** 1 for a row that is left, while operands see the whole batch. */
  const mask = new Uint8Array(rowCount).fill(1);
  let open = rowCount;
  for (const [index, part] of parts.entries()) {
    if (open === 0) return NONE;
    const isAll = open === rowCount;
    if (!isAll && (part.mayFail || open < rowCount * NARROW_SHARE)) {
      return narrow(parts.slice(index), batch, { rows: rowsIn(mask), run });
    }
    open = keepTrue(mask, part.evaluate(batch, run));
  }
  return rowsIn(mask);
}

function rowsIn(mask: Uint8Array): Selection {
  const { length } = mask;
  return selectRows({ kind: "bool", length, values: mask, nulls: undefined }, length);
}

const NONE: Selection = { rows: new Uint32Array(0), count: 0 };

/** The further operands, each over the rows that are left. */
function narrow(
  parts: readonly Part[],
  batch: Batch,
  { rows, run }: { rows: Selection; run: Run },
): Selection {
  let left = rows;
  for (const part of parts) {
    if (left.count === 0) return NONE;
    const kept = selectRows(part.evaluate(takeColumns(batch, left, part.needed), run), left.count);
    if (kept.count === left.count) continue;
    for (let i = 0; i < kept.count; i += 1) kept.rows[i] = left.rows[kept.rows[i] ?? 0] ?? 0;
    left = kept;
  }
  return left;
}

/** Takes rows out of a mask on which an operand is not true. Returns how many are left. */
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

/** What an operand costs a row, roughly: numbers by loops, then lists, then text, then queries. */
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

/** Whether a query in it hangs on the row. */
function readsAnew(condition: BoundExpression): boolean {
  if (condition.kind === "subquery" && condition.captures.length > 0) return true;
  return childrenOf(condition).some(readsAnew);
}
