/**
 * The last step of INSERT, UPDATE and DELETE: checked rows become a commit, or staged rows of the
 * open transaction.
 *
 * Outside a transaction a statement reads and writes at the newest applied state within one turn of
 * the event loop, so it never meets a conflict.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Commit, TableWrite } from "../../storage/mod.ts";
import { type Row, textFromValue } from "../../types/mod.ts";
import type { Run } from "./run.ts";
import { ownerOf, readRow } from "./scan.ts";
import { nameOf, type TableRuntime } from "./table_runtime.ts";
import { keyTextOf, sameRow } from "./transaction.ts";

export interface RowChange {
  readonly operation: "insert" | "update" | "delete";
  /** New values; of a delete the last ones. */
  readonly row: Row;
  /** The stored row that is replaced; undefined for an insert. */
  readonly before: Row | undefined;
}

export interface Applied {
  /** Undefined inside a transaction, or when nothing had to be written. */
  readonly commit: Commit | undefined;
  /** The seq of each change; undefined where no version was written. */
  readonly seqs: readonly (number | undefined)[];
}

const NO_SEQS: readonly undefined[] = [];

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
    for (const change of changes) stage(runtime, change, run);
    return { commit: undefined, seqs: changes.map(() => undefined) };
  }
  const writes: TableWrite[] = [];
  const written: number[] = [];
  const owner = ownerOf(run.principal, runtime.table);
  for (const [i, { before, operation, row }] of changes.entries()) {
    const isSame = operation === "update" && before !== undefined && sameRow(before, row);
    if (isSame) continue;
    written.push(i);
    const last = writes.at(-1);
    if (last?.operation === operation) (last.rows as Row[]).push(row);
    else writes.push({ tableId: runtime.table.tableId, owner, operation, rows: [row] });
  }
  if (writes.length === 0) return { commit: undefined, seqs: changes.map(() => undefined) };
  const commit = run.store.apply({ writes, wantsSeqs });
  if (!wantsSeqs) return { commit, seqs: NO_SEQS };
  const seqs: (number | undefined)[] = changes.map(() => undefined);
  for (const [i, change] of written.entries()) {
    const seq = commit.seqs?.[i];
    assert(seq !== undefined, "a commit that was asked for seqs has one for each row");
    seqs[change] = seq;
  }
  return { commit, seqs };
}

function stage(runtime: TableRuntime, { before, operation, row }: RowChange, run: Run): void {
  const { transaction } = run;
  assert(transaction !== undefined, "rows are staged inside a transaction");
  const { table } = runtime;
  const owner = ownerOf(run.principal, table);
  const key = runtime.keyOf(row);
  const keyText = keyTextOf(runtime.keyTypes, key);
  const mine = transaction.stagedOf(table.tableId, owner)?.get(keyText);
  if (
    operation === "insert" &&
    (mine === undefined ? storedRow(runtime, key, run) !== undefined : !mine.isDeleted)
  ) {
    throw duplicateKey(runtime, key);
  }
  const stored = mine === undefined ? before : mine.stored;
  transaction.stage({ table, owner }, keyText, {
    row,
    isDeleted: operation === "delete",
    stored,
  });
}

/** The live row of a key as the statement sees it, all declared columns. */
export function storedRow(runtime: TableRuntime, key: Row, run: Run): Row | undefined {
  const columnIds = runtime.table.columns.map(({ columnId }) => columnId);
  return readRow(run, runtime.table, { key, columnIds });
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

function readOnly(): DatabaseError {
  return new DatabaseError("INVALID_OPERATION", "Cannot change rows: the transaction is READ ONLY");
}
