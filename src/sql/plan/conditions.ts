/**
 * Tracks the conditions in WHERE and ON while a block is planned: the columns that each condition
 * reads, and the columns still needed by conditions that have not been tested yet.
 *
 * Each condition is analysed only once, however many joins could test it, because anything else
 * would take quadratic time for thousands of conditions. A condition is open from the time the
 * block's readers are registered until the plan tests it. A column that no open condition and no
 * other clause reads is dropped from the plan.
 */
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { isVolatileItself, someChild } from "../bind/walk.ts";

export interface Condition {
  readonly expression: BoundExpression;
  /** The distinct columns that a condition reads. */
  readonly columnIds: readonly number[];
  /**
   * Whether the condition may be tested lower in the plan. A condition must stay where it is if it
   * is volatile or reads no columns.
   */
  readonly canMove: boolean;
  /**
   * Whether the condition contains a constant, so that part of it may be computed before the query
   * runs.
   */
  readonly holdsConstant: boolean;
  /** Whether the condition still counts as a reader of its columns. */
  isOpen: boolean;
}

export function conditionOf(expression: BoundExpression): Condition {
  const read: FoundProperties = { columnIds: [], holdsConstant: false, isVolatile: false };
  addRead(expression, read);
  const { columnIds, holdsConstant, isVolatile } = read;
  const canMove = columnIds.length > 0 && !isVolatile;
  return { expression, columnIds, canMove, holdsConstant, isOpen: false };
}

/** The properties of an expression that have been found so far. */
interface FoundProperties {
  readonly columnIds: number[];
  holdsConstant: boolean;
  isVolatile: boolean;
}

/**
 * Records the columns that an expression reads. It always returns false, so that the traversal for
 * which it is the test visits the whole expression.
 */
function addRead(expression: BoundExpression, into: FoundProperties): boolean {
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

/** Counts the remaining readers of a block's columns. */
export class ColumnReaders {
  /** The columns that clauses other than WHERE and ON read. */
  readonly #above: ReadonlySet<number>;
  /** The number of open conditions that read each column. */
  readonly #openCounts = new Map<number, number>();

  /**
   * Creates the readers of a block.
   *
   * @param above The columns that clauses other than WHERE and ON read.
   */
  constructor(above: ReadonlySet<number>) {
    this.#above = above;
  }

  open(condition: Condition): void {
    condition.isOpen = true;
    for (const id of condition.columnIds) this.#openCounts.set(id, this.#countOf(id) + 1);
  }

  /**
   * Records that the plan has tested these conditions. Conditions that are not open are ignored.
   */
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
