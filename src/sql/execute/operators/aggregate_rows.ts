/**
 * Applies DISTINCT and ORDER BY in an aggregate call, by selecting and ordering the rows to be
 * aggregated.
 *
 * A call's rows, together with their group ids, pass through the same operators as the rows of
 * queries, and are spilled to disk in the same way:
 *
 *     rows ──► sort ──in order, at the end──► the first of equal rows ──► the aggregate
 */
import { defined } from "../../../base/assert.ts";
import { type Batch, type DataType, INT, type Vector, valueAt } from "../../../types/mod.ts";
import type { BatchGroups } from "../../functions/aggregate/aggregates.ts";
import { columnReader, type SpillOptions } from "../context/spilling.ts";
import { SortedRows } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { DistinctRows } from "./distinct.ts";

export interface AggregateRowsOptions extends SpillOptions {
  readonly argumentTypes: readonly DataType[];
  readonly isDistinct: boolean;
  readonly orderBy: readonly SortKey[];
  /**
   * Whether the aggregate has groups. If it does not, all rows belong to group 0, and no group id
   * is stored with a row.
   */
  readonly isGrouped: boolean;
}

/** Rows to be aggregated, each with the id of its group. */
export interface GroupedRows {
  /** The group of each row; undefined if all rows belong to group 0. */
  readonly groups: BatchGroups | undefined;
  readonly args: readonly Vector[];
  readonly rowCount: number;
}

export class AggregateRows {
  readonly #options: AggregateRowsOptions;
  readonly #sorted: SortedRows | undefined;
  readonly #distinct: DistinctRows | undefined;
  /** The position of the column with the first argument. */
  readonly #argumentStart: number;
  /** A number one greater than the largest group id so far. */
  #groupCount = 0;

  constructor(options: AggregateRowsOptions) {
    const { argumentTypes, isDistinct, isGrouped, level = 0, node, orderBy, context } = options;
    this.#options = options;
    this.#argumentStart = isGrouped ? 1 : 0;
    const distinctTypes = isGrouped ? [INT, ...argumentTypes] : argumentTypes;
    const types = [...distinctTypes, ...orderBy.map(({ type }) => type)];
    const site = { context, node, level };
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
   * Adds the rows of a batch. Returns the rows that can be aggregated immediately.
   *
   * @param keys The values of the call's ORDER BY.
   */
  pass({ args, groups, rowCount }: GroupedRows, keys: readonly Vector[]): GroupedRows | undefined {
    const columns = [...args, ...keys];
    if (this.#options.isGrouped) columns.unshift(this.#columnOf(groups, rowCount));
    const batch = { rowCount, columns };
    if (this.#sorted === undefined) return this.#grouped(this.#distinct?.firstsOf(batch) ?? batch);
    this.#sorted.add(batch);
    return undefined;
  }

  /**
   * Yields, one batch at a time, the rows that could not be aggregated until all rows had arrived.
   */
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
    const { groupCount, ids } = defined(groups, "aggregate operator: batch has no group ids");
    this.#groupCount = Math.max(this.#groupCount, groupCount);
    const values = new Int32Array(ids.buffer, ids.byteOffset, length);
    return { kind: "i32", length, values, nulls: undefined };
  }

  #grouped(batch: Batch): GroupedRows | undefined {
    if (batch.rowCount === 0) return undefined;
    const { columns, rowCount } = batch;
    const start = this.#argumentStart;
    const args = columns.slice(start, start + this.#options.argumentTypes.length);
    if (!this.#options.isGrouped) return { groups: undefined, args, rowCount };
    const ids = numbersOf(
      defined(columns[0], "aggregate operator: sorted rows have no group id column"),
      rowCount,
    );
    const groups = { ids, groupCount: this.#groupCount, rowCounts: undefined };
    return { groups, args, rowCount };
  }
}

/**
 * Returns sort keys that begin with the group, so that the rows of each group are aggregated
 * together.
 */
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
