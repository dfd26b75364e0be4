/**
 * Reads the rows of a table whose definition a transaction has changed. The store still has the
 * earlier definition, so columns are renamed, added, removed and converted as rows are read.
 */
import type {
  LookupOptions,
  Scan,
  ScanBatch,
  ScanOptions,
  Store,
  TableDefinition,
} from "../../storage/mod.ts";
import {
  casterFor,
  constVector,
  type DataType,
  type Row,
  sameType,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";

/** The source of the values of a requested column: a stored column or a constant. */
interface ColumnSource {
  /** The column's position among the columns read from the store; undefined if it is not read. */
  readonly at: number | undefined;
  readonly type: DataType | undefined;
  /** Converts a stored value other than NULL; undefined if the values need no conversion. */
  readonly convert: ((value: Value) => Value) | undefined;
  /** The value for rows that are stored without the column. */
  readonly missing: Value;
}

/** The columns to read from the store, and the source of each requested column among them. */
export interface ReadColumns {
  readonly storedIds: readonly number[];
  readonly sources: readonly ColumnSource[];
  readonly isSame: boolean;
}

/** The definition of a table as the transaction sees it, and as the store has it. */
export interface DraftedTable {
  /** The definition in the transaction; undefined if the transaction has dropped the table. */
  readonly definition: TableDefinition | undefined;
  /** The stored definition; undefined if the transaction has created the table. */
  readonly stored: TableDefinition | undefined;
}

/**
 * Returns the columns to read from rows that are stored under an earlier definition, and the
 * source of each requested column among them.
 */
export function readColumns(
  columnIds: readonly number[],
  { from, to }: { from: TableDefinition; to: TableDefinition },
): ReadColumns {
  const storedIds: number[] = [];
  let isSame = true;
  const sources = columnIds.map((columnId): ColumnSource => {
    const before = from.columns.find((column) => column.columnId === columnId);
    const after = to.columns.find((column) => column.columnId === columnId);
    // System columns, such as `_seq`, belong to neither definition and are read as they are
    // stored.
    if (before === undefined && after !== undefined) {
      isSame = false;
      return { at: undefined, type: after.type, convert: undefined, missing: after.missing };
    }
    storedIds.push(columnId);
    const convert = before && after && conversion(before.type, after.type);
    if (convert !== undefined) isSame = false;
    return { at: storedIds.length - 1, type: after?.type, convert, missing: null };
  });
  return { storedIds, sources, isSame };
}

function conversion(from: DataType, to: DataType): ((value: Value) => Value) | undefined {
  return sameType(from, to) ? undefined : casterFor(from, to, "explicit");
}

export function convertedRow(row: Row, { sources }: ReadColumns): Row {
  return sources.map(({ at, convert, missing }) => {
    const value = at === undefined ? missing : (row[at] ?? null);
    return value === null || convert === undefined ? value : convert(value);
  });
}

/** Scans the rows of a table that are stored under an earlier definition. */
export function draftedScan(
  store: Pick<Store, "scan">,
  { stored: from, definition: to }: { stored: TableDefinition; definition: TableDefinition },
  options: ScanOptions,
): Scan {
  const columns = readColumns(options.columnIds, { from, to });
  const isSame = (columnId: number): boolean => readColumns([columnId], { from, to }).isSame;
  const { keySpans, ranges = [], ...rest } = options;
  const scan = store.scan(to.tableId, {
    ...rest,
    columnIds: columns.storedIds,
    ranges: ranges.filter(({ columnId }) => isSame(columnId)),
    ...(keySpans !== undefined && isSame(keySpans.columnId) && { keySpans }),
  });
  if (columns.isSame) return scan;
  return {
    next() {
      const batch = scan.next();
      return batch && convertedBatch(batch, columns);
    },
    close: () => scan.close(),
    get groupsRead() {
      return scan.groupsRead;
    },
    get groupsPruned() {
      return scan.groupsPruned;
    },
  };
}

function convertedBatch({ columns, rowCount }: ScanBatch, { sources }: ReadColumns): ScanBatch {
  return {
    rowCount,
    columns: sources.map(({ at, convert, missing, type }): Vector => {
      const vector = at === undefined ? undefined : columns[at];
      if (vector === undefined) return constVector(missing, rowCount);
      if (convert === undefined || type === undefined) return vector;
      const values = valuesOf(vector).map((value) => (value === null ? null : convert(value)));
      return vectorFromValues(type, values);
    }),
  };
}

/** Looks up a row of a table that is stored under an earlier definition. */
export function draftedRow(
  store: Pick<Store, "lookup">,
  { stored: from, definition: to }: { stored: TableDefinition; definition: TableDefinition },
  options: LookupOptions,
): Row | undefined {
  const columns = readColumns(options.columnIds, { from, to });
  const row = store.lookup(to.tableId, { ...options, columnIds: columns.storedIds });
  return row && convertedRow(row, columns);
}

/** An empty scan. */
export const NO_SCAN: Scan = {
  next: () => undefined,
  close() {},
  groupsRead: 0,
  groupsPruned: 0,
};
