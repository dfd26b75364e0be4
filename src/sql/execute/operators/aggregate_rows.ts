/**
 * Which rows an aggregate sees, and in which order, where that is not all of them as they come:
 * DISTINCT and ORDER BY of a call.
 *
 * The rows of a call, with the numbers of their groups, pass what does the same for queries, and so
 * go to disk like theirs when they are too many:
 *
 *     rows ──► sort ──in order, at the end──► first ones of equal rows ──► the aggregate
 */
import { defined } from "../../../base/assert.ts";
import { type Batch, type DataType, INT, type Vector, valueAt } from "../../../types/mod.ts";
import type { BatchGroups } from "../../functions/aggregate/aggregates.ts";
import { columnReader, type SpillOptions } from "../run/spilling.ts";
import { SortedRows } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { DistinctRows } from "./distinct.ts";

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
  readonly #sorted: SortedRows | undefined;
  readonly #distinct: DistinctRows | undefined;
  /** The column of the first argument. */
  readonly #argumentStart: number;
  /** Above the number of every group so far. */
  #groupCount = 0;

  constructor(options: AggregateRowsOptions) {
    const { argumentTypes, isDistinct, isGrouped, level = 0, node, orderBy, run } = options;
    this.#options = options;
    this.#argumentStart = isGrouped ? 1 : 0;
    const distinctTypes = isGrouped ? [INT, ...argumentTypes] : argumentTypes;
    const types = [...distinctTypes, ...orderBy.map(({ type }) => type)];
    const site = { run, node, level };
    if (orderBy.length > 0) {
      const keys = sortKeys(orderBy, { keyStart: distinctTypes.length, isGrouped });
      const rowsMax = Number.POSITIVE_INFINITY;
      this.#sorted = new SortedRows({ ...site, inputTypes: types, keys, rowsMax });
    }
    if (isDistinct) {
      const on = distinctTypes.map((_, position) => columnReader(position));
      const ordered = orderBy.length > 0 ? types : undefined;
      this.#distinct = new DistinctRows({ ...site, on, types: distinctTypes, ordered });
    }
  }

  /**
   * Hands in rows of a batch. Returns such that can be added now.
   *
   * @param keys Values of ORDER BY.
   */
  pass({ args, groups, rowCount }: GroupedRows, keys: readonly Vector[]): GroupedRows | undefined {
    const columns = [...args, ...keys];
    if (this.#options.isGrouped) columns.unshift(this.#columnOf(groups, rowCount));
    const batch = { rowCount, columns };
    if (this.#sorted === undefined) return this.#grouped(this.#distinct?.firstsOf(batch) ?? batch);
    this.#sorted.add(batch);
    return undefined;
  }

  /** Gives the rows that could not be added before all were there, a batch at a time. */
  *rest(): Generator<GroupedRows, void> {
    for (const batch of this.#restBatches()) {
      const rows = this.#grouped(batch);
      if (rows !== undefined) yield rows;
    }
  }

  close(): void {
    this.#sorted?.close();
    this.#distinct?.close();
  }

  *#restBatches(): Generator<Batch, void> {
    const sorted = this.#sorted;
    const distinct = this.#distinct;
    for (let batch = sorted?.next(); batch !== undefined; batch = sorted?.next()) {
      yield distinct?.firstsOf(batch) ?? batch;
    }
    for (let batch = distinct?.next(); batch !== undefined; batch = distinct?.next()) yield batch;
  }

  #columnOf(groups: BatchGroups | undefined, length: number): Vector {
    const { groupCount, numbers } = defined(groups, "rows of several groups have numbers");
    this.#groupCount = Math.max(this.#groupCount, groupCount);
    const values = new Int32Array(numbers.buffer, numbers.byteOffset, length);
    return { kind: "i32", length, values, nulls: undefined };
  }

  #grouped(batch: Batch): GroupedRows | undefined {
    if (batch.rowCount === 0) return undefined;
    const { columns, rowCount } = batch;
    const start = this.#argumentStart;
    const args = columns.slice(start, start + this.#options.argumentTypes.length);
    if (!this.#options.isGrouped) return { groups: undefined, args, rowCount };
    const numbers = numbersOf(defined(columns[0], "a row has its group"), rowCount);
    const groups = { numbers, groupCount: this.#groupCount, rowCounts: undefined };
    return { groups, args, rowCount };
  }
}

/** Group by group, so that rows of one group are together when they are added. */
function sortKeys(
  orderBy: readonly SortKey[],
  { isGrouped, keyStart }: { keyStart: number; isGrouped: boolean },
): SortKey[] {
  const keys = orderBy.map((key, i): SortKey => ({ ...key, evaluate: columnReader(keyStart + i) }));
  if (!isGrouped) return keys;
  return [
    { evaluate: columnReader(0), type: INT, isDescending: false, nullsFirst: false },
    ...keys,
  ];
}

function numbersOf(vector: Vector, rowCount: number): Uint32Array {
  if (vector.kind === "i32") {
    const { buffer, byteOffset } = vector.values;
    return new Uint32Array(buffer, byteOffset, rowCount);
  }
  return Uint32Array.from({ length: rowCount }, (_, row) => Number(valueAt(vector, row)));
}
