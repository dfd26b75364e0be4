/** Reads an operator's input until rows arrive, with regular time checks. */
import type { Batch } from "../../../types/mod.ts";
import type { ExecutionContext } from "./execution_context.ts";
import type { Operator } from "./operator.ts";

/**
 * Returns the next batch that has rows; undefined at the end of the input.
 *
 * @throws SLICE_OVER
 * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
 */
export function nextRows(input: Operator, context: ExecutionContext): Batch | undefined {
  for (;;) {
    context.checkTime();
    const batch = input.next();
    if (batch === undefined || batch.rowCount > 0) return batch;
  }
}
