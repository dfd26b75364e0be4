/**
 * The conditions of WHERE and ON while a block is planned: what each of them reads, and which
 * columns those read that are still to be tested.
 *
 * A condition is looked through once, however many joins it could be tested at. It is open from
 * when the block's readers know it until the plan tests it; a column that no open condition and no
 * other clause reads goes no further up.
 *
 * So a join of a new shape is planned in half the time, and thousands of conditions are not looked
 * through in quadratic time.
 */
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { isVolatileItself, someChild } from "../bind/walk.ts";

export interface Condition {
  readonly expression: BoundExpression;
  /** The columns that it reads, each once. */
  readonly columnIds: readonly number[];
  /** Whether it may be tested lower; one without columns or volatile may not. */
  readonly canMove: boolean;
  /** Whether it holds a constant, so that a part of it may be computed before the run. */
  readonly holdsConstant: boolean;
  /** Whether it is counted among the readers of its columns. */
  isOpen: boolean;
}

export function conditionOf(expression: BoundExpression): Condition {
  const read: Read = { columnIds: [], holdsConstant: false, isVolatile: false };
  addRead(expression, read);
  const { columnIds, holdsConstant, isVolatile } = read;
  const canMove = columnIds.length > 0 && !isVolatile;
  return { expression, columnIds, canMove, holdsConstant, isOpen: false };
}

/** What was found of an expression so far. */
interface Read {
  readonly columnIds: number[];
  holdsConstant: boolean;
  isVolatile: boolean;
}

/** Never finds what it walks for. */
function addRead(expression: BoundExpression, into: Read): boolean {
  if (expression.kind === "column") {
    const { id } = expression.column;
    if (!into.columnIds.includes(id)) into.columnIds.push(id);
    return false;
  }
  if (expression.kind === "constant") {
    into.holdsConstant = true;
    return false;
  }
  if (expression.kind === "in" && expression.constants.length > 0) into.holdsConstant = true;
  into.isVolatile ||= isVolatileItself(expression);
  return someChild(expression, addRead, into);
}

export function expressionsOf(conditions: readonly Condition[]): BoundExpression[] {
  return conditions.map(({ expression }) => expression);
}

/** Who still reads the columns of a block. */
export class ColumnReaders {
  /** Columns that a clause other than WHERE and ON reads. */
  readonly #above: ReadonlySet<number>;
  /** How many open conditions read each column. */
  readonly #openCounts = new Map<number, number>();

  /** @param above Columns that a clause other than WHERE and ON reads. */
  constructor(above: ReadonlySet<number>) {
    this.#above = above;
  }

  open(condition: Condition): void {
    condition.isOpen = true;
    for (const id of condition.columnIds) this.#openCounts.set(id, this.#countOf(id) + 1);
  }

  /** The plan tests these conditions where it stands; those that are not open change nothing. */
  close(conditions: readonly Condition[]): void {
    for (const condition of conditions) {
      if (!condition.isOpen) continue;
      condition.isOpen = false;
      for (const id of condition.columnIds) this.#openCounts.set(id, this.#countOf(id) - 1);
    }
  }

  isRead(id: number): boolean {
    return this.#above.has(id) || this.isReadByCondition(id);
  }

  isReadByCondition(id: number): boolean {
    return this.#countOf(id) > 0;
  }

  #countOf(id: number): number {
    return this.#openCounts.get(id) ?? 0;
  }
}
