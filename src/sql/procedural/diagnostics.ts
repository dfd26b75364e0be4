/** Runs GET DIAGNOSTICS and GET STACKED DIAGNOSTICS. */
import { DatabaseError } from "../../base/errors.ts";
import { BIGINT, TEXT } from "../../types/mod.ts";
import type { ProgramSteps, Typed } from "./asks.ts";
import { assignTo } from "./assignments.ts";
import { ProcedureError, sqlstateOf } from "./conditions.ts";
import { type ProgramFrame, placeOf } from "./frame.ts";
import type { DiagnosticsNode } from "./tree.ts";

export function* runDiagnostics(
  { isStacked, items, line }: DiagnosticsNode,
  frame: ProgramFrame,
): ProgramSteps<void> {
  const error = frame.caught.at(-1);
  if (isStacked && error === undefined) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      "Cannot run GET STACKED DIAGNOSTICS: no error has been caught",
      { hint: "use it in an exception handler, after EXCEPTION", sqlstate: "0Z002" },
    );
  }
  for (const { name, target } of items) {
    const value: Typed =
      error === undefined || !isStacked
        ? currentItem(name, { frame, line })
        : { type: TEXT, value: stackedItem(name, error) };
    yield* assignTo(target, value, frame);
  }
}

function currentItem(name: string, { frame, line }: { frame: ProgramFrame; line: number }): Typed {
  if (name === "row_count") return { type: BIGINT, value: frame.rowCount };
  return { type: TEXT, value: `${placeOf(frame)} line ${line} at GET DIAGNOSTICS` };
}

function stackedItem(name: string, error: DatabaseError): string {
  const known = error instanceof ProcedureError ? error : undefined;
  const { raised = {}, trace = [] } = known ?? {};
  const hint = known === undefined ? error.hint : known.ownHint;
  const items: Readonly<Record<string, string | undefined>> = {
    returned_sqlstate: sqlstateOf(error),
    message_text: error.message,
    pg_exception_detail: raised.detail,
    pg_exception_hint: hint,
    pg_exception_context: trace.join("\n"),
    column_name: raised.column,
    constraint_name: raised.constraint,
    pg_datatype_name: raised.datatype,
    schema_name: raised.schema,
    table_name: raised.table,
  };
  return items[name] ?? "";
}
