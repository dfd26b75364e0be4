/**
 * Plan → operators, of what reads stored rows or those of a system view.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { type ColumnRange, type OrderedScan, SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import { compareValues, type DataType, type Row, type Value } from "../../../types/mod.ts";
import { hasSubquery } from "../../bind/walk.ts";
import type { PlanNode, PlannedRange, ScanNode } from "../../plan/plan.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { PortionSource, RowCounts } from "../operators/filter.ts";
import {
  KeyLookup,
  ownerOf,
  readRow,
  TableScan,
  type TableScanOptions,
} from "../operators/scan.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { ORDERED_SHARE_MAX, OrderedTableScan } from "../sort/ordered_table_scan.ts";
import { runtimeOf } from "./table_runtime.ts";

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

export function buildSystemView(
  node: Extract<PlanNode, { kind: "system" }>,
): (run: Run) => Operator {
  const { columns, positions, source } = node;
  const types = columns.map(({ type }) => type);
  return ({ principal }) => {
    const { isImpersonated, role, userId } = principal;
    const portions = source({ userId, role, isImpersonated });
    return new PortionSource(portions, { positions, types });
  };
}

/**
 * Rows of a batch when nobody above wants rows one by one. Its arrays stay in the second-level
 * cache, and what is done with it ends before others have waited for long.
 */
export const BULK_BATCH_ROWS: number = 2 * BATCH_ROWS_MAX;

/** How what a node yields is used. */
export interface Use {
  /** Whoever reads it is done with a batch before asking for the next one. */
  readonly isConsumed?: boolean;
  /** Of a side of a join that is read by keys: those of the operator that is being made. */
  readonly keys?: () => readonly Row[];
  /** Of those keys only the first column is known: rows are read that lie between them. */
  readonly isSpan?: boolean;
  readonly order?: WantedOrder | undefined;
}

/** In which order rows are read of a table, where the store has one. */
export interface WantedOrder {
  readonly columnId: number;
  readonly isDescending: boolean;
  /** Rows that are needed of the front; a run says it before the operator is made. */
  rowsWanted: number;
  /** Of the operator that was made last; undefined when its rows come in no order. */
  made: OrderedScan | undefined;
}

export function buildScan(
  node: ScanNode,
  { isConsumed = false, isSpan = false, keys, order }: Use,
): (run: Run) => Operator {
  const { isBulk, table, withTombstones } = node;
  const columnIds = node.columns.map(({ origin }) => {
    return defined(origin, "a scanned column is a stored one").columnId;
  });
  const keysOf = isSpan ? undefined : (keys ?? compileKeys(node));
  const bounds = node.ranges.map(compileRange);
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
    if (keysOf !== undefined) return shaped(new KeyLookup(options, keysOf(run)));
    if (order !== undefined) {
      order.made = openOrdered(options, order, bounds);
      if (order.made !== undefined) {
        return shaped(new OrderedTableScan(run, order.made, order.rowsWanted));
      }
    }
    const ranges = bounds.map(
      ({ columnId, min, max }): ColumnRange => ({
        columnId,
        min: min === undefined ? Number.NEGATIVE_INFINITY : numberFrom(min(run), "min"),
        max: max === undefined ? Number.POSITIVE_INFINITY : numberFrom(max(run), "max"),
      }),
    );
    if (isSpan) ranges.push(spanOf(table, keys?.() ?? []));
    const onEnd = (read: number, pruned: number): void =>
      run.profile?.scanned(node, { read, pruned });
    return shaped(new TableScan({ ...options, ranges, onEnd }));
  };
}

interface CompiledRange {
  readonly columnId: number;
  readonly min: ((run: Run) => Value) | undefined;
  readonly max: ((run: Run) => Value) | undefined;
}

function compileRange({ columnId, min, max }: PlannedRange): CompiledRange {
  return {
    columnId,
    min: min === undefined ? undefined : compileScalar(min),
    max: max === undefined ? undefined : compileScalar(max),
  };
}

/** Rows within the bounds of the column that orders them; undefined where they cannot be read so. */
function openOrdered(
  { columnIds, run, table, withTombstones }: TableScanOptions,
  { columnId, isDescending, rowsWanted }: WantedOrder,
  bounds: readonly CompiledRange[],
): OrderedScan | undefined {
  const hasStaged = run.transaction?.hasStaged(table.tableId) === true;
  // Rows that a transaction has staged are in no order.
  if (hasStaged || withTombstones) return undefined;
  const type = defined(
    table.columns.find((column) => column.columnId === columnId),
    "a table is read by a column of its own",
  ).type;
  let least: Value | undefined;
  let most: Value | undefined;
  for (const { columnId: boundId, max, min } of bounds) {
    if (boundId !== columnId) continue;
    const low = min?.(run);
    const high = max?.(run);
    // The condition is true for no row, and the filter above says so.
    if (low === null || high === null) return undefined;
    if (low !== undefined && (least === undefined || compareValues(type, low, least) > 0)) {
      least = low;
    }
    if (high !== undefined && (most === undefined || compareValues(type, high, most) < 0)) {
      most = high;
    }
  }
  const owner = ownerOf(run.principal, table);
  const where = { owner, upTo: run.snapshotSeq, columnIds, columnId, isDescending };
  const scan = run.store.scanOrdered(table.tableId, { ...where, min: least, max: most });
  if (scan === undefined || rowsWanted <= scan.rowCount * ORDERED_SHARE_MAX) return scan;
  scan.close();
  return undefined;
}

/** Between which values of the first key column keys lie. */
function spanOf({ primaryKey }: TableEntry, keys: readonly Row[]): ColumnRange {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const [value = null] of keys) {
    min = Math.min(min, numberFrom(value, "min"));
    max = Math.max(max, numberFrom(value, "max"));
  }
  return { columnId: defined(primaryKey[0], "a keyed side has a key"), min, max };
}

/** The keys of a lookup, each once; none with a NULL, which equals nothing. */
function compileKeys({ key, sought, table }: ScanNode): ((run: Run) => Iterable<Row>) | undefined {
  if (key !== undefined) {
    const parts = key.map((value) => compileScalar(value));
    return (run) => {
      const values = parts.map((part) => part(run));
      return values.includes(null) ? [] : [values];
    };
  }
  if (sought === undefined) return undefined;
  const { keyTypes } = runtimeOf(table);
  const alternatives = sought.map((parts) =>
    parts.map(({ constants, items }) => {
      const scalars = items.map((item) => compileScalar(item));
      return (run: Run): Value[] => [...scalars.map((scalar) => scalar(run)), ...constants];
    }),
  );
  return (run) => {
    const lists = alternatives.map((parts) =>
      parts.map((part, i) => distinct(part(run), keyTypes.slice(i, i + 1))),
    );
    return combinations(lists, keyTypes);
  };
}

/** The values of a list, each once and no NULL. */
function distinct(values: readonly Value[], types: readonly DataType[]): readonly Value[] {
  const found = new Map<string, Value>();
  for (const value of values) if (value !== null) found.set(keyTextOf(types, [value]), value);
  return [...found.values()];
}

/**
 * Every row that has one value of each list of an alternative at its position, each once. They are made
 * as they are asked for: short lists have many combinations, which would hold a turn.
 */
function* combinations(
  alternatives: readonly (readonly (readonly Value[])[])[],
  types: readonly DataType[],
): Generator<Row, void> {
  const isOne = alternatives.length === 1;
  const seen = new Set<string>();
  for (const lists of alternatives) {
    const count = lists.reduce((product, { length }) => product * length, 1);
    for (let number = 0; number < count; number += 1) {
      const row = rowOf(lists, number);
      if (!isOne) {
        const text = keyTextOf(types, row);
        if (seen.has(text)) continue;
        seen.add(text);
      }
      yield row;
    }
  }
}

/** The combination of a number; the last list turns fastest. */
function rowOf(lists: readonly (readonly Value[])[], number: number): Row {
  const row: Value[] = Array.from({ length: lists.length });
  let rest = number;
  for (let i = lists.length - 1; i >= 0; i -= 1) {
    const list = lists[i] ?? [];
    row[i] = list[rest % list.length] ?? null;
    rest = Math.floor(rest / list.length);
  }
  return row;
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
