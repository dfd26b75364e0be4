/** Assigns the files uploaded with a statement to the rows that the statement writes. */
import { SHARED_OWNER } from "../../../storage/mod.ts";
import type { Row } from "../../../types/mod.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { ownerOf } from "../operators/scan.ts";
import type { RowChange } from "./row_changes.ts";

/** Assigns files to rows, and charges their bytes to the rows' owner. */
export function placeUploads(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): void {
  const rows = changes.flatMap(({ operation, row }) => (operation === "delete" ? [] : [row]));
  const { filePositions, table } = runtime;
  const target = {
    table,
    owner: ownerOf(context.principal, table),
    filePositions,
    keyOf: (row: Row) => runtime.keyOf(row),
  };
  context.uploads?.place(target, rows);
  const fileBytes = context.uploads?.placedBytes ?? 0;
  if (fileBytes > 0 && target.owner !== SHARED_OWNER) {
    context.transaction?.grow(target, fileBytes, true);
  }
}
