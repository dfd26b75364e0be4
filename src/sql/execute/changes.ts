/**
 * The last step of INSERT, UPDATE and DELETE: checked rows become a commit, or staged rows of the
 * open transaction.
 *
 * Outside a transaction a statement reads and writes at the newest applied state within one turn of
 * the event loop, so it never meets a conflict.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Commit, SEQ_COLUMN_ID, type TableWrite } from "../../storage/mod.ts";
import { type Batch, type Row, textFromValue, type Value } from "../../types/mod.ts";
import { nameOf } from "../bind/dml_target.ts";
import type { Run } from "./run.ts";
import { ownerOf, readRow } from "./scan.ts";
import type { TableRuntime } from "./table_runtime.ts";
import { keyTextOf, sameRow } from "./transaction.ts";

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
    if (run.transaction.isReadOnly) throw readOnly();
    if (runtime.table.kind === "stream") throw noTransaction(runtime);
    const seqs = changes.map((change) => stage(runtime, change, run));
    return { commit: undefined, seqs };
  }
  const writes: TableWrite[] = [];
  const written: number[] = [];
  const owner = ownerOf(run.principal, runtime.table);
  for (const [i, change] of changes.entries()) {
    if (changesNothing(change)) continue;
    const { operation, row } = change;
    written.push(i);
    const last = writes.at(-1);
    if (last?.operation === operation) (last.rows as Row[]).push(row);
    else writes.push({ tableId: runtime.table.tableId, owner, operation, rows: [row] });
  }
  const isKeyless = runtime.keyPositions.length === 0;
  if (isKeyless && writes[0]?.operation === "delete") {
    // One statement does one thing, so all of its changes are in one write.
    const deletedSeqs = changes.map(({ beforeSeq }) => Number(beforeSeq));
    writes[0] = { ...writes[0], deletedSeqs };
  }
  const seqs = wantsSeqs ? changes.map(({ beforeSeq = null }) => beforeSeq) : NO_SEQS;
  if (writes.length === 0) return { commit: undefined, seqs };
  const commit = run.store.apply({ writes, wantsSeqs });
  if (!wantsSeqs) return { commit, seqs };
  const all = [...seqs];
  for (const [i, change] of written.entries()) {
    const seq = commit.seqs?.[i];
    assert(seq !== undefined, "a commit that was asked for seqs has one for each row");
    all[change] = seq;
  }
  return { commit, seqs: all };
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
  return { commit: run.store.apply({ writes: [write] }), seqs: NO_SEQS };
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
  return { commit: run.store.apply({ writes: [write] }), seqs: NO_SEQS };
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
  const names = runtime.keyPositions.map((position) => table.columns[position]?.name ?? "");
  const values = key.map((value, i) => {
    const type = runtime.keyTypes[i];
    return value === null || type === undefined ? "NULL" : textFromValue(type, value);
  });
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot insert into ${nameOf(table)}: key (${names.join(", ")}) = (${values.join(", ")}) already exists`,
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
