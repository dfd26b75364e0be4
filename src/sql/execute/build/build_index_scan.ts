/**
 * Opens scans of tables through their secondary indexes.
 *
 *     the plan names some indexes ──► ranges of keys in each ──► the index with the fewest rows
 *                                                                 └──too many: a scan of the table
 *
 * The number of rows in a range is known before any of them is read, so the choice is made in each
 * run. If a value cannot be computed, no index is used: the condition above the scan itself fails
 * once a row needs the value.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type IndexEntry, indexPartsOf, type TableEntry } from "../../../catalog/mod.ts";
import {
  DELETED_COLUMN_ID,
  type IndexBound,
  type IndexSpan,
  type OrderedScan,
  type Scan,
  type ScanBatch,
} from "../../../storage/mod.ts";
import { type Comparator, comparatorFor, type DataType, type Row } from "../../../types/mod.ts";
import { depthOf } from "../../plan/index_access.ts";
import type { IndexAccess, IndexEdge, ScanNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { droppedMeanwhile, ownerOf, scannedIds, type TableScanOptions } from "../operators/scan.ts";
import { attempted } from "./attempt.ts";
import { compileBeginning } from "./beginnings.ts";
import { compileSought } from "./key_parts.ts";

/** The number of rows that a scan reads in the time in which an index yields one row. */
const ROWS_PER_ROW = 64;

/** Up to this number of rows, an index is used without counting the rows in the table. */
const FEW_ROWS = 256;

/** Returns the ranges of keys to read, in ascending order and without overlaps. */
type SpansOf = (context: ExecutionContext) => readonly IndexSpan[];

/**
 * Compiles the choice of an index.
 *
 * @returns A scan of the rows in the ranges of the index, or undefined to scan the table. The
 * result is undefined altogether if the plan names no index.
 */
export function compileIndexes({
  indexes = [],
  isDivided = false,
  table,
  withTombstones,
}: ScanNode): ((options: TableScanOptions) => Scan | undefined) | undefined {
  // The parts of a divided query share the row groups of the table.
  if (indexes.length === 0 || isDivided || withTombstones) return undefined;
  const choices = indexes.map((access) => {
    const spansOf = compileSpans(table, access);
    return { index: access.index, spansOf, mayUse: compileGuards(access) };
  });
  return (options) => {
    let best: OrderedScan | undefined;
    for (const { index, mayUse, spansOf } of choices) {
      if (!mayUse(options.context)) continue;
      const spans = attempted(() => spansOf(options.context));
      const scan = spans && openIndex(options, { index, spans, isDescending: false });
      if (scan === undefined) continue;
      const [kept, other] =
        (best?.rowCount ?? Infinity) > scan.rowCount ? [scan, best] : [best, scan];
      best = kept;
      other?.close();
      if (best === undefined || best.rowCount <= 1) break;
    }
    if (best === undefined) return undefined;
    if (isWorthwhile(options, best.rowCount)) return new IndexRows(best);
    best.close();
    return undefined;
  };
}

/** Whether reading this many rows through an index takes less time than reading all rows. */
function isWorthwhile({ context, table }: TableScanOptions, rowCount: number): boolean {
  if (rowCount <= FEW_ROWS) return true;
  const all = context.store.liveRowCount(table.tableId, ownerOf(context.principal, table));
  return rowCount * ROWS_PER_ROW < all;
}

interface IndexRead {
  readonly index: IndexEntry;
  readonly spans: readonly IndexSpan[];
  readonly isDescending: boolean;
}

/** Opens a scan of an index. Returns undefined if the index cannot be read. */
export function openIndex(
  options: Pick<TableScanOptions, "columnIds" | "context" | "table">,
  { index, isDescending, spans }: IndexRead,
): OrderedScan | undefined {
  const { context, table } = options;
  // An index does not store whether a row is deleted, so it cannot supply this column.
  if (options.columnIds.includes(DELETED_COLUMN_ID)) return undefined;
  try {
    return context.store.scanIndex(table.tableId, {
      indexId: index.indexId,
      owner: ownerOf(context.principal, table),
      upTo: context.snapshotSeq,
      columnIds: scannedIds(options),
      spans,
      isDescending,
    });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
}

/** Describes how the consumer uses ranges of keys. */
export interface SpanUse {
  /** Whether to skip rows in which the column after those with listed values is NULL. */
  readonly skipsNull?: boolean;
}

/** Compiles the test that decides whether a run may use an index. */
export function compileGuards({ guards }: IndexAccess): (context: ExecutionContext) => boolean {
  if (guards.length === 0) return () => true;
  const tests = guards.map(compileScalar);
  return (context) => tests.every((test) => attempted(() => test(context)) === true);
}

/** Compiles the ranges of keys that an access allows. */
export function compileSpans(table: TableEntry, access: IndexAccess, use: SpanUse = {}): SpansOf {
  const types = typesOf(table, access.index);
  const depth = depthOf(access);
  const skipsNull = use.skipsNull === true || (access.endsAtNull && depth === 0);
  const keyTypes = types.slice(0, depth);
  const rest = types.slice(depth);
  const keysOf = compileSought(access.keys, keyTypes);
  const boundsOf = compileBounds(access, rest);
  const comparators = keyTypes.map(comparatorFor);
  return (context) => {
    const bounds = boundsOf(context);
    if (bounds === undefined) return [];
    const keys = [...keysOf(context).keys];
    if (keys.length > 1) keys.sort((left, right) => compareRows(comparators, left, right));
    const isBounded = skipsNull || bounds.min !== undefined || bounds.max !== undefined;
    return keys.map((key) => spanWithin(key, bounds, isBounded && rest.length > 0));
  };
}

/**
 * Opens a scan of the rows whose keys begin with one of the given lists of values. The lists are
 * distinct and contain no NULL. Returns undefined if reading all rows takes less time.
 */
export function openByKeys(
  options: TableScanOptions,
  index: IndexEntry,
  keys: readonly Row[],
): Scan | undefined {
  const comparators = typesOf(options.table, index).map(comparatorFor);
  const spans = keys
    .toSorted((left, right) => compareRows(comparators, left, right))
    .map((key) => spanWithin(key, NO_BOUNDS, false));
  const scan = openIndex(options, { index, spans, isDescending: false });
  if (scan === undefined) return undefined;
  if (isWorthwhile(options, scan.rowCount)) return new IndexRows(scan);
  scan.close();
  return undefined;
}

/** Returns the types of the columns of an index. */
export function typesOf(table: TableEntry, index: IndexEntry): readonly DataType[] {
  return indexPartsOf(table, index).map(({ type }) => type);
}

/** Compares keys in the order of an index, with NULL last. */
function compareRows(comparators: readonly Comparator[], left: Row, right: Row): number {
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const [one = null, other = null] = [left[at], right[at]];
    const order =
      one === null || other === null
        ? Number(one === null) - Number(other === null)
        : (comparators[at]?.(one, other) ?? 0);
    if (order !== 0) return order;
  }
  return 0;
}

interface TightestBounds {
  readonly min: IndexBound | undefined;
  readonly max: IndexBound | undefined;
}

const NO_BOUNDS: TightestBounds = { min: undefined, max: undefined };

/**
 * Returns the range of keys that begin with some values and satisfy the bounds of the columns that
 * follow. NULL sorts after all values and satisfies no bound.
 */
function spanWithin(key: Row, { max, min }: TightestBounds, skipsNull: boolean): IndexSpan {
  const whole: IndexBound = { values: key, isInclusive: true };
  const beforeNull: IndexBound = { values: [...key, null], isInclusive: false };
  const last = skipsNull ? beforeNull : whole;
  return {
    min: min === undefined ? boundFrom(whole) : { ...min, values: [...key, ...min.values] },
    max: max === undefined ? boundFrom(last) : { ...max, values: [...key, ...max.values] },
  };
}

/** Without values, there is no bound. */
function boundFrom(bound: IndexBound): IndexBound | undefined {
  return bound.values.length === 0 ? undefined : bound;
}

/**
 * Compiles the tightest of several bounds. At run time, the result is undefined if no value
 * satisfies them all.
 */
function compileBounds(
  { beginnings, edges }: IndexAccess,
  types: readonly DataType[],
): (context: ExecutionContext) => TightestBounds | undefined {
  if (edges.length + beginnings.length === 0) return () => NO_BOUNDS;
  const comparators = types.map(comparatorFor);
  const values = edges.map((edge) => ({ edge, parts: edge.values.map(compileScalar) }));
  const spansOf = beginnings.flatMap((each) => compileBeginning(each) ?? []);
  return (context) => {
    const all: (IndexBound & Pick<IndexEdge, "side">)[] = values.map(({ edge, parts }) => {
      const { isInclusive, side } = edge;
      return { side, isInclusive, values: parts.map((part) => part(context)) };
    });
    for (const spanOf of spansOf) {
      const span = spanOf(context);
      if (span === undefined) return undefined;
      const { max, min } = span;
      if (min !== undefined) all.push({ side: "min", isInclusive: true, values: [min] });
      if (max !== undefined) all.push({ side: "max", isInclusive: true, values: [max] });
    }
    // `(a, b) > (1, NULL)` may still be true for a different value of a.
    if (all.some((bound) => bound.values[0] === null)) return undefined;
    const [min, max] = (["min", "max"] as const).map((side) =>
      all
        .filter((bound) => bound.side === side)
        .map(withoutNull)
        .reduce<IndexBound | undefined>((tightest, bound) => {
          if (tightest === undefined) return bound;
          return isTighter(bound, tightest, { side, comparators }) ? bound : tightest;
        }, undefined),
    );
    return { min, max };
  };
}

/** Shortens a bound to the values before the first NULL, which widens it. */
function withoutNull({ isInclusive, values }: IndexBound): IndexBound {
  const at = values.indexOf(null);
  return at === -1 ? { isInclusive, values } : { isInclusive: true, values: values.slice(0, at) };
}

function isTighter(
  one: IndexBound,
  other: IndexBound,
  { comparators, side }: { comparators: readonly Comparator[]; side: IndexEdge["side"] },
): boolean {
  const order = compareRows(comparators, one.values, other.values);
  if (order !== 0) return side === "min" ? order > 0 : order < 0;
  if (one.values.length === other.values.length) return !one.isInclusive;
  const isShorter = one.values.length < other.values.length;
  // An exclusive lower bound excludes all keys that begin with its values.
  return isShorter ? !one.isInclusive : other.isInclusive;
}

/** Presents the rows of an index as a table scan. */
class IndexRows implements Scan {
  readonly groupsRead = 0;
  readonly groupsPruned = 0;
  readonly #scan: OrderedScan;
  /** The first batches are short, because the reader may need only a few rows. */
  #batchRows = 64;

  constructor(scan: OrderedScan) {
    this.#scan = scan;
  }

  next(): ScanBatch | undefined {
    const batch = this.#scan.next(this.#batchRows);
    this.#batchRows = Math.min(2 * this.#batchRows, BATCH_ROWS_MAX);
    return batch;
  }

  close(): void {
    this.#scan.close();
  }
}
