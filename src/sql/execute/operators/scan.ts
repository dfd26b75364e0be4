/**
 * Reads a table: the rows of one owner, as of the statement's snapshot.
 *
 * The owner comes from the principal of the run and from nowhere else: no plan can name one. Inside
 * a transaction its own staged rows replace the stored ones of their keys and come last, since they
 * have no seq yet.
 */

import type { Principal } from "../../../auth/mod.ts";
import { DatabaseError } from "../../../base/errors.ts";
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
import { keyTextOf } from "../keys/key_text.ts";
import { holdsFromStart, type Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import type { StagedRow } from "../run/transaction.ts";

/** An owner that has no rows: a user who has never written. */
const NOBODY = -1;

/** Whose rows of a table a principal reads and writes. */
export function ownerOf(principal: Principal, table: TableEntry): number {
  return table.kind === "shared" ? SHARED_OWNER : (principal.owner ?? NOBODY);
}

const NOTHING_STAGED: ReadonlyMap<string, StagedRow> = new Map();

export interface TableScanOptions {
  readonly run: Run;
  readonly table: TableEntry;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly keySpans?: KeySpans | undefined;
  readonly withTombstones: boolean;
  readonly batchRows: number;
  readonly reusesMemory?: boolean;
  readonly defersNumbers?: boolean;
  /** The row groups to read, if several readers divide the query. */
  readonly share?: ScanShare | undefined;
  /** Told once how many row groups were read and skipped. */
  readonly onEnd?: (groupsRead: number, groupsPruned: number) => void;
}

/** Every row of the caller's scope, in ascending seq. */
export class TableScan implements Operator {
  readonly #options: TableScanOptions;
  readonly #scan: Scan;
  /** Key columns that a transaction needs besides; dropped before a batch goes up. */
  readonly #keyPositions: readonly number[];
  readonly #hasOverlay: boolean;
  /** The staged rows to come, once the stored ones are read. */
  #overlay: Iterator<StagedRow, void> | undefined;
  #isClosed = false;

  constructor(options: TableScanOptions) {
    this.#options = options;
    const { run, table, columnIds } = options;
    const hasOverlay = run.staged?.hasStaged(table.tableId) === true;
    this.#hasOverlay = hasOverlay;
    this.#keyPositions = hasOverlay ? table.primaryKey.map((_, i) => columnIds.length + i) : [];
    this.#scan = openScan(options, { hasOverlay });
    holdsFromStart(this);
  }

  next(): Batch | undefined {
    const { run } = this.#options;
    while (this.#overlay === undefined) {
      run.checkTime();
      const batch = this.#scan.next();
      if (batch === undefined) break;
      if (batch.rowCount === 0) continue;
      run.noteRead(batch.rowCount);
      const rows = this.#keyPositions.length === 0 ? batch : this.#withoutStaged(batch);
      if (rows.rowCount > 0) return rows;
    }
    if (!this.#hasOverlay) return undefined;
    run.checkTime();
    return this.#nextStaged();
  }

  close(): void {
    const { groupsPruned, groupsRead } = this.#scan;
    if (!this.#isClosed) this.#options.onEnd?.(groupsRead, groupsPruned);
    this.#isClosed = true;
    this.#scan.close();
  }

  /** Drops rows whose key the transaction has written, but for what it has taken back again. */
  #withoutStaged(batch: Batch): Batch {
    const { run, table, columnIds } = this.#options;
    const staged = run.staged?.stagedOf(table.tableId, ownerOf(run.principal, table));
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
    const { batchRows, run, table, columnIds, withTombstones } = this.#options;
    const owner = ownerOf(run.principal, table);
    this.#overlay ??= (run.staged?.stagedOf(table.tableId, owner) ?? NOTHING_STAGED).values();
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

function openScan(options: TableScanOptions, { hasOverlay }: { hasOverlay: boolean }): Scan {
  const { columnIds, run, table } = options;
  try {
    return run.store.scan(table.tableId, {
      owner: ownerOf(run.principal, table),
      upTo: run.snapshotSeq,
      columnIds: hasOverlay ? [...columnIds, ...table.primaryKey] : columnIds,
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

/** Rows that are looked up in one go: each may unpack blocks, which takes up to 0.1 ms. */
const LOOKUPS_MAX = 16;

/** The rows of some keys, which differ, in the order of the keys. */
export class KeyLookup implements Operator {
  readonly #options: TableScanOptions;
  readonly #keys: Iterator<Row, void>;
  #isDone = false;

  constructor(options: TableScanOptions, keys: Iterable<Row>) {
    this.#options = options;
    this.#keys = keys[Symbol.iterator]();
  }

  next(): Batch | undefined {
    const { columnIds, run, table } = this.#options;
    const rows = this.#lookUp();
    if (rows.length === 0) return undefined;
    run.noteRead(rows.length);
    const columns = columnIds.map((columnId, position): Vector => {
      const values = rows.map((row) => row[position] ?? null);
      // A single value is not worth an array of its type.
      if (values.length === 1) return { kind: "any", length: 1, values };
      return vectorFromValues(typeOf(table, columnId), values);
    });
    return { rowCount: rows.length, columns };
  }

  close(): void {
    this.#isDone = true;
  }

  /** The next rows that there are; none at the end. */
  #lookUp(): Row[] {
    const { columnIds, run, table } = this.#options;
    const rows: Row[] = [];
    for (let count = 0; !this.#isDone && rows.length < LOOKUPS_MAX; count += 1) {
      if (count % LOOKUPS_MAX === 0) run.checkTime();
      const step = this.#keys.next();
      if (step.done === true) {
        this.#isDone = true;
        break;
      }
      const row = readRow(run, table, { key: step.value, columnIds });
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }
}

/** Reads the live row of a key as the run sees it: its own staged rows first. */
export function readRow(
  run: Run,
  table: TableEntry,
  { key, columnIds }: { key: Row; columnIds: readonly number[] },
): Row | undefined {
  const owner = ownerOf(run.principal, table);
  const staged = run.staged?.stagedOf(table.tableId, owner);
  if (staged !== undefined && staged.size > 0) {
    const types = table.primaryKey.map((columnId) => typeOf(table, columnId));
    const mine = staged.get(keyTextOf(types, key));
    if (mine?.isDeleted === true) return undefined;
    if (mine !== undefined) {
      return columnIds.map((columnId) => stagedValue(table, mine, columnId));
    }
  }
  try {
    return run.store.lookup(table.tableId, { owner, key, upTo: run.snapshotSeq, columnIds });
  } catch (error) {
    throw droppedMeanwhile(error, table);
  }
}

/**
 * What to say in place of an error of the store: a table that was bound and is not there any more
 * was dropped while the statement ran, and the store knows no name of it.
 */
export function droppedMeanwhile(error: unknown, { name, namespace }: TableEntry): unknown {
  if (!(error instanceof DatabaseError) || error.condition !== "TABLE_NOT_FOUND") return error;
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot go on reading ${namespace}.${name}: it was dropped meanwhile`,
    { cause: error, hint: "run the statement again" },
  );
}

/** Whether what a transaction did to a key comes to nothing: INSERT, then DELETE. */
function isNothing({ isDeleted, stored }: StagedRow): boolean {
  return isDeleted && stored === undefined;
}

function stagedValue(table: TableEntry, staged: StagedRow, columnId: number): Value {
  const { isDeleted, row, stored } = staged;
  if (columnId === SEQ_COLUMN_ID) return null;
  if (columnId === DELETED_COLUMN_ID) return isDeleted;
  // A tombstone will have what was stored last, not what the transaction made of it meanwhile.
  const values = isDeleted ? (stored ?? row) : row;
  return values[table.columns.findIndex((column) => column.columnId === columnId)] ?? null;
}

/** The type of a stored or system column. */
function typeOf(table: TableEntry, columnId: number): DataType {
  if (columnId === SEQ_COLUMN_ID) return BIGINT;
  if (columnId === DELETED_COLUMN_ID) return BOOLEAN;
  return table.columns.find((column) => column.columnId === columnId)?.type ?? BIGINT;
}
