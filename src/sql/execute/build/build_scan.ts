/** Builds the operators that read stored rows or the rows of a system view. */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { IndexEntry, TableEntry } from "../../../catalog/mod.ts";
import {
  type ColumnRange,
  type ColumnSpan,
  DELETED_COLUMN_ID,
  type KeySpans,
  type OrderedScan,
  SEQ_COLUMN_ID,
} from "../../../storage/mod.ts";
import {
  BIGINT,
  compareValues,
  type DataType,
  isNumberType,
  type Row,
  type Value,
} from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { hasSubquery } from "../../bind/walk.ts";
import { areListed } from "../../plan/access.ts";
import { wholeKeyIn } from "../../plan/index_access.ts";
import type { OrderedIndex } from "../../plan/ordered_input.ts";
import type { PlanNode, PlannedRange, ScanNode } from "../../plan/plan.ts";
import type { RuntimeFilter } from "../../plan/runtime_filter.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { PortionSource } from "../operators/filter.ts";
import {
  droppedMeanwhile,
  KeyLookup,
  ownerOf,
  readRow,
  TableScan,
  type TableScanOptions,
} from "../operators/scan.ts";
import { ORDERED_SHARE_MAX, OrderedTableScan } from "../sort/ordered_table_scan.ts";
import { attempted } from "./attempt.ts";
import { type BeginningSpan, compileBeginning } from "./beginnings.ts";
import {
  compileGuards,
  compileIndexes,
  compileSpans,
  openByKeys,
  openIndex,
  type SpanUse,
} from "./build_index_scan.ts";
import { compilePart, compileSought, distinct, type LookedUp } from "./key_parts.ts";
import { runtimeOf } from "./table_runtime.ts";

/**
 * The result of a run that cannot read the rows directly. In that case, the plan's operators must
 * run.
 */
export const NOT_READ: unique symbol = Symbol("not read");

/** Reads the few rows of a query without operators, as rows of its output columns. */
export type RowRead = (context: ExecutionContext) => readonly Row[] | typeof NOT_READ;

/** The maximum number of versions with the same index key that are visited without operators. */
const VERSIONS_MAX = 64;

/**
 * Compiles a plan that only reads columns of the rows with a single key. This is the most frequent
 * kind of read, and it needs no operators. Returns undefined for any other plan.
 */
export function buildRowRead(root: PlanNode): RowRead | undefined {
  if (root.kind !== "project") return undefined;
  const found = keyBelow(root.input);
  const columnIds = root.expressions.flatMap((expression) =>
    expression.kind === "column" ? (expression.column.origin?.columnId ?? []) : [],
  );
  if (found === undefined || columnIds.length < root.expressions.length) return undefined;
  const { index, key, past, table } = found;
  if (key.some(hasSubquery)) return undefined;
  const parts = key.map((value) => compileScalar(value));
  return (context) => {
    const compute = (): Value[] => parts.map((part) => part(context));
    const values = index === undefined ? compute() : attempted(compute);
    if (values === undefined) return NOT_READ;
    if (values.includes(null)) return [];
    if (index === undefined) {
      const row = readRow(context, table, { key: values, columnIds, past });
      return row === undefined ? [] : [row];
    }
    return readByIndex(context, table, { indexId: index.indexId, key: values, columnIds });
  };
}

/**
 * Returns the primary key or index key whose values the conditions of a single-table plan
 * determine completely; undefined if there is none.
 */
function keyBelow(input: PlanNode):
  | (Pick<ScanNode, "past" | "table"> & {
      readonly key: readonly BoundExpression[];
      readonly index: IndexEntry | undefined;
    })
  | undefined {
  if (input.kind === "scan") {
    const { key, past, table } = input;
    return key === undefined ? undefined : { table, key, past, index: undefined };
  }
  if (input.kind !== "filter" || input.input.kind !== "scan") return undefined;
  const { indexes: [access] = [], table, withTombstones } = input.input;
  if (access === undefined || withTombstones) return undefined;
  const key = wholeKeyIn(table, input.condition, access);
  return key === undefined ? undefined : { table, key, index: access.index };
}

/**
 * Reads the rows with a given index key if there are only a few such rows. The index does not
 * contain rows staged by a transaction.
 */
function readByIndex(
  context: ExecutionContext,
  table: TableEntry,
  read: { indexId: number; key: Row; columnIds: readonly number[] },
): readonly Row[] | typeof NOT_READ {
  if (context.staged?.hasStaged(table.tableId) === true) return NOT_READ;
  if (read.columnIds.includes(DELETED_COLUMN_ID)) return NOT_READ;
  const owner = ownerOf(context.principal, table);
  try {
    const rows = context.store.lookupIndex(table.tableId, {
      ...read,
      owner,
      upTo: context.snapshotSeq,
      versionsMax: VERSIONS_MAX,
    });
    if (rows === undefined) return NOT_READ;
    context.checkResultRows(rows.length);
    return rows;
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
}

export function buildSystemView(node: Extract<PlanNode, { kind: "system" }>): OperatorFactory {
  const { columns, positions, source } = node;
  const types = columns.map(({ type }) => type);
  return (context) => {
    const { isImpersonated, role, tokenScope, userId } = context.principal;
    const portions = source({ userId, role, isImpersonated, tokenScope, positions });
    return new PortionSource(portions, { context, positions, types });
  };
}

/**
 * The number of rows in a batch if all operators above the scan consume whole batches. The arrays
 * of a batch of this size fit into the second-level cache, and processing the batch does not block
 * the event loop for long.
 */
const BULK_BATCH_ROWS: number = 2 * BATCH_ROWS_MAX;

/** How the consumer of a scan uses the rows. */
export interface ScanUse {
  /** Whether the consumer finishes a batch before it requests the next batch. */
  readonly isConsumed?: boolean;
  /** Whether the consumer drops rows because of their values. */
  readonly isFiltered?: boolean;
  /** Whether rows must arrive in table order, which an index would not preserve. */
  readonly skipsIndexes?: boolean;
}

export function buildScan(node: ScanNode, use: ScanUse): OperatorFactory {
  const optionsOf = scanOptions(node, use);
  const keysOf = compileKeys(node);
  if (keysOf === undefined) return buildTableScan(node, use);
  if (node.sought === undefined) {
    return (context) => new KeyLookup(optionsOf(context), keysOf(context).keys);
  }
  // The scan is compiled on demand, because most runs never use it.
  let scan: OperatorFactory | undefined;
  return (context) => {
    const sought = attempted(() => keysOf(context));
    if (sought !== undefined && areWorthLookingUp(node, sought.count, context)) {
      return new KeyLookup(optionsOf(context), sought.keys);
    }
    scan ??= buildTableScan(node, use);
    return scan(context);
  };
}

/**
 * Whether a run looks up the listed keys instead of scanning. The plan cannot decide this, because
 * it knows neither how many elements the arrays have nor how many rows of the table belong to the
 * caller.
 */
function areWorthLookingUp(
  { sought = [], table }: ScanNode,
  count: number,
  context: ExecutionContext,
): boolean {
  const isPlanned = table.kind === "shared" && !sought.flat().some(({ lists }) => lists.length > 0);
  if (isPlanned || count <= FEW_KEYS) return true;
  return areListed(
    count,
    context.store.liveRowCount(table.tableId, ownerOf(context.principal, table)),
  );
}

/** The maximum number of keys that are looked up without first counting the rows of the table. */
const FEW_KEYS = 32;

function buildTableScan(node: ScanNode, use: ScanUse): OperatorFactory {
  const optionsOf = scanOptions(node, use);
  const { table } = node;
  const { ranges, spanRanges } = compileRanges(node);
  const [firstKeyId] = table.primaryKey;
  const prefixOf = compilePrefix(node);
  const hasKeySpan = spanRanges.some(({ columnId }) => columnId === firstKeyId);
  const keySpans = (context: ExecutionContext): KeySpans | undefined => {
    const listed = prefixOf && attempted(() => prefixOf(context));
    if (listed !== undefined) return listed;
    if (firstKeyId === undefined || !hasKeySpan) return undefined;
    const type = typeOfColumn(table, firstKeyId);
    const span = attempted(() => spanOfRanges(spanRanges, { columnId: firstKeyId, type, context }));
    return span === undefined ? undefined : { columnId: firstKeyId, spans: [span] };
  };
  const indexed = use.skipsIndexes === true ? undefined : compileIndexes(node);
  return (context) => {
    const options = { ...optionsOf(context), onEnd: prunedIn(node, context) };
    const source = indexed?.(options);
    if (source !== undefined) return new TableScan({ ...options, source });
    const spans = keySpans(context);
    const where = {
      ranges: [...rangesOf(ranges, context), ...around(table, spans)],
      keySpans: spans,
    };
    return new TableScan({ ...options, ...where });
  };
}

/** Compiles a test for whether a run reads a table through an index. */
export function buildIndexQuestion(node: ScanNode): (context: ExecutionContext) => boolean {
  const optionsOf = scanOptions(node, {});
  const indexed = compileIndexes(node);
  return (context) => {
    const source = indexed?.(optionsOf(context));
    source?.close();
    return source !== undefined;
  };
}

/** How the rows of one side of a join are found by their keys. */
export interface KeyedUse extends ScanUse {
  /**
   * The columns that the keys contain. If these include only the first column of the primary key,
   * all rows between the lowest and the highest key are read.
   */
  readonly by: RuntimeFilter["by"];
}

/**
 * Builds a scan that reads only rows that may have one of the given keys. A run returns undefined
 * if reading all rows is faster.
 */
export function buildKeyedScan(
  node: ScanNode,
  { by, ...use }: KeyedUse,
): (context: ExecutionContext, keys: readonly Row[]) => Operator | undefined {
  const optionsOf = scanOptions(node, use);
  if (by === "key") return (context, keys) => new KeyLookup(optionsOf(context), keys);
  const { table } = node;
  if (by !== "first column") {
    return (context, keys) => {
      const options = { ...optionsOf(context), onEnd: prunedIn(node, context) };
      const source = openByKeys(options, by, keys);
      return source === undefined ? undefined : new TableScan({ ...options, source });
    };
  }
  const { ranges } = compileRanges(node);
  return (context, keys) => {
    const where = {
      ranges: [...rangesOf(ranges, context), spanOf(table, keys)],
      keySpans: spansOfKeys(table, keys),
    };
    const onEnd = prunedIn(node, context);
    return new TableScan({ ...optionsOf(context), ...where, onEnd });
  };
}

/** The order in which the rows of a table are to be read. */
export interface WantedOrder {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/** Reads the first rows of a scan in an order that the store provides. */
export interface OrderedRows {
  readonly scan: OrderedTableScan;
  readonly rows: Operator;
}

/**
 * Builds a scan sorted by a column. Each run passes the number of rows that it needs from the
 * front. A run returns undefined if the rows cannot be read in sorted order, or if sorting all
 * rows is faster.
 */
export function buildOrderedScan(
  node: ScanNode,
  order: WantedOrder,
): (context: ExecutionContext, rowsWanted: number) => OrderedRows | undefined {
  const optionsOf = scanOptions(node, {});
  const { spanRanges } = compileRanges(node);
  return (context, rowsWanted) => {
    const scan = openOrdered(optionsOf(context), { ...order, rowsWanted }, spanRanges);
    if (scan === undefined) return undefined;
    const ordered = new OrderedTableScan(context, scan, rowsWanted);
    return { scan: ordered, rows: ordered };
  };
}

/** Builds a scan sorted by an index, as {@linkcode buildOrderedScan} does for a column. */
export function buildIndexOrder(
  node: ScanNode,
  { access, isDescending }: OrderedIndex,
  use: SpanUse = {},
): (context: ExecutionContext, rowsWanted: number) => OrderedRows | undefined {
  const optionsOf = scanOptions(node, {});
  const spansOf = compileSpans(node.table, access, use);
  const mayUse = compileGuards(access);
  return (context, rowsWanted) => {
    if (!mayUse(context)) return undefined;
    const options = optionsOf(context);
    // The staged rows of a transaction are not sorted, so the scan cannot return all rows in
    // order.
    if (context.staged?.hasStaged(node.table.tableId) === true) return undefined;
    const spans = attempted(() => spansOf(context));
    if (spans === undefined) return undefined;
    const scan = openIndex(options, { index: access.index, isDescending, spans });
    if (scan === undefined) return undefined;
    if (rowsWanted > scan.rowCount * ORDERED_SHARE_MAX) {
      scan.close();
      return undefined;
    }
    context.noteReadInOrder();
    const ordered = new OrderedTableScan(context, scan, rowsWanted);
    return { scan: ordered, rows: ordered };
  };
}

/** Returns the scan options that apply regardless of how the table is read. */
function scanOptions(
  { columns, isBulk, isDivided = false, past, table, withTombstones }: ScanNode,
  { isConsumed = false, isFiltered = false }: ScanUse,
): (context: ExecutionContext) => TableScanOptions {
  const columnIds = columns.map(({ origin }) => {
    return defined(origin, "table scan: scanned column is not a stored column").columnId;
  });
  const batchRows = isBulk ? BULK_BATCH_ROWS : BATCH_ROWS_MAX;
  return (context) => ({
    context,
    table,
    columnIds,
    ranges: [],
    withTombstones: withTombstones && context.mayReadHistory(table),
    past,
    batchRows,
    reusesMemory: isConsumed,
    defersNumbers: isFiltered,
    share: isDivided
      ? defined(context.division, "table scan: divided scan was given no share of the row groups")
          .share
      : undefined,
  });
}

/**
 * Compiles the numeric ranges, and the ranges in key order. The ranges in key order also cover
 * strings.
 */
function compileRanges({ ranges, textRanges = [] }: ScanNode): {
  readonly ranges: readonly CompiledRange[];
  readonly spanRanges: readonly CompiledRange[];
} {
  const compiled = ranges.map(compileRange);
  return { ranges: compiled, spanRanges: [...compiled, ...textRanges.map(compileRange)] };
}

function rangesOf(ranges: readonly CompiledRange[], context: ExecutionContext): ColumnRange[] {
  return ranges.map(({ columnId, max, min }): ColumnRange => {
    const least = min && attempted(() => min(context));
    const most = max && attempted(() => max(context));
    return {
      columnId,
      min: least === undefined ? Number.NEGATIVE_INFINITY : numberFrom(least, "min"),
      max: most === undefined ? Number.POSITIVE_INFINITY : numberFrom(most, "max"),
    };
  });
}

function prunedIn(
  node: ScanNode,
  { profile }: ExecutionContext,
): (read: number, pruned: number) => void {
  return (read, pruned) => profile?.scanned(node, { read, pruned });
}

/**
 * Opens a scan of the rows within the bounds on the ordering column; undefined if this is
 * impossible.
 */
function openOrdered(
  { columnIds, context, table, withTombstones }: TableScanOptions,
  { columnId, isDescending, rowsWanted }: WantedOrder & { rowsWanted: number },
  spanRanges: readonly CompiledRange[],
): OrderedScan | undefined {
  const hasStaged = context.staged?.hasStaged(table.tableId) === true;
  // The staged rows of a transaction are not sorted, so the scan cannot return all rows in order.
  if (hasStaged || withTombstones) return undefined;
  const type = typeOfColumn(table, columnId);
  const span = attempted(() => spanOfRanges(spanRanges, { columnId, type, context }));
  if (span === undefined) return undefined;
  const owner = ownerOf(context.principal, table);
  const where = { owner, upTo: context.snapshotSeq, columnIds, columnId, isDescending };
  let scan: OrderedScan | undefined;
  try {
    scan = context.store.scanOrdered(table.tableId, { ...where, ...span });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
  if (scan === undefined) return undefined;
  if (rowsWanted <= scan.rowCount * ORDERED_SHARE_MAX) {
    context.noteReadInOrder();
    return scan;
  }
  scan.close();
  return undefined;
}

/** Returns the values of the first key column that occur in the given keys. */
function spansOfKeys({ primaryKey }: TableEntry, keys: readonly Row[]): KeySpans {
  const columnId = defined(primaryKey[0], "key lookup: table has no primary key");
  return { columnId, spans: keys.map(([value]) => ({ min: value, max: value })) };
}

function typeOfColumn({ columns }: TableEntry, columnId: number): DataType {
  if (columnId === SEQ_COLUMN_ID) return BIGINT;
  const column = columns.find((each) => each.columnId === columnId);
  return defined(column, "table scan: column is missing from the table definition").type;
}

/**
 * Returns the smallest range that contains all of the given key spans, so that row groups outside
 * it are not read.
 */
function around(table: TableEntry, keySpans: KeySpans | undefined): ColumnRange[] {
  if (keySpans === undefined || keySpans.spans.length < 2) return [];
  if (!isNumberType(typeOfColumn(table, keySpans.columnId))) return [];
  return [
    spanOf(
      table,
      keySpans.spans.map(({ min = null }) => [min]),
    ),
  ];
}

/** Returns the range that covers the first-column values of all given keys. */
function spanOf({ primaryKey }: TableEntry, keys: readonly Row[]): ColumnRange {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const [value = null] of keys) {
    min = Math.min(min, numberFrom(value, "min"));
    max = Math.max(max, numberFrom(value, "max"));
  }
  return {
    columnId: defined(primaryKey[0], "key lookup: table has no primary key"),
    min,
    max,
  };
}

/**
 * Returns the distinct keys to look up. Keys that contain NULL are omitted, because NULL equals
 * nothing.
 */
function compileKeys({
  key,
  sought,
  table,
}: ScanNode): ((context: ExecutionContext) => LookedUp) | undefined {
  if (key !== undefined) {
    const parts = key.map((value) => compileScalar(value));
    return (context) => {
      const values = parts.map((part) => part(context));
      return values.includes(null) ? { keys: [], count: 0 } : { keys: [values], count: 1 };
    };
  }
  if (sought === undefined) return undefined;
  return compileSought(sought, runtimeOf(table).keyTypes);
}

/**
 * Returns the spans of rows with a listed value in the first key column; undefined if no values
 * are listed.
 */
function compilePrefix({
  prefix,
  table,
}: ScanNode): ((context: ExecutionContext) => KeySpans) | undefined {
  const [columnId] = table.primaryKey;
  if (prefix === undefined || columnId === undefined) return undefined;
  const parts = prefix.map(compilePart);
  const types = [typeOfColumn(table, columnId)];
  return (context) => {
    const values = distinct(
      parts.flatMap((part) => part(context)),
      types,
    );
    return { columnId, spans: values.map((value) => ({ min: value, max: value })) };
  };
}

/**
 * Returns a bound as a number. A bound beyond 2^53 is rounded outwards, so that the range never
 * becomes too narrow.
 */
function numberFrom(value: Value, side: "min" | "max"): number {
  // NaN sorts above all numbers, and a zone map that contains NaN has infinity as its upper bound.
  if (Number.isNaN(value)) return Number.POSITIVE_INFINITY;
  if (typeof value === "number") return value;
  if (typeof value === "bigint") {
    const nearest = Number(value);
    return side === "min"
      ? nearest - Math.abs(nearest) * 1e-15
      : nearest + Math.abs(nearest) * 1e-15;
  }
  // A NULL bound admits no row, which the filter above the scan enforces.
  return side === "min" ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

interface CompiledRange {
  readonly columnId: number;
  readonly min: ((context: ExecutionContext) => Value) | undefined;
  readonly max: ((context: ExecutionContext) => Value) | undefined;
  readonly beginning: BeginningSpan | undefined;
}

function compileRange(range: PlannedRange): CompiledRange {
  const { columnId, max, min } = range;
  const compiled = (side: typeof min): ((context: ExecutionContext) => Value) | undefined =>
    side === undefined ? undefined : compileScalar(side);
  return { columnId, min: compiled(min), max: compiled(max), beginning: compileBeginning(range) };
}

/**
 * Returns a span that contains all values satisfying every range of a column; undefined if a range
 * has a NULL bound, which no value satisfies.
 */
function spanOfRanges(
  ranges: readonly CompiledRange[],
  { columnId, context, type }: { columnId: number; type: DataType; context: ExecutionContext },
): ColumnSpan | undefined {
  let least: Value | undefined;
  let most: Value | undefined;
  for (const range of ranges) {
    if (range.columnId !== columnId) continue;
    const min = range.min?.(context);
    const max = range.max?.(context);
    const begun = range.beginning === undefined ? {} : range.beginning(context);
    if (min === null || max === null || begun === undefined) return undefined;
    for (const span of [{ min, max }, begun]) {
      if (isAbove(type, span.min, least)) least = span.min;
      if (span.max !== undefined && (most === undefined || isAbove(type, most, span.max))) {
        most = span.max;
      }
    }
  }
  return { min: least, max: most };
}

/**
 * Whether a lower bound is higher than another lower bound. An absent bound is lower than every
 * other bound.
 */
function isAbove(type: DataType, bound: Value | undefined, other: Value | undefined): boolean {
  if (bound === undefined) return false;
  return other === undefined || compareValues(type, bound, other) > 0;
}
