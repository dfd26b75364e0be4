/**
 * Reads one owner's rows from a table, as of the statement's snapshot or an earlier seq.
 *
 * The owner is always determined by the principal of the execution: no plan can specify an owner.
 * Inside a transaction, staged rows replace the stored rows with the same keys, unless an earlier
 * state is read. Staged rows come last, because they have no seq yet.
 */

import type { Principal } from "../../../auth/mod.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import {
  type ColumnRange,
  DELETED_COLUMN_ID,
  type KeySpans,
  type Scan,
  type ScanShare,
  SEQ_COLUMN_ID,
  SHARED_OWNER,
} from "../../../storage/mod.ts";
import {
  type Batch,
  BIGINT,
  BOOLEAN,
  type DataType,
  keepRows,
  type Row,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { PastRead } from "../../bind/bound.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { holdsFromStart, type Operator } from "../context/operator.ts";
import type { StagedRow } from "../context/transaction.ts";
import { keyTextOf } from "../keys/key_text.ts";

/**
 * The owner number that stands for a user who has never written a row and therefore has no owner
 * number.
 */
const NOBODY = -1;

/** Returns the owner of the rows that a principal can access in a table. */
export function ownerOf(principal: Principal, table: TableEntry): number {
  return table.kind === "shared" ? SHARED_OWNER : (principal.owner ?? NOBODY);
}

const NOTHING_STAGED: ReadonlyMap<string, StagedRow> = new Map();

export interface TableScanOptions {
  readonly context: ExecutionContext;
  readonly table: TableEntry;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly keySpans?: KeySpans | undefined;
  readonly withTombstones: boolean;
  /**
   * The earlier point in time as of which the table is read; absent if the table is read as of the
   * snapshot.
   */
  readonly past?: PastRead | undefined;
  readonly batchRows: number;
  readonly reusesMemory?: boolean;
  readonly defersNumbers?: boolean;
  /** The row groups to read, if the query is divided among several readers. */
  readonly share?: ScanShare | undefined;
  /**
   * A scan that finds the needed rows in a different way, and in any order. It returns the columns
   * of {@linkcode scannedIds}. The operator closes it.
   */
  readonly source?: Scan | undefined;
  /** Called once with the numbers of row groups read and skipped. */
  readonly onEnd?: (groupsRead: number, groupsPruned: number) => void;
}

/** Yields every row of an owner in a table, in ascending seq order. */
export class TableScan implements Operator {
  readonly #options: TableScanOptions;
  readonly #scan: Scan;
  /**
   * The positions of the key columns that are read only to compare rows with staged rows. These
   * columns are dropped before a batch is passed on.
   */
  readonly #keyPositions: readonly number[];
  readonly #hasOverlay: boolean;
  /** The staged rows still to be yielded; undefined until all stored rows have been read. */
  #overlay: Iterator<StagedRow, void> | undefined;
  #isClosed = false;

  constructor(options: TableScanOptions) {
    this.#options = options;
    const { table, columnIds } = options;
    const hasOverlay = hasStaged(options);
    this.#hasOverlay = hasOverlay;
    this.#keyPositions = hasOverlay ? table.primaryKey.map((_, i) => columnIds.length + i) : [];
    this.#scan = options.source ?? openScan(options);
    holdsFromStart(this);
  }

  next(): Batch | undefined {
    const { context } = this.#options;
    while (this.#overlay === undefined) {
      context.checkTime();
      const batch = this.#scan.next();
      if (batch === undefined) break;
      if (batch.rowCount === 0) continue;
      context.noteRead(batch.rowCount);
      const rows = this.#keyPositions.length === 0 ? batch : this.#withoutStaged(batch);
      if (rows.rowCount > 0) return rows;
    }
    if (!this.#hasOverlay) return undefined;
    context.checkTime();
    return this.#nextStaged();
  }

  close(): void {
    const { groupsPruned, groupsRead } = this.#scan;
    if (!this.#isClosed) this.#options.onEnd?.(groupsRead, groupsPruned);
    this.#isClosed = true;
    this.#scan.close();
  }

  /**
   * Drops the rows whose keys the transaction has written. Changes that cancel each other out do
   * not count.
   */
  #withoutStaged(batch: Batch): Batch {
    const { context, table, columnIds } = this.#options;
    const staged = context.staged?.stagedOf(table.tableId, ownerOf(context.principal, table));
    const columns = batch.columns.slice(0, columnIds.length);
    if (staged === undefined || staged.size === 0) return { rowCount: batch.rowCount, columns };
    const keys = this.#keyPositions.map((position) => batch.columns[position]);
    const types = table.primaryKey.map((columnId) => typeOf(table, columnId));
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const key = keys.map((vector) => (vector === undefined ? null : valueAt(vector, row)));
      const mine = staged.get(keyTextOf(types, key));
      if (mine !== undefined && !isNothing(mine)) continue;
      rows[count] = row;
      count += 1;
    }
    return keepRows({ rowCount: batch.rowCount, columns }, { rows, count });
  }

  #nextStaged(): Batch | undefined {
    const { batchRows, context, table, columnIds, withTombstones } = this.#options;
    const owner = ownerOf(context.principal, table);
    this.#overlay ??= (context.staged?.stagedOf(table.tableId, owner) ?? NOTHING_STAGED).values();
    const read: StagedRow[] = [];
    while (read.length < batchRows) {
      const step = this.#overlay.next();
      if (step.done === true) break;
      const row = step.value;
      if (!row.isDeleted || (withTombstones && !isNothing(row))) read.push(row);
    }
    if (read.length === 0) return undefined;
    const columns = columnIds.map((columnId) =>
      vectorFromValues(
        typeOf(table, columnId),
        read.map((row) => stagedValue(table, row, columnId)),
      ),
    );
    return { rowCount: read.length, columns };
  }
}

type ScannedTable = Pick<TableScanOptions, "columnIds" | "context" | "past" | "table">;

/** Whether the transaction has staged rows that replace stored rows. */
function hasStaged({ context, past, table }: ScannedTable): boolean {
  return past === undefined && context.staged?.hasStaged(table.tableId) === true;
}

/**
 * Returns the ids of the columns to read. In a transaction with staged rows, they include the key
 * columns.
 */
export function scannedIds(options: ScannedTable): readonly number[] {
  const { columnIds, table } = options;
  return hasStaged(options) ? [...columnIds, ...table.primaryKey] : columnIds;
}

/**
 * Returns the seq as of which a table is read.
 * @throws {DatabaseError}
 */
function seqOf({ context, past }: Pick<TableScanOptions, "context" | "past">): Seq {
  return past === undefined ? context.snapshotSeq : context.pastSeq(past);
}

function openScan(options: TableScanOptions): Scan {
  const { context, table } = options;
  try {
    return context.store.scan(table.tableId, {
      owner: ownerOf(context.principal, table),
      upTo: seqOf(options),
      columnIds: scannedIds(options),
      ranges: options.ranges,
      ...(options.keySpans === undefined ? {} : { keySpans: options.keySpans }),
      withTombstones: options.withTombstones,
      batchRows: options.batchRows,
      reusesMemory: options.reusesMemory ?? false,
      defersNumbers: options.defersNumbers ?? false,
      mayBeEmpty: true,
      share: options.share,
    });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
}

/**
 * The number of rows looked up by key between two time checks. A lookup may have to decompress
 * blocks, which takes up to 0.1 ms.
 */
const LOOKUPS_MAX = 16;

/** Yields the rows with the given keys, in the order of the keys. The keys must be distinct. */
export class KeyLookup implements Operator {
  readonly #options: TableScanOptions;
  readonly #keys: Iterator<Row, void>;
  #isDone = false;

  constructor(options: TableScanOptions, keys: Iterable<Row>) {
    this.#options = options;
    this.#keys = keys[Symbol.iterator]();
  }

  next(): Batch | undefined {
    const { columnIds, context, table } = this.#options;
    const rows = this.#lookUp();
    if (rows.length === 0) return undefined;
    context.noteRead(rows.length);
    const columns = columnIds.map((columnId, position): Vector => {
      const values = rows.map((row) => row[position] ?? null);
      // For a single value, creating a typed array would cost more than it saves.
      if (values.length === 1) return { kind: "any", length: 1, values };
      return vectorFromValues(typeOf(table, columnId), values);
    });
    return { rowCount: rows.length, columns };
  }

  close(): void {
    this.#isDone = true;
  }

  /** Looks up the next keys, and returns their rows; an empty list at the end. */
  #lookUp(): Row[] {
    const { columnIds, context, past, table } = this.#options;
    const rows: Row[] = [];
    for (let count = 0; !this.#isDone && rows.length < LOOKUPS_MAX; count += 1) {
      if (count % LOOKUPS_MAX === 0) context.checkTime();
      const step = this.#keys.next();
      if (step.done === true) {
        this.#isDone = true;
        break;
      }
      const row = readRow(context, table, { key: step.value, columnIds, past });
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }
}

/** A read of a row by key, as of a point in time. */
interface KeyRead extends Pick<TableScanOptions, "columnIds" | "past"> {
  readonly key: Row;
}

/**
 * Reads the live row with a given key. A row staged by the transaction takes precedence over the
 * stored row, unless an earlier state is read.
 */
export function readRow(
  context: ExecutionContext,
  table: TableEntry,
  { columnIds, key, past }: KeyRead,
): Row | undefined {
  const owner = ownerOf(context.principal, table);
  const staged = past === undefined ? context.staged?.stagedOf(table.tableId, owner) : undefined;
  if (staged !== undefined && staged.size > 0) {
    const types = table.primaryKey.map((columnId) => typeOf(table, columnId));
    const mine = staged.get(keyTextOf(types, key));
    if (mine?.isDeleted === true) return undefined;
    if (mine !== undefined) {
      return columnIds.map((columnId) => stagedValue(table, mine, columnId));
    }
  }
  try {
    return context.store.lookup(table.tableId, {
      owner,
      key,
      upTo: seqOf({ context, past }),
      columnIds,
    });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
}

/**
 * Replaces the store's error about a missing table by an error that names the table. A table that
 * was bound but no longer exists was dropped while the statement ran.
 */
export function droppedMeanwhile(error: unknown, { name, namespace }: TableEntry): unknown {
  if (!(error instanceof DatabaseError) || error.code !== "TABLE_NOT_FOUND") return error;
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot continue reading ${namespace}.${name}: it was dropped in the meantime`,
    { cause: error, hint: "run the statement again" },
  );
}

/** Whether a transaction's changes to a key cancel out, as INSERT followed by DELETE does. */
function isNothing({ isDeleted, stored }: StagedRow): boolean {
  return isDeleted && stored === undefined;
}

function stagedValue(table: TableEntry, staged: StagedRow, columnId: number): Value {
  const { isDeleted, row, stored } = staged;
  if (columnId === SEQ_COLUMN_ID) return null;
  if (columnId === DELETED_COLUMN_ID) return isDeleted;
  // A tombstone contains the last stored values rather than values from the transaction.
  const values = isDeleted ? (stored ?? row) : row;
  return values[table.columns.findIndex((column) => column.columnId === columnId)] ?? null;
}

/** Returns the type of a stored or system column. */
function typeOf(table: TableEntry, columnId: number): DataType {
  if (columnId === SEQ_COLUMN_ID) return BIGINT;
  if (columnId === DELETED_COLUMN_ID) return BOOLEAN;
  return table.columns.find((column) => column.columnId === columnId)?.type ?? BIGINT;
}
