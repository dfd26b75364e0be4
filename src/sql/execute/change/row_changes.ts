/**
 * The last step of INSERT, UPDATE and DELETE: checked rows become a commit, or staged rows of the
 * open transaction.
 *
 * Outside a transaction a statement that fits one turn of the event loop reads and writes at the
 * newest applied state, so it never meets a conflict. A longer one: `change_writer.ts`.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { type Commit, SEQ_COLUMN_ID, shownKey, type TableWrite } from "../../../storage/mod.ts";
import type { Batch, Row, Value } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { bytesOfRows, rowBytes } from "../held/row_bytes.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { ownerOf, readRow } from "../operators/scan.ts";
import { type Run, writeStoreOf } from "../run/run.ts";
import type { StorageGrowth } from "../run/storage_meter.ts";
import { sameRow } from "../run/transaction.ts";

export interface RowChange {
  readonly operation: "insert" | "update" | "delete";
  /** New values; of a delete the last ones. */
  readonly row: Row;
  /** The stored row that is replaced; undefined for an insert. */
  readonly before: Row | undefined;
  /** Its seq, where it is known: what an update that changes nothing keeps. NULL: not committed. */
  readonly beforeSeq?: Value;
  /** What RETURNING reads of the rows of FROM or USING. */
  readonly carried?: Row;
}

export interface Applied {
  /** Undefined inside a transaction, or when nothing had to be written. */
  readonly commit: Commit | undefined;
  /** The seq of each change, if they were asked for; NULL for what is not committed yet. */
  readonly seqs: readonly Value[];
}

const NO_SEQS: readonly Value[] = [];
const NO_ROWS: readonly Row[] = [];

/**
 * Applies the changes of one statement to one table, in order.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, DISK_FULL, TRANSACTION_LIMIT, ROW_TOO_LARGE
 */
export function applyChanges(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  { run, wantsSeqs }: { run: Run; wantsSeqs: boolean },
): Applied {
  if (run.transaction !== undefined) {
    return { commit: undefined, seqs: stageChanges(runtime, changes, run) };
  }
  const writes = writesOf(runtime, changes, run);
  if (writes.length === 0) {
    return { commit: undefined, seqs: wantsSeqs ? seqsOf(changes, undefined) : NO_SEQS };
  }
  const make = (): Commit => {
    run.uploads?.list(run.call.nowMicros / 1000);
    return writeStoreOf(run).apply({ writes, wantsSeqs });
  };
  const meter = run.storageMeter;
  const commit =
    meter === undefined
      ? make()
      : meter.charge([growthOf(runtime, changes, { run, filesOf: run.uploads })], make);
  return { commit, seqs: wantsSeqs ? seqsOf(changes, commit.seqs) : NO_SEQS };
}

/**
 * Stages changes in the open transaction; returns the seq that each row reads from now on.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, TRANSACTION_LIMIT
 */
export function stageChanges(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  run: Run,
): readonly Value[] {
  return changes.map((change) => stage(runtime, change, run));
}

/**
 * Refuses a table that the open transaction may not write, if there is one.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function requireStageable(runtime: TableRuntime, { transaction }: Run): void {
  if (transaction === undefined) return;
  if (transaction.isReadOnly) throw readOnly();
  if (runtime.table.kind === "stream") throw noTransaction(runtime);
}

/** What changes write, in order; those that change nothing are left out. */
export function writesOf(
  { keyPositions, table }: TableRuntime,
  changes: readonly RowChange[],
  run: Run,
): TableWrite[] {
  const writes: TableWrite[] = [];
  const owner = ownerOf(run.principal, table);
  for (const change of changes) {
    if (changesNothing(change)) continue;
    const { operation, row } = change;
    const last = writes.at(-1);
    if (last?.operation === operation) (last.rows as Row[]).push(row);
    else writes.push({ tableId: table.tableId, owner, operation, rows: [row] });
  }
  if (keyPositions.length === 0 && writes[0]?.operation === "delete") {
    // One statement does one thing, so all of its changes are in one write.
    const replacedSeqs = changes.map(({ beforeSeq }) => Number(beforeSeq));
    writes[0] = { ...writes[0], replacedSeqs };
  }
  return writes;
}

/** The seq that the row of each change reads now. @param written Those of what was written. */
export function seqsOf(
  changes: readonly RowChange[],
  written: Float64Array | undefined,
): readonly Value[] {
  let next = 0;
  return changes.map((change) => {
    if (changesNothing(change)) return change.beforeSeq ?? null;
    const seq = written?.[next];
    assert(seq !== undefined, "a commit that was asked for seqs has one for each row");
    next += 1;
    return seq;
  });
}

/**
 * Inserts rows outside a transaction, when nobody asks for their seqs: they are the write as they
 * are.
 *
 * @throws {DatabaseError} What {@linkcode applyChanges} throws.
 */
export function insertRows({ table }: TableRuntime, rows: readonly Row[], run: Run): Applied {
  if (rows.length === 0) return { commit: undefined, seqs: NO_SEQS };
  const owner = ownerOf(run.principal, table);
  const write: TableWrite = { tableId: table.tableId, owner, operation: "insert", rows };
  return { commit: applyInsert(table, write, run), seqs: NO_SEQS };
}

/** As {@linkcode insertRows}, with the rows column by column. */
export function insertColumns({ table }: TableRuntime, batch: Batch, run: Run): Applied {
  if (batch.rowCount === 0) return { commit: undefined, seqs: NO_SEQS };
  const owner = ownerOf(run.principal, table);
  const write: TableWrite = {
    tableId: table.tableId,
    owner,
    operation: "insert",
    rows: NO_ROWS,
    batch,
  };
  return { commit: applyInsert(table, write, run), seqs: NO_SEQS };
}

function applyInsert(table: TableEntry, write: TableWrite, run: Run): Commit {
  const { storageMeter } = run;
  const store = writeStoreOf(run);
  if (storageMeter === undefined) return store.apply({ writes: [write] });
  const { batch, owner, rows } = write;
  const bytes = batch === undefined ? sumOf(rows, rowBytes) : bytesOfRows(batch);
  const growth = { owner, bytes, tables: [table], hasFiles: false };
  return storageMeter.charge([growth], () => store.apply({ writes: [write] }));
}

/** The bytes that changes, and the files of `filesOf`, add for their owner. */
export function growthOf(
  { table }: TableRuntime,
  changes: readonly RowChange[],
  { filesOf, run }: { filesOf?: Run["uploads"]; run: Run },
): StorageGrowth {
  const fileBytes = filesOf?.placedBytes ?? 0;
  return {
    owner: ownerOf(run.principal, table),
    bytes: fileBytes + sumOf(changes, growthOfChange),
    tables: [table],
    hasFiles: fileBytes > 0,
  };
}

function growthOfChange({ before, operation, row }: RowChange): number {
  if (operation === "insert") return rowBytes(row);
  return (operation === "delete" ? 0 : rowBytes(row)) - rowBytes(before ?? row);
}

function sumOf<T>(items: readonly T[], bytesOf: (item: T) => number): number {
  let sum = 0;
  for (const item of items) sum += bytesOf(item);
  return sum;
}

function changesNothing({ before, operation, row }: RowChange): boolean {
  return operation === "update" && before !== undefined && sameRow(before, row);
}

/** Stages a change and returns the seq that its row reads from now on. */
function stage(runtime: TableRuntime, change: RowChange, run: Run): Value {
  if (changesNothing(change)) return change.beforeSeq ?? null;
  const { before, operation, row } = change;
  const { transaction } = run;
  assert(transaction !== undefined, "rows are staged inside a transaction");
  const { table } = runtime;
  const owner = ownerOf(run.principal, table);
  const key = runtime.keyOf(row);
  const keyText = keyTextOf(runtime.keyTypes, key);
  const mine = transaction.stagedOf(table.tableId, owner)?.get(keyText);
  if (
    operation === "insert" &&
    (mine === undefined ? isStored(runtime, key, run) : !mine.isDeleted)
  ) {
    throw duplicateKey(runtime, key);
  }
  const stored = mine === undefined ? before : mine.stored;
  transaction.stage({ table, owner }, keyText, {
    row,
    isDeleted: operation === "delete",
    stored,
  });
  return null;
}

/** The live row of a key as the statement sees it: all declared columns, then its `_seq`. */
export function storedRowWithSeq(runtime: TableRuntime, key: Row, run: Run): Row | undefined {
  const columnIds = [...runtime.table.columns.map(({ columnId }) => columnId), SEQ_COLUMN_ID];
  return readRow(run, runtime.table, { key, columnIds });
}

function isStored({ table }: TableRuntime, key: Row, run: Run): boolean {
  return readRow(run, table, { key, columnIds: [SEQ_COLUMN_ID] }) !== undefined;
}

export function duplicateKey(runtime: TableRuntime, key: Row): DatabaseError {
  const { table } = runtime;
  const columns = runtime.keyPositions.flatMap((position) => table.columns[position] ?? []);
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot insert into ${nameOf(table)}: ${shownKey(columns, key)} already exists`,
  );
}

function noTransaction({ table }: TableRuntime): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot write ${nameOf(table)} in a transaction: it is a STREAM table`,
    { hint: "write it by a statement of its own" },
  );
}

function readOnly(): DatabaseError {
  return new DatabaseError("INVALID_OPERATION", "Cannot change rows: the transaction is READ ONLY");
}
