/**
 * Finds the stored rows that reference any of several keys. The search uses the referencing
 * table's primary key, an index that begins with the referencing columns, the sort order of a
 * single column or, failing all of these, a scan.
 */
import type { Seq } from "../../../base/seq.ts";
import {
  type ForeignKeyEntry,
  type IndexEntry,
  readIndexesOf,
  type TableEntry,
} from "../../../catalog/mod.ts";
import type { OrderedScan, ReadStore } from "../../../storage/mod.ts";
import { type Row, valueAt } from "../../../types/mod.ts";
import type { ExecutionContext, IncomingReference } from "../context/execution_context.ts";
import type { ReferencedKey } from "./referenced_key.ts";

/** The maximum number of keys for which index lookups are faster than a scan. */
const LOOKUPS_MAX = 256;

/**
 * The maximum number of keys for which rows are found through the sort order of the referencing
 * column.
 */
const SPANS_MAX = 64;

/** The number of rows that an index scan returns at a time. */
const BATCH_ROWS = 512;

/** The keys for which to find the referencing rows. */
export interface WantedKeys {
  /** The owner of the referencing rows. */
  readonly owner: number;
  readonly referenced: Pick<ReferencedKey, "columnIds">;
  /**
   * The referenced keys, with their values in the order of the referenced columns. No value is
   * NULL.
   */
  readonly wanted: readonly Row[];
}

interface ReferringRead {
  readonly owner: number;
  readonly upTo: Seq;
  readonly columnIds: readonly number[];
}

/** Yields whole stored rows: all rows that reference the keys, and possibly other rows. */
export function* referringRows(
  { child, key }: IncomingReference,
  keys: WantedKeys,
  context: ExecutionContext,
): Generator<Row> {
  const { snapshotSeq: upTo, store } = context;
  const columnIds = child.columns.map(({ columnId }) => columnId);
  const reading: ReferringRead = { owner: keys.owner, upTo, columnIds };
  if (isOwnKey(key, child)) {
    for (const values of inOrderOf(child.primaryKey, key, keys)) {
      const row = store.lookup(child.tableId, { key: values, ...reading });
      if (row !== undefined) yield row;
    }
    return;
  }
  const indexed = indexedRows({ child, key }, keys, { context, reading });
  if (indexed !== undefined) yield* indexed;
  else yield* scanned({ child, key }, keys, { context, reading });
}

/** Whether the referencing columns are the entire primary key of their table. */
function isOwnKey({ columnIds }: ForeignKeyEntry, { primaryKey }: TableEntry): boolean {
  return columnIds.length === primaryKey.length && primaryKey.every((id) => columnIds.includes(id));
}

/** Returns the referenced keys with their values in the order of the referencing columns. */
function inOrderOf(
  ids: readonly number[],
  { columnIds, referencedIds }: ForeignKeyEntry,
  { referenced, wanted }: WantedKeys,
): Row[] {
  const positions = ids.map((columnId) =>
    referenced.columnIds.indexOf(referencedIds[columnIds.indexOf(columnId)] ?? 0),
  );
  return wanted.map((values) => positions.map((position) => values[position] ?? null));
}

/**
 * Returns the rows that are found through an index; undefined if no index begins with the
 * referencing columns.
 */
function indexedRows(
  { child, key }: IncomingReference,
  keys: WantedKeys,
  { context, reading }: { context: ExecutionContext; reading: ReferringRead },
): Row[] | undefined {
  if (keys.wanted.length > LOOKUPS_MAX) return undefined;
  const index = indexFor(child, key);
  if (index === undefined) return undefined;
  const columnIds = index.columnIds.slice(0, key.columnIds.length);
  const isWhole = columnIds.length === index.columnIds.length;
  const { indexId } = index;
  const rows: Row[] = [];
  for (const values of inOrderOf(columnIds, key, keys)) {
    const found = isWhole
      ? context.store.lookupIndex(child.tableId, { indexId, key: values, ...reading })
      : rowsBeginning(child.tableId, { indexId, values, ...reading }, context);
    if (found === undefined) return undefined;
    for (const row of found) rows.push(row);
  }
  return rows;
}

/**
 * Returns the index with the fewest columns, among all indexes that begin with the referencing
 * columns.
 */
function indexFor(
  table: TableEntry,
  { columnIds: referring }: ForeignKeyEntry,
): IndexEntry | undefined {
  return readIndexesOf(table)
    .filter(({ columnIds, state, where }) => {
      const first = new Set(columnIds.slice(0, referring.length));
      const begins = referring.every((columnId) => first.has(columnId));
      return state === "ready" && where === undefined && begins;
    })
    .toSorted((left, right) => left.columnIds.length - right.columnIds.length)[0];
}

/** Returns the rows with index keys that begin with the given values. */
function rowsBeginning(
  tableId: number,
  { values, ...reading }: ReferringRead & { indexId: number; values: Row },
  context: ExecutionContext,
): Row[] | undefined {
  const bound = { values, isInclusive: true };
  const spans = [{ min: bound, max: bound }];
  const scan = context.store.scanIndex(tableId, { ...reading, spans, isDescending: false });
  return scan && allOf(scan, context);
}

function allOf(scan: OrderedScan, context: ExecutionContext): Row[] {
  const rows: Row[] = [];
  try {
    for (let batch = scan.next(BATCH_ROWS); batch !== undefined; batch = scan.next(BATCH_ROWS)) {
      context.checkTime();
      for (let row = 0; row < batch.rowCount; row += 1) {
        rows.push(batch.columns.map((column) => valueAt(column, row)));
      }
    }
  } finally {
    scan.close();
  }
  return rows;
}

function* scanned(
  { child: { tableId }, key }: IncomingReference,
  { wanted }: WantedKeys,
  { context, reading }: { context: ExecutionContext; reading: ReferringRead },
): Generator<Row> {
  const [columnId, ...others] = key.columnIds;
  const isOrdered = columnId !== undefined && others.length === 0 && wanted.length <= SPANS_MAX;
  const options: Parameters<ReadStore["scan"]>[1] = isOrdered
    ? { ...reading, keySpans: { columnId, spans: wanted.map(([v]) => ({ min: v, max: v })) } }
    : reading;
  const scan = context.store.scan(tableId, options);
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      context.checkTime();
      for (let row = 0; row < batch.rowCount; row += 1) {
        yield batch.columns.map((column) => valueAt(column, row));
      }
    }
  } finally {
    scan.close();
  }
}
