/**
 * Opens table scans through secondary indexes.
 *
 *     the plan names some indexes ──► ranges of keys in each ──► the index with the fewest rows
 *                                                                 └──too many: a scan of the table
 *
 * The number of rows in a key range is known before any row is read, so the index is chosen anew
 * for each run. If a value cannot be computed, no index is used, and the condition above the scan
 * raises the error once a row needs the value.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type IndexEntry, indexPartsOf, type TableEntry } from "../../../catalog/mod.ts";
import {
  type CountedScan,
  DELETED_COLUMN_ID,
  type IndexBound,
  type IndexSpan,
  type OrderedScan,
  queryOfPart,
  type RowChoice,
  type Scan,
  type ScanBatch,
  type TermQuery,
} from "../../../storage/mod.ts";
import { type Comparator, comparatorFor, type DataType, type Row } from "../../../types/mod.ts";
import { termQueryOf } from "../../functions/search/terms.ts";
import { depthOf } from "../../plan/index_access.ts";
import type {
  IndexAccess,
  IndexEdge,
  RowAccess,
  ScanNode,
  TermCondition,
} from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { droppedMeanwhile, ownerOf, scannedIds, type TableScanOptions } from "../operators/scan.ts";
import { attempted } from "./attempt.ts";
import { compileBeginning } from "./beginnings.ts";
import { compileSought } from "./key_parts.ts";

/** The number of rows that a scan reads in the time that an index needs to yield a single row. */
const ROWS_PER_ROW = 64;

/**
 * The number of rows that a scan reads in the time that an inverted index needs to yield a single
 * row. It is lower than for other indexes, because the conditions take longer to test.
 */
const ROWS_PER_TERM_ROW = 8;

/** The maximum number of primary keys looked up for one alternative of an OR. */
const ALTERNATIVE_KEYS_MAX = 1024;

/** An index that yields at most this many rows is used without counting the rows in the table. */
const FEW_ROWS = 256;

/** Returns the key ranges to read, in ascending order and without overlaps. */
type SpansOf = (context: ExecutionContext) => readonly IndexSpan[];

/**
 * Compiles the choice of an index.
 *
 * @returns A function that opens a scan of the rows in the key ranges of the chosen index, or
 *   returns undefined if the table should be scanned instead. Undefined instead of a function if
 *   the plan names no index.
 */
export function compileIndexes({
  either,
  indexes = [],
  isDivided = false,
  table,
  withTombstones,
}: ScanNode): ((options: TableScanOptions) => Scan | undefined) | undefined {
  // A query that is divided among threads reads no index, because the threads share the row groups
  // of the table.
  const isUnread = indexes.length === 0 && either === undefined;
  if (isUnread || isDivided || withTombstones) return undefined;
  const choices = [
    ...indexes.map((access) => ({
      open: compileOpening(table, access),
      rowsPerRow: costOf(access),
    })),
    ...(either === undefined ? [] : [compileEither(table, either)]),
  ];
  return (options) => {
    let best: { readonly scan: CountedScan; readonly rowsPerRow: number } | undefined;
    for (const { open, rowsPerRow } of choices) {
      const scan = open(options);
      if (scan === undefined) continue;
      if (best !== undefined && best.scan.rowCount <= scan.rowCount) scan.close();
      else {
        best?.scan.close();
        best = { scan, rowsPerRow };
      }
      if (best.scan.rowCount <= 1) break;
    }
    if (best === undefined) return undefined;
    const { rowsPerRow, scan } = best;
    if (isWorthwhile(options, scan.rowCount, rowsPerRow)) return new IndexRows(scan);
    scan.close();
    return undefined;
  };
}

function costOf({ terms }: IndexAccess): number {
  return terms === undefined ? ROWS_PER_ROW : ROWS_PER_TERM_ROW;
}

type Opening = (options: TableScanOptions) => CountedScan | undefined;

interface Choice {
  readonly open: Opening;
  /**
   * The number of rows that can be scanned in the time that the index needs to yield a single row.
   */
  readonly rowsPerRow: number;
}

/** Compiles a scan of the rows that at least one of several index accesses finds. */
function compileEither(table: TableEntry, accesses: readonly RowAccess[]): Choice {
  const choicesOf = accesses.map((access) => compileChoice(table, access));
  const costs = accesses.map((access) =>
    access.index === undefined ? ROWS_PER_ROW : costOf(access),
  );
  return {
    rowsPerRow: Math.max(...costs),
    open: (options) => {
      const choices: RowChoice[] = [];
      for (const choiceOf of choicesOf) {
        const choice = attempted(() => choiceOf(options.context));
        // If one access cannot be used, the remaining accesses alone would miss rows.
        if (choice === undefined) return undefined;
        choices.push(choice);
      }
      return openChoice(options, { kind: "any", choices });
    },
  };
}

/**
 * Compiles the choice of rows that an index access finds. The choice is undefined in a run that
 * cannot use the access.
 */
function compileChoice(
  table: TableEntry,
  access: RowAccess,
): (context: ExecutionContext) => RowChoice | undefined {
  if (access.index === undefined) {
    const types = table.primaryKey.map((columnId) => typeOfKey(table, columnId));
    const keysOf = compileSought(access.keys, types);
    return (context) => {
      const { count, keys } = keysOf(context);
      return count > ALTERNATIVE_KEYS_MAX ? undefined : { kind: "primary", keys: [...keys] };
    };
  }
  const { indexId } = access.index;
  const mayUse = compileGuards(access);
  if (access.terms !== undefined) {
    const queryOf = compileTerms(table, access, access.terms);
    return (context) => {
      const query = mayUse(context) ? queryOf(context) : undefined;
      return query && { kind: "terms", indexId, query };
    };
  }
  const spansOf = compileSpans(table, access);
  return (context) =>
    mayUse(context) ? { kind: "keys", indexId, spans: spansOf(context) } : undefined;
}

function typeOfKey({ columns }: TableEntry, columnId: number): DataType {
  const column = columns.find((each) => each.columnId === columnId);
  return defined(column, "index scan: key column is missing from the table definition").type;
}

/**
 * Compiles a scan of the rows that an index access finds. The scan is undefined in a run that
 * cannot use the access.
 */
function compileOpening(table: TableEntry, access: IndexAccess): Opening {
  const { index } = access;
  const choiceOf = compileChoice(table, access);
  return (options) => {
    const choice = attempted(() => choiceOf(options.context));
    if (choice === undefined) return undefined;
    if (choice.kind !== "keys") return openChoice(options, choice);
    // A sorted index returns rows in its own order, on which some consumers depend.
    return openIndex(options, { index, spans: choice.spans, isDescending: false });
  };
}

/**
 * Compiles the term query that the conditions imply. The query is undefined in a run in which the
 * conditions do not imply one.
 */
function compileTerms(
  table: TableEntry,
  { index }: IndexAccess,
  terms: readonly TermCondition[],
): (context: ExecutionContext) => TermQuery | undefined {
  const parts = indexPartsOf(table, index);
  const compiled = terms.map((term) => {
    const type = parts[term.part]?.type ?? term.value.type;
    return { ...term, type, valueOf: compileScalar(term.value) };
  });
  return (context) => {
    const queries = compiled.flatMap(({ kind, operator, part, type, valueOf }) => {
      const query = termQueryOf(operator, { kind, type, value: valueOf(context) });
      return query === undefined ? [] : queryOfPart(query, part);
    });
    const [only] = queries;
    if (queries.length <= 1) return only;
    return { kind: "some", least: queries.length, parts: queries };
  };
}

/**
 * Whether reading the given number of rows through an index is faster than reading all rows of the
 * table.
 */
function isWorthwhile(
  { context, table }: TableScanOptions,
  rowCount: number,
  rowsPerRow = ROWS_PER_ROW,
): boolean {
  if (rowCount <= FEW_ROWS) return true;
  const all = context.store.liveRowCount(table.tableId, ownerOf(context.principal, table));
  return rowCount * rowsPerRow < all;
}

/** Opens a scan of the rows that indexes select. Returns undefined if an index cannot be read. */
function openChoice(options: TableScanOptions, choice: RowChoice): CountedScan | undefined {
  const { columnIds, context, table } = options;
  // An index does not store whether a row is deleted, so it cannot supply this column.
  if (columnIds.includes(DELETED_COLUMN_ID)) return undefined;
  try {
    return context.store.scanChosen(table.tableId, {
      owner: ownerOf(context.principal, table),
      upTo: context.snapshotSeq,
      columnIds: scannedIds(options),
      choice,
    });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
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

/** How the consumer uses the key ranges of an index. */
export interface SpanUse {
  /**
   * Whether to skip the rows that have NULL in the first column after the columns with listed
   * values.
   */
  readonly skipsNull?: boolean;
}

/** Compiles the test that decides whether a run may use an index. */
export function compileGuards({ guards }: IndexAccess): (context: ExecutionContext) => boolean {
  if (guards.length === 0) return () => true;
  const tests = guards.map(compileScalar);
  return (context) => tests.every((test) => attempted(() => test(context)) === true);
}

/** Compiles the key ranges that an index access reads. */
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
 * Opens a scan of the rows with keys that begin with one of the given lists of values. The lists
 * are distinct and contain no NULL. Returns undefined if reading all rows would be faster.
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

/** Compares index keys in index order, with NULL last. */
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
 * Returns the range of index keys that begin with the given values and satisfy the bounds on the
 * columns after them. NULL sorts after all values and satisfies no bound.
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

/** Returns the given bound; undefined if its list of values is empty. */
function boundFrom(bound: IndexBound): IndexBound | undefined {
  return bound.values.length === 0 ? undefined : bound;
}

/**
 * Compiles the tightest of several bounds. The result is undefined in a run in which no value
 * satisfies all bounds.
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
    // `(a, b) > (1, NULL)` may still be true for a greater a, so only a NULL in the first position
    // rules out every key.
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

/** Shortens a bound to the values before its first NULL, which makes the range wider. */
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
  // An exclusive lower bound excludes every index key that begins with the bound's values.
  return isShorter ? !one.isInclusive : other.isInclusive;
}

/** Presents the rows of an index as a table scan. */
class IndexRows implements Scan {
  readonly groupsRead = 0;
  readonly groupsPruned = 0;
  readonly #scan: CountedScan;
  /** The first batches are short, because the consumer may need only a few rows. */
  #batchRows = 64;

  constructor(scan: CountedScan) {
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
