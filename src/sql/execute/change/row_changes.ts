/**
 * Performs the last step of INSERT, UPDATE and DELETE: turns checked rows into a commit, or into
 * staged rows of the open transaction.
 *
 * Outside a transaction, a statement that fits into one tick of the event loop reads and writes at
 * the newest applied state, so it never encounters a conflict. `change_writer.ts` writes longer
 * statements.
 */
import { assert, defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { settle, type WaitingSteps } from "../../../base/waiting_steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { type Commit, SEQ_COLUMN_ID, type TableWrite } from "../../../storage/mod.ts";
import type { Batch, Row, Value } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { type ExecutionContext, writeStoreOf } from "../context/execution_context.ts";
import { ReferenceClaims } from "../context/reference_claims.ts";
import type { StorageGrowth } from "../context/storage_meter.ts";
import { sameRow } from "../context/transaction.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { bytesOfRows, rowBytes } from "../materialised/row_bytes.ts";
import { ownerOf, readRow } from "../operators/scan.ts";
import { whenThere } from "./evaluation.ts";
import { followAll } from "./followed_references.ts";
import { requireParents, type WrittenRow, writtenIn } from "./references.ts";
import { duplicateKey, requireFreeKeys, uniqueIndexesOf } from "./unique_index.ts";

export interface RowChange {
  readonly operation: "insert" | "update" | "delete";
  /** The new values of the changed row, or the last values of a deleted row. */
  readonly row: Row;
  /** The stored row that is replaced; undefined for an insert. */
  readonly before: Row | undefined;
  /**
   * The seq of `before`; absent if the seq is unknown, NULL if `before` is not committed. After an
   * update that changes nothing, the row keeps this seq.
   */
  readonly beforeSeq?: Value;
  /** The values from FROM or USING that RETURNING reads. */
  readonly carried?: Row;
}

export interface Applied {
  /**
   * The commit of the changes; undefined inside a transaction, or if nothing had to be written.
   */
  readonly commit: Commit | undefined;
  /**
   * The seq of each change, if seqs were requested; NULL for a change that has not been committed
   * yet.
   */
  readonly seqs: readonly Value[];
}

const NO_SEQS: readonly Value[] = [];
const NO_ROWS: readonly Row[] = [];

/** The number of held-back changes that are staged in one step. */
const HELD_ROWS_PER_STEP = 256;

/**
 * Applies a statement's changes to one table, in order.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, DISK_FULL, TRANSACTION_LIMIT, ROW_TOO_LARGE
 */
export function applyChanges(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  { context, wantsSeqs }: { context: ExecutionContext; wantsSeqs: boolean },
): Applied | Promise<Applied> {
  if (context.parts !== undefined) return holdChanges(runtime, changes, context);
  if (context.transaction !== undefined) {
    releaseKeys(runtime, changes, context);
    const seqs = stageChanges(runtime, changes, context);
    const followed = settle(followAll(runtime, changes, context));
    return whenThere(followed, () => ({ commit: undefined, seqs }));
  }
  requireParentsNow(runtime, writtenIn(changes), context);
  const writes = writesOf(runtime, changes, context);
  if (writes.length === 0) {
    return { commit: undefined, seqs: wantsSeqs ? seqsOf(changes, undefined) : NO_SEQS };
  }
  const make = (): Commit => {
    context.uploads?.list(context.call.nowMicros / 1000);
    return writeStoreOf(context).apply({ writes, wantsSeqs });
  };
  const meter = context.storageMeter;
  const commit =
    meter === undefined
      ? make()
      : meter.charge([growthOf(runtime, changes, { context, filesOf: context.uploads })], make);
  return { commit, seqs: wantsSeqs ? seqsOf(changes, commit.seqs) : NO_SEQS };
}

/**
 * Holds back the changes of one part of a statement until all parts have read their rows.
 *
 * @param follow Called once all parts have been staged. If `follow` is absent, foreign key actions
 *   are carried out instead.
 */
export function holdChanges(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
  follow: () => WaitingSteps<void> = () => followAll(runtime, changes, context),
): Applied {
  const parts = defined(
    context.parts,
    "WITH execution: state of the data-modifying parts is missing",
  );
  parts.hold({
    rowCount: changes.length,
    staging: heldStaging(runtime, changes, context),
    follow,
  });
  const seqs = changes.map((change) =>
    changesNothing(change) ? (change.beforeSeq ?? null) : null,
  );
  return { commit: undefined, seqs };
}

function* heldStaging(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): Generator<undefined, void> {
  for (const some of inSteps(changes)) {
    context.requireUnaltered(runtime.table);
    releaseKeys(runtime, some, context);
    yield;
  }
  for (const some of inSteps(changes)) {
    context.requireUnaltered(runtime.table);
    for (const change of some) requireChangedOnce(runtime, change, context);
    stageChanges(runtime, some, context);
    yield;
  }
}

function* inSteps(changes: readonly RowChange[]): Generator<readonly RowChange[], void> {
  for (let from = 0; from < changes.length; from += HELD_ROWS_PER_STEP) {
    yield changes.slice(from, from + HELD_ROWS_PER_STEP);
  }
}

/**
 * Requires that only one part of a statement changes a given stored row. PostgreSQL would carry
 * out only one of the changes, chosen arbitrarily.
 *
 * @throws {DatabaseError} CARDINALITY_VIOLATION
 */
function requireChangedOnce(
  runtime: TableRuntime,
  { before }: RowChange,
  { parts, principal }: ExecutionContext,
): void {
  if (before === undefined) return;
  const { table } = runtime;
  const text = keyTextOf(runtime.keyTypes, runtime.keyOf(before));
  if (parts?.noteChanged(table.tableId, ownerOf(principal, table), text) !== false) return;
  throw new DatabaseError(
    "CARDINALITY_VIOLATION",
    `Cannot change a row of ${nameOf(table)} twice: two parts of the statement change it`,
    {
      hint: "change the row in only one part of the statement, or send two statements in a transaction",
    },
  );
}

/**
 * Requires that the parents of the rows committed in this tick exist.
 *
 * @throws {DatabaseError}
 */
function requireParentsNow(
  { table }: TableRuntime,
  rows: readonly WrittenRow[],
  context: ExecutionContext,
): void {
  if (table.foreignKeys === undefined) return;
  const owner = ownerOf(context.principal, table);
  requireParents(table, rows, { claims: new ReferenceClaims(), context, owner });
}

/** Whether an UPDATE gives a row a different primary key. */
function movesKey(runtime: TableRuntime, { before, operation, row }: RowChange): boolean {
  if (operation !== "update" || before === undefined) return false;
  if (runtime.keyPositions.every((position) => before[position] === row[position])) return false;
  const textOf = (each: Row): string => keyTextOf(runtime.keyTypes, runtime.keyOf(each));
  return textOf(before) !== textOf(row);
}

/**
 * Stages the deletion of the rows that get different primary keys. This must happen before any
 * other change of the statement is staged, so that one row can take over the key of another.
 */
export function releaseKeys(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): void {
  for (const change of changes) {
    const { before } = change;
    if (before === undefined || !movesKey(runtime, change)) continue;
    stage(runtime, { operation: "delete", row: before, before }, context);
  }
}

/**
 * Stages changes in the open transaction. A row with a different primary key is inserted, after
 * {@linkcode releaseKeys} has deleted the row with its former key. Returns the new seq of each
 * row.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, TRANSACTION_LIMIT
 */
export function stageChanges(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): readonly Value[] {
  const seqs = changes.map((change) => stage(runtime, change, context));
  if (uniqueIndexesOf(runtime).length > 0) {
    const owner = ownerOf(context.principal, runtime.table);
    for (const { before, operation, row } of changes) {
      if (operation === "delete") continue;
      requireFreeKeys(runtime, { row, owner, isNew: before === undefined }, context);
    }
  }
  return seqs;
}

/**
 * Computes the generated columns of changed rows, and checks the rows against their constraints.
 */
export function completedChanges(
  changes: readonly RowChange[],
  runtime: TableRuntime,
  context: ExecutionContext,
): readonly RowChange[] {
  const given = changes.flatMap(({ operation, row }) => (operation === "delete" ? [] : [row]));
  const rows = runtime.completed(given, context);
  runtime.check(rows, context);
  if (rows === given) return changes;
  let next = 0;
  return changes.map((change) => {
    if (change.operation === "delete") return change;
    const row = rows[next] ?? change.row;
    next += 1;
    return { ...change, row };
  });
}

/**
 * Refuses a change that is not allowed in the open transaction: any change if the transaction is
 * READ ONLY, and any change to a STREAM table.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function requireStageable(runtime: TableRuntime, { transaction }: ExecutionContext): void {
  if (transaction === undefined) return;
  if (transaction.isReadOnly) throw readOnly();
  if (runtime.table.kind === "stream") throw noTransaction(runtime);
}

/** Converts changes to writes, in the same order. Changes without an effect are omitted. */
export function writesOf(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): TableWrite[] {
  const { keyPositions, table } = runtime;
  const writes: TableWrite[] = [];
  const owner = ownerOf(context.principal, table);
  for (const change of changes) {
    if (changesNothing(change)) continue;
    const { operation, row } = change;
    assert(!movesKey(runtime, change), "row change: primary key changed outside a transaction");
    const last = writes.at(-1);
    if (last?.operation === operation) (last.rows as Row[]).push(row);
    else writes.push({ tableId: table.tableId, owner, operation, rows: [row] });
  }
  if (keyPositions.length === 0 && writes[0]?.operation === "delete") {
    // A statement only inserts, only updates or only deletes, so all of its changes are in a
    // single write.
    const replacedSeqs = changes.map(({ beforeSeq }) => Number(beforeSeq));
    writes[0] = { ...writes[0], replacedSeqs };
  }
  return writes;
}

/**
 * Returns, for each change, the current seq of its row.
 * @param written The seqs of the writes.
 */
export function seqsOf(
  changes: readonly RowChange[],
  written: Float64Array | undefined,
): readonly Value[] {
  let next = 0;
  return changes.map((change) => {
    if (changesNothing(change)) return change.beforeSeq ?? null;
    const seq = written?.[next];
    assert(seq !== undefined, "row change: commit returned no seq for a row");
    next += 1;
    return seq;
  });
}

/**
 * Inserts rows outside a transaction, for statements that do not use the new seqs. The rows are
 * passed on unchanged.
 *
 * @throws {DatabaseError} The same errors as {@linkcode applyChanges}.
 */
export function insertRows(
  runtime: TableRuntime,
  rows: readonly Row[],
  context: ExecutionContext,
): Applied {
  if (rows.length === 0) return { commit: undefined, seqs: NO_SEQS };
  requireParentsNow(
    runtime,
    rows.map((row) => ({ row })),
    context,
  );
  const { table } = runtime;
  const owner = ownerOf(context.principal, table);
  const write: TableWrite = { tableId: table.tableId, owner, operation: "insert", rows };
  return { commit: applyInsert(table, write, context), seqs: NO_SEQS };
}

/** Like {@linkcode insertRows}, but inserts from columns. */
export function insertColumns(
  { table }: TableRuntime,
  batch: Batch,
  context: ExecutionContext,
): Applied {
  if (batch.rowCount === 0) return { commit: undefined, seqs: NO_SEQS };
  const owner = ownerOf(context.principal, table);
  const write: TableWrite = {
    tableId: table.tableId,
    owner,
    operation: "insert",
    rows: NO_ROWS,
    batch,
  };
  return { commit: applyInsert(table, write, context), seqs: NO_SEQS };
}

function applyInsert(table: TableEntry, write: TableWrite, context: ExecutionContext): Commit {
  const { storageMeter } = context;
  const store = writeStoreOf(context);
  if (storageMeter === undefined) return store.apply({ writes: [write] });
  const { batch, owner, rows } = write;
  const bytes = batch === undefined ? sumOf(rows, rowBytes) : bytesOfRows(batch);
  const growth = { owner, bytes, tables: [table], hasFiles: false };
  return storageMeter.charge([growth], () => store.apply({ writes: [write] }));
}

/**
 * Returns the number of bytes by which changes, including the files of `filesOf`, increase the
 * storage used by their owner.
 */
export function growthOf(
  { table }: TableRuntime,
  changes: readonly RowChange[],
  { filesOf, context }: { filesOf?: ExecutionContext["uploads"]; context: ExecutionContext },
): StorageGrowth {
  const fileBytes = filesOf?.placedBytes ?? 0;
  return {
    owner: ownerOf(context.principal, table),
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

/** Stages a change. Returns the new seq of the row. */
function stage(runtime: TableRuntime, change: RowChange, context: ExecutionContext): Value {
  if (changesNothing(change)) return change.beforeSeq ?? null;
  const { before, operation, row } = change;
  const { transaction } = context;
  assert(transaction !== undefined, "row change: rows staged outside a transaction");
  const { table } = runtime;
  const owner = ownerOf(context.principal, table);
  const key = runtime.keyOf(row);
  const keyText = keyTextOf(runtime.keyTypes, key);
  const mine = transaction.stagedOf(table.tableId, owner)?.get(keyText);
  const isMoved = movesKey(runtime, change);
  if (operation === "insert" || isMoved) {
    const isTaken = mine === undefined ? isStored(runtime, key, context) : !mine.isDeleted;
    if (isTaken) throw duplicateKey(runtime, key, isMoved ? "update" : "insert");
  }
  const stored = mine === undefined ? (isMoved ? undefined : before) : mine.stored;
  transaction.stage({ table, owner }, keyText, {
    row,
    isDeleted: operation === "delete",
    stored,
  });
  return null;
}

function isStored({ table }: TableRuntime, key: Row, context: ExecutionContext): boolean {
  return readRow(context, table, { key, columnIds: [SEQ_COLUMN_ID] }) !== undefined;
}

function noTransaction({ table }: TableRuntime): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot write to ${nameOf(table)} in a transaction: STREAM tables do not support transactions`,
    { hint: "write to the table outside the transaction" },
  );
}

function readOnly(): DatabaseError {
  return new DatabaseError("INVALID_OPERATION", "Cannot change rows: the transaction is READ ONLY");
}
