/**
 * Which rows an aggregate sees, and in which order, where that is not all of them as they come:
 * DISTINCT and ORDER BY of a call.
 *
 * The rows of a call, with the numbers of their groups, pass the operators that do the same for
 * queries, and so go to disk like theirs when they are too many.
 */
import { defined } from "../../../base/assert.ts";
import { type Batch, type DataType, INT, type Vector, valueAt } from "../../../types/mod.ts";
import type { BatchGroups } from "../../functions/aggregate/aggregates.ts";
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import { columnReader, type SpillOptions } from "../run/spilling.ts";
import { Sort } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { Distinct } from "./distinct.ts";

/** Gives an operator what another one is handed. */
class PushedRows implements Operator {
  readonly #batches: Batch[] = [];
  #isOver = false;

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  push(batch: Batch): void {
    this.#batches.push(batch);
  }

  end(): void {
    this.#isOver = true;
  }

  next(): Batch | undefined {
    return this.#batches.shift() ?? (this.#isOver ? undefined : NOTHING_YET);
  }

  close(): void {
    this.#isOver = true;
  }
}

export interface AggregateRowsOptions extends SpillOptions {
  readonly argumentTypes: readonly DataType[];
  readonly isDistinct: boolean;
  readonly orderBy: readonly SortKey[];
  /** Otherwise all rows are of group 0, and no number is kept with them. */
  readonly isGrouped: boolean;
}

/** Rows with the numbers of their groups. */
export interface GroupedRows {
  /** Undefined: all are of group 0. */
  readonly groups: BatchGroups | undefined;
  readonly args: readonly Vector[];
  readonly rowCount: number;
}

export class AggregateRows {
  readonly #options: AggregateRowsOptions;
  readonly #pushed = new PushedRows();
  readonly #rows: Operator;
  /** The column of the first argument. */
  readonly #argumentStart: number;
  /** Above the number of every group so far. */
  #groupCount = 0;

  constructor(options: AggregateRowsOptions) {
    const { argumentTypes, isDistinct, isGrouped, level = 0, node, orderBy, run } = options;
    this.#options = options;
    const site = { run, node, level };
    const distinctTypes = isGrouped ? [INT, ...argumentTypes] : argumentTypes;
    const types = [...distinctTypes, ...orderBy.map(({ type }) => type)];
    this.#argumentStart = isGrouped ? 1 : 0;
    let rows: Operator = this.#pushed;
    if (orderBy.length > 0) {
      const keys = orderBy.map((key, i): SortKey => {
        return { ...key, evaluate: columnReader(distinctTypes.length + i) };
      });
      // Group by group, so that rows of one group are together when they are added.
      const byGroup = {
        evaluate: columnReader(0),
        type: INT,
        isDescending: false,
        nullsFirst: false,
      };
      rows = new Sort({
        ...site,
        input: rows,
        inputTypes: types,
        keys: isGrouped ? [byGroup, ...keys] : keys,
        rowsMax: Number.POSITIVE_INFINITY,
      });
    }
    if (isDistinct) {
      const on = distinctTypes.map((_, position) => columnReader(position));
      const ordered = orderBy.length > 0 ? types : undefined;
      rows = new Distinct(rows, { ...site, on, types: distinctTypes, ordered });
    }
    this.#rows = rows;
  }

  /** Whether rows that were handed in wait: their vectors must stay valid until then. */
  get isBusy(): boolean {
    return !this.#pushed.isEmpty;
  }

  /** Goes on with what waits. */
  step(): GroupedRows | undefined {
    return this.#grouped(this.#rows.next());
  }

  /**
   * Hands in rows of a batch. Returns such that can be added now.
   *
   * @param keys Values of ORDER BY.
   */
  pass({ args, groups, rowCount }: GroupedRows, keys: readonly Vector[]): GroupedRows | undefined {
    const columns = [...args, ...keys];
    if (this.#options.isGrouped) columns.unshift(this.#columnOf(groups, rowCount));
    this.#pushed.push({ rowCount, columns });
    return this.step();
  }

  /** What could not be added before all rows were there, a batch at a time; some may be empty. */
  *rest(): Generator<GroupedRows | undefined, void> {
    this.#pushed.end();
    for (let batch = this.#rows.next(); batch !== undefined; batch = this.#rows.next()) {
      yield this.#grouped(batch);
    }
  }

  close(): void {
    this.#rows.close();
  }

  #columnOf(groups: BatchGroups | undefined, length: number): Vector {
    const { groupCount, numbers } = defined(groups, "rows of several groups have numbers");
    this.#groupCount = Math.max(this.#groupCount, groupCount);
    // Rows that are sorted may wait, and these numbers are gone with the next grouping set.
    const kept = this.#options.orderBy.length > 0 ? numbers.slice(0, length) : numbers;
    const values = new Int32Array(kept.buffer, kept.byteOffset, length);
    return { kind: "i32", length, values, nulls: undefined };
  }

  #grouped(batch: Batch | undefined): GroupedRows | undefined {
    if (batch === undefined || batch.rowCount === 0) return undefined;
    const { columns, rowCount } = batch;
    const start = this.#argumentStart;
    const args = columns.slice(start, start + this.#options.argumentTypes.length);
    if (!this.#options.isGrouped) return { groups: undefined, args, rowCount };
    const numbers = numbersOf(defined(columns[0], "a row has its group"), rowCount);
    const groups = { numbers, groupCount: this.#groupCount, rowCounts: undefined };
    return { groups, args, rowCount };
  }
}

function numbersOf(vector: Vector, rowCount: number): Uint32Array {
  if (vector.kind === "i32") {
    const { buffer, byteOffset } = vector.values;
    return new Uint32Array(buffer, byteOffset, rowCount);
  }
  return Uint32Array.from({ length: rowCount }, (_, row) => Number(valueAt(vector, row)));
}
