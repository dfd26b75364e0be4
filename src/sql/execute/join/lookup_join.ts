/**
 * Joins a few rows of one side with the rows that a key or an index finds for each of them. A step
 * of a recursion often has a single row, for which a hash join would cost far more than a lookup.
 *
 *     idle ──driving batch──► looking up, row by row ──no row left──► idle
 *       │                          │
 *       └──── many rows, or the look-up is not worthwhile ──► a hash join of all rows that remain
 *
 * Each driving row is joined by itself, so the hash join can take over between any two driving
 * rows. After a restart, the join begins with lookups again.
 */
import {
  type Batch,
  type Comparator,
  comparatorFor,
  constVector,
  keepRows,
  type Row,
  slice,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { rowsWhere } from "../context/spilling.ts";
import { selectRows } from "../evaluate/expression.ts";
import type { JoinOptions } from "./hash_join.ts";

/** The maximum number of rows in a driving batch that is joined by lookups. */
const BATCH_LOOKUPS_MAX = 8;

/** If there are at least this many driving rows, a hash join is faster than lookups. */
const LOOKUPS_MAX = 64;

/**
 * The source of one value of a lookup key: the position of a join key, or a function that computes
 * the value.
 */
export type LookupPart = number | ((context: ExecutionContext) => Value);

export interface LookupJoinOptions
  extends Omit<JoinOptions, "isGuarded" | "isRightFixed" | "left" | "right"> {
  /**
   * The side in which rows are looked up. It is the left side only if the join is an inner join.
   */
  readonly foundSide: "left" | "right";
  /** The rows for which matching rows are looked up in the other side. */
  readonly driving: Operator;
  readonly parts: readonly LookupPart[];
  /**
   * Finds the rows with the given key, and possibly other rows. Returns undefined if a hash join
   * is faster.
   */
  readonly lookUp: (key: Row) => Operator | undefined;
  /** Whether every row that a lookup finds is certain to match all keys of the join. */
  readonly isExact: boolean;
  /** Whether a lookup by key finds at most one row. */
  readonly isSingle: boolean;
  /** Joins all rows of `driving` by hash. The returned operator does not own `driving`. */
  readonly hashJoin: (driving: Operator) => Operator;
}

export class LookupJoin implements Operator {
  readonly #options: LookupJoinOptions;
  readonly #comparators: readonly Comparator[];
  readonly #fixed: readonly Value[];
  /** The driving rows being joined, and the values of their join keys. */
  #batch: Batch | undefined;
  #keys: readonly Vector[] = [];
  #row = 0;
  /** The rows found for the current driving row, until all of them are joined. */
  #found: Operator | undefined;
  /** Whether a matching row has been found for the current driving row. */
  #hasPartner = false;
  #rowCount = 0;
  #hashJoin: Operator | undefined;

  constructor(options: LookupJoinOptions) {
    const { context, keyTypes, parts } = options;
    this.#options = options;
    this.#comparators = options.isExact ? [] : keyTypes.map(comparatorFor);
    this.#fixed = parts.map((part) => (typeof part === "number" ? null : part(context)));
  }

  next(): Batch | undefined {
    const { context, driving } = this.#options;
    for (;;) {
      if (this.#hashJoin !== undefined) return this.#hashJoin.next();
      if (this.#batch === undefined) {
        const batch = nextRows(driving, context);
        if (batch === undefined) return undefined;
        this.#begin(batch);
      } else if (this.#row >= this.#batch.rowCount) {
        this.#batch = undefined;
      } else {
        const joined = this.#joined(this.#batch);
        if (joined !== undefined && joined.rowCount > 0) return joined;
      }
    }
  }

  close(): void {
    this.#letGo();
    this.#options.driving.close();
  }

  restart(): boolean {
    this.#letGo();
    return this.#options.driving.restart?.() ?? false;
  }

  #letGo(): void {
    this.#found?.close();
    this.#found = undefined;
    this.#hashJoin?.close();
    this.#hashJoin = undefined;
    this.#batch = undefined;
    this.#rowCount = 0;
  }

  #begin(batch: Batch): void {
    const { context, foundSide, leftKeys, rightKeys } = this.#options;
    this.#rowCount += batch.rowCount;
    if (batch.rowCount > BATCH_LOOKUPS_MAX || this.#rowCount > LOOKUPS_MAX) {
      this.#leaveTo(batch);
      return;
    }
    const keys = foundSide === "right" ? leftKeys : rightKeys;
    this.#keys = keys.map((key) => key(batch, context));
    this.#batch = batch;
    this.#row = 0;
    this.#hasPartner = false;
  }

  /** Passes a batch, and all driving rows after it, to the hash join. */
  #leaveTo(batch: Batch): void {
    const { driving, hashJoin } = this.#options;
    this.#batch = undefined;
    this.#hashJoin = hashJoin(new RemainingRows(batch, driving));
  }

  /** Returns the next rows that the current driving row yields; undefined if there are none yet. */
  #joined(batch: Batch): Batch | undefined {
    const { isSingle, join, lookUp } = this.#options;
    if (this.#found === undefined) {
      const key = this.#keyAt(this.#row);
      if (key === undefined) return this.#endRow(batch);
      this.#found = lookUp(key);
      if (this.#found === undefined) {
        this.#leaveTo(rowsFrom(batch, this.#row));
        return undefined;
      }
    }
    const found = this.#found.next();
    if (found === undefined) return this.#endRow(batch);
    if (found.rowCount === 0) return undefined;
    const pairs = this.#pairs(batch, found);
    if (pairs.rowCount > 0) this.#hasPartner = true;
    const isChoice = join === "semi" || join === "anti";
    if (isChoice) return this.#hasPartner ? this.#endRow(batch) : undefined;
    if (isSingle && this.#hasPartner) this.#endRow(batch);
    return this.#keptOf(pairs);
  }

  /**
   * Moves on to the next driving row. Returns the row that a semi, anti or left join yields for
   * the driving row that has ended.
   */
  #endRow(batch: Batch): Batch | undefined {
    const { join, rightTypes } = this.#options;
    const row = this.#row;
    const hasPartner = this.#hasPartner;
    this.#found?.close();
    this.#found = undefined;
    this.#hasPartner = false;
    this.#row += 1;
    if (join === "inner" || hasPartner !== (join === "semi")) return undefined;
    const right = rightTypes.map(() => constVector(null, 1));
    return this.#keptOf({ rowCount: 1, columns: [...repeated(batch, row, 1), ...right] });
  }

  /**
   * Returns the lookup key for a driving row; undefined if the key contains NULL, because NULL
   * equals nothing.
   */
  #keyAt(row: number): Row | undefined {
    const key: Value[] = [];
    for (const [at, part] of this.#options.parts.entries()) {
      const vector = typeof part === "number" ? this.#keys[part] : undefined;
      const value = vector === undefined ? this.#fixed[at] : valueAt(vector, row);
      if (value === undefined || value === null) return undefined;
      key.push(value);
    }
    return key;
  }

  /** Returns all columns of the pairs of the current driving row and the rows found for it. */
  #pairs(batch: Batch, found: Batch): Batch {
    const { context, foundSide, residual } = this.#options;
    const partners = this.#comparators.length === 0 ? found : this.#withKeys(found);
    const { rowCount } = partners;
    const own = repeated(batch, this.#row, rowCount);
    const columns =
      foundSide === "right" ? [...own, ...partners.columns] : [...partners.columns, ...own];
    const pairs = { rowCount, columns };
    if (residual === undefined || rowCount === 0) return pairs;
    return keepRows(pairs, selectRows(residual(pairs, context), rowCount));
  }

  /** Selects the found rows whose join keys equal the join keys of the current driving row. */
  #withKeys(found: Batch): Batch {
    const { context, foundSide, leftKeys, rightKeys } = this.#options;
    const keys = (foundSide === "right" ? rightKeys : leftKeys).map((key) => key(found, context));
    const own = this.#keys.map((vector) => valueAt(vector, this.#row));
    const equal = rowsWhere(found.rowCount, (row) =>
      this.#comparators.every((compare, at) => {
        const vector = keys[at];
        const mine = own[at] ?? null;
        const value = vector === undefined ? null : valueAt(vector, row);
        return mine !== null && value !== null && compare(mine, value) === 0;
      }),
    );
    return keepRows(found, equal);
  }

  #keptOf({ columns, rowCount }: Batch): Batch {
    const kept = this.#options.kept.map((position) => columns[position] ?? constVector(null, 0));
    return { rowCount, columns: kept };
  }
}

/** Returns the columns of a row, repeated `count` times. */
function repeated({ columns, rowCount }: Batch, row: number, count: number): readonly Vector[] {
  if (rowCount === 1 && count === 1) return columns;
  return columns.map((column) => constVector(valueAt(column, row), count));
}

function rowsFrom({ columns, rowCount }: Batch, row: number): Batch {
  if (row === 0) return { columns, rowCount };
  return {
    rowCount: rowCount - row,
    columns: columns.map((column) => slice(column, row, rowCount)),
  };
}

/** Yields a batch, followed by the remaining batches of an operator that it does not own. */
class RemainingRows implements Operator {
  #first: Batch | undefined;
  readonly #rest: Operator;

  constructor(first: Batch, rest: Operator) {
    this.#first = first;
    this.#rest = rest;
  }

  next(): Batch | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first ?? this.#rest.next();
  }

  close(): void {
    this.#first = undefined;
  }
}
