/**
 * Plan → operators, of what reads stored rows or those of a system view.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import {
  type ColumnRange,
  type KeySpans,
  type OrderedScan,
  SEQ_COLUMN_ID,
} from "../../../storage/mod.ts";
import { type DataType, isNumberType, type Row, type Value } from "../../../types/mod.ts";
import { hasSubquery } from "../../bind/walk.ts";
import { areListed } from "../../plan/access.ts";
import type { KeyPart, PlanNode, ScanNode } from "../../plan/plan.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { PortionSource, RowCounts } from "../operators/filter.ts";
import {
  droppedMeanwhile,
  KeyLookup,
  ownerOf,
  readRow,
  TableScan,
  type TableScanOptions,
} from "../operators/scan.ts";
import type { Operator, OperatorFactory } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { ORDERED_SHARE_MAX, OrderedTableScan } from "../sort/ordered_table_scan.ts";
import { type CompiledRange, compileRange, spanOfRanges } from "./column_bounds.ts";
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

export function buildSystemView(node: Extract<PlanNode, { kind: "system" }>): OperatorFactory {
  const { columns, positions, source } = node;
  const types = columns.map(({ type }) => type);
  return (run) => {
    const { isImpersonated, role, userId } = run.principal;
    const portions = source({ userId, role, isImpersonated, positions });
    return new PortionSource(portions, { run, positions, types });
  };
}

/**
 * Rows of a batch when nobody above wants rows one by one. Its arrays stay in the second-level
 * cache, and what is done with it ends before others have waited for long.
 */
const BULK_BATCH_ROWS: number = 2 * BATCH_ROWS_MAX;

/** How the rows of a scan are used. */
export interface ScanUse {
  /** Whoever reads them is done with a batch before asking for the next one. */
  readonly isConsumed?: boolean;
  /** Whoever reads them leaves out rows by some of the columns. */
  readonly isFiltered?: boolean;
}

export function buildScan(node: ScanNode, use: ScanUse): OperatorFactory {
  const optionsOf = scanOptions(node, use);
  const keysOf = compileKeys(node);
  if (keysOf === undefined) return buildTableScan(node, use);
  if (node.sought === undefined) {
    return (run) => shaped(node, new KeyLookup(optionsOf(run), keysOf(run).keys));
  }
  // Made lazily, because most runs never scan.
  let scan: OperatorFactory | undefined;
  return (run) => {
    const { count, keys } = keysOf(run);
    if (areWorthLookingUp(node, count, run)) {
      return shaped(node, new KeyLookup(optionsOf(run), keys));
    }
    scan ??= buildTableScan(node, use);
    return scan(run);
  };
}

/**
 * Whether a run looks up its listed keys. The plan cannot decide this: it does not know how many
 * elements the arrays have or how many rows of the table belong to the caller.
 */
function areWorthLookingUp({ sought = [], table }: ScanNode, count: number, run: Run): boolean {
  const isPlanned = table.kind === "shared" && !sought.flat().some(({ lists }) => lists.length > 0);
  if (isPlanned || count <= FEW_KEYS) return true;
  return areListed(count, run.store.liveRowCount(table.tableId, ownerOf(run.principal, table)));
}

/** Up to this number, keys are looked up without checking how many rows there are. */
const FEW_KEYS = 32;

function buildTableScan(node: ScanNode, use: ScanUse): OperatorFactory {
  const optionsOf = scanOptions(node, use);
  const { table } = node;
  const { ranges, spanRanges } = compileRanges(node);
  const [firstKeyId] = table.primaryKey;
  const prefixOf = compilePrefix(node);
  const hasKeySpan = spanRanges.some(({ columnId }) => columnId === firstKeyId);
  const keySpans = (run: Run): KeySpans | undefined => {
    const listed = prefixOf?.(run);
    if (listed !== undefined) return listed;
    if (firstKeyId === undefined || !hasKeySpan) return undefined;
    const type = typeOfColumn(table, firstKeyId);
    const span = spanOfRanges(spanRanges, { columnId: firstKeyId, type, run });
    return span === undefined ? undefined : { columnId: firstKeyId, spans: [span] };
  };
  return (run) => {
    const spans = keySpans(run);
    const where = { ranges: [...rangesOf(ranges, run), ...around(table, spans)], keySpans: spans };
    const onEnd = prunedIn(node, run);
    return shaped(node, new TableScan({ ...optionsOf(run), ...where, onEnd }));
  };
}

/** How the keys of a side of a join find its rows. */
export interface KeyedUse extends ScanUse {
  /**
   * Whether they are whole; else only their first column is known, and rows are read between them.
   */
  readonly isWhole: boolean;
}

/** A scan, of the rows alone that may have one of some keys. */
export function buildKeyedScan(
  node: ScanNode,
  { isWhole, ...use }: KeyedUse,
): (run: Run, keys: readonly Row[]) => Operator {
  const optionsOf = scanOptions(node, use);
  if (isWhole) return (run, keys) => shaped(node, new KeyLookup(optionsOf(run), keys));
  const { table } = node;
  const { ranges } = compileRanges(node);
  return (run, keys) => {
    const where = {
      ranges: [...rangesOf(ranges, run), spanOf(table, keys)],
      keySpans: spansOfKeys(table, keys),
    };
    const onEnd = prunedIn(node, run);
    return shaped(node, new TableScan({ ...optionsOf(run), ...where, onEnd }));
  };
}

/** In which order rows are read of a table. */
export interface WantedOrder {
  readonly columnId: number;
  readonly isDescending: boolean;
}

/** The first rows of a scan, in an order that the store has. */
export interface OrderedRows {
  readonly scan: OrderedTableScan;
  readonly rows: Operator;
}

/**
 * A scan in the order of a column; a run says how many rows it needs of the front, and is given
 * none where they cannot be read so, or a sort of all takes less time.
 */
export function buildOrderedScan(
  node: ScanNode,
  order: WantedOrder,
): (run: Run, rowsWanted: number) => OrderedRows | undefined {
  const optionsOf = scanOptions(node, {});
  const { spanRanges } = compileRanges(node);
  return (run, rowsWanted) => {
    const scan = openOrdered(optionsOf(run), { ...order, rowsWanted }, spanRanges);
    if (scan === undefined) return undefined;
    const ordered = new OrderedTableScan(run, scan, rowsWanted);
    return { scan: ordered, rows: shaped(node, ordered) };
  };
}

/** What all ways to read a table are told. */
function scanOptions(
  { columns, isBulk, isDivided = false, table, withTombstones }: ScanNode,
  { isConsumed = false, isFiltered = false }: ScanUse,
): (run: Run) => TableScanOptions {
  const columnIds = columns.map(({ origin }) => {
    return defined(origin, "a scanned column is a stored one").columnId;
  });
  const batchRows = isBulk ? BULK_BATCH_ROWS : BATCH_ROWS_MAX;
  // A condition on the key reads no column of the row; the scan still has to say that it is there.
  const readIds = columnIds.length === 0 ? [SEQ_COLUMN_ID] : columnIds;
  return (run) => ({
    run,
    table,
    columnIds: readIds,
    ranges: [],
    withTombstones: withTombstones && run.mayReadHistory(table),
    batchRows,
    reusesMemory: isConsumed,
    defersNumbers: isFiltered,
    share: isDivided ? defined(run.division, "a divided scan has its share").share : undefined,
  });
}

/** Without the column that was read only to count rows. */
function shaped({ columns }: ScanNode, operator: Operator): Operator {
  return columns.length === 0 ? new RowCounts(operator) : operator;
}

/** The ranges of numbers, and those that say between which keys rows lie, texts among them. */
function compileRanges({ ranges, textRanges = [] }: ScanNode): {
  readonly ranges: readonly CompiledRange[];
  readonly spanRanges: readonly CompiledRange[];
} {
  const compiled = ranges.map(compileRange);
  return { ranges: compiled, spanRanges: [...compiled, ...textRanges.map(compileRange)] };
}

function rangesOf(ranges: readonly CompiledRange[], run: Run): ColumnRange[] {
  return ranges.map(
    ({ columnId, min, max }): ColumnRange => ({
      columnId,
      min: min === undefined ? Number.NEGATIVE_INFINITY : numberFrom(min(run), "min"),
      max: max === undefined ? Number.POSITIVE_INFINITY : numberFrom(max(run), "max"),
    }),
  );
}

function prunedIn(node: ScanNode, { profile }: Run): (read: number, pruned: number) => void {
  return (read, pruned) => profile?.scanned(node, { read, pruned });
}

/**
 * Rows within the bounds of the column that orders them; undefined where they cannot be read so.
 */
function openOrdered(
  { columnIds, run, table, withTombstones }: TableScanOptions,
  { columnId, isDescending, rowsWanted }: WantedOrder & { rowsWanted: number },
  spanRanges: readonly CompiledRange[],
): OrderedScan | undefined {
  const hasStaged = run.staged?.hasStaged(table.tableId) === true;
  // Rows that a transaction has staged are in no order.
  if (hasStaged || withTombstones) return undefined;
  const span = spanOfRanges(spanRanges, { columnId, type: typeOfColumn(table, columnId), run });
  if (span === undefined) return undefined;
  const owner = ownerOf(run.principal, table);
  const where = { owner, upTo: run.snapshotSeq, columnIds, columnId, isDescending };
  let scan: OrderedScan | undefined;
  try {
    scan = run.store.scanOrdered(table.tableId, { ...where, ...span });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
  if (scan === undefined) return undefined;
  if (rowsWanted <= scan.rowCount * ORDERED_SHARE_MAX) {
    run.noteReadInOrder();
    return scan;
  }
  scan.close();
  return undefined;
}

/** The values of the first key column that keys have. */
function spansOfKeys({ primaryKey }: TableEntry, keys: readonly Row[]): KeySpans {
  const columnId = defined(primaryKey[0], "a keyed side has a key");
  return { columnId, spans: keys.map(([value]) => ({ min: value, max: value })) };
}

function typeOfColumn({ columns }: TableEntry, columnId: number): DataType {
  const column = columns.find((each) => each.columnId === columnId);
  return defined(column, "a table is read by a column of its own").type;
}

/** The range that covers all spans of a list; row groups outside of it are not read. */
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

/** The keys of a lookup, and an upper bound for their number. */
interface LookedUp {
  readonly keys: Iterable<Row>;
  readonly count: number;
}

/** The keys of a lookup, each once; none with a NULL, which equals nothing. */
function compileKeys({ key, sought, table }: ScanNode): ((run: Run) => LookedUp) | undefined {
  if (key !== undefined) {
    const parts = key.map((value) => compileScalar(value));
    return (run) => {
      const values = parts.map((part) => part(run));
      return values.includes(null) ? { keys: [], count: 0 } : { keys: [values], count: 1 };
    };
  }
  if (sought === undefined) return undefined;
  const { keyTypes } = runtimeOf(table);
  const alternatives = sought.map((parts) => parts.map(compilePart));
  return (run) => {
    let count = 0;
    const lists = alternatives.map((parts) => {
      const own = parts.map((part, i) => distinct(part(run), keyTypes.slice(i, i + 1)));
      count += own.reduce((product, { length }) => product * length, 1);
      return own;
    });
    return { keys: combinations(lists, keyTypes), count };
  };
}

/** The possible values of one key column; they may include NULL and duplicates. */
function compilePart({ constants, items, lists }: KeyPart): (run: Run) => readonly Value[] {
  if (items.length === 0 && lists.length === 0) return () => constants;
  const scalars = items.map((item) => compileScalar(item));
  const arrays = lists.map((list) => compileScalar(list));
  return (run) => {
    const values = scalars.map((scalar) => scalar(run)).concat(constants);
    for (const array of arrays) {
      const elements = array(run);
      if (Array.isArray(elements))
        for (const each of elements as readonly Value[]) values.push(each);
    }
    return values;
  };
}

/** The spans of rows whose first key column has a listed value; undefined without a list. */
function compilePrefix({ prefix, table }: ScanNode): ((run: Run) => KeySpans) | undefined {
  const [columnId] = table.primaryKey;
  if (prefix === undefined || columnId === undefined) return undefined;
  const parts = prefix.map(compilePart);
  const types = [typeOfColumn(table, columnId)];
  return (run) => {
    const values = distinct(
      parts.flatMap((part) => part(run)),
      types,
    );
    return { columnId, spans: values.map((value) => ({ min: value, max: value })) };
  };
}

/** The values of a list, each once and no NULL. */
function distinct(values: readonly Value[], types: readonly DataType[]): readonly Value[] {
  const [only] = values;
  if (values.length === 1 && only !== undefined) return only === null ? [] : values;
  const found = new Map<string, Value>();
  for (const value of values) if (value !== null) found.set(keyTextOf(types, [value]), value);
  return [...found.values()];
}

/**
 * Every row that has one value of each list of an alternative at its position, each once. They are
 * made as they are asked for: short lists have many combinations, which would hold a turn.
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
