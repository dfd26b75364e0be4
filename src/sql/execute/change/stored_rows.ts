/** Reads stored rows by key while a statement changes them. */
import { DatabaseError } from "../../../base/errors.ts";
import { SEQ_COLUMN_ID } from "../../../storage/mod.ts";
import type { Row } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { sameRow } from "../context/transaction.ts";
import { readRow } from "../operators/scan.ts";
import type { RowChange } from "./row_changes.ts";

/**
 * Returns the live row with a given key, as the statement sees it: all declared columns, followed
 * by `_seq`.
 */
export function storedRowWithSeq(
  runtime: TableRuntime,
  key: Row,
  context: ExecutionContext,
): Row | undefined {
  const columnIds = [...runtime.table.columns.map(({ columnId }) => columnId), SEQ_COLUMN_ID];
  return readRow(context, runtime.table, { key, columnIds });
}

/**
 * Requires that the row being replaced has not changed since the statement read it.
 * @throws {DatabaseError} INVALID_OPERATION if a BEFORE trigger of the statement has changed it.
 */
export function requireCurrent(
  runtime: TableRuntime,
  { before, operation }: RowChange,
  context: ExecutionContext,
): void {
  if (before === undefined) return;
  const now = storedRowWithSeq(runtime, runtime.keyOf(before), context)?.slice(0, -1);
  if (now !== undefined && sameRow(before, now)) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot ${operation} a row of ${nameOf(runtime.table)}: a BEFORE trigger fired by the same ` +
      "statement has already changed it",
    { hint: "let an AFTER trigger change other rows instead" },
  );
}
