/**
 * How operators read their inputs: straight through, and never long without a look at the clock.
 */
import type { Batch } from "../../../types/mod.ts";
import type { Operator } from "./operator.ts";
import type { Run } from "./run.ts";

/**
 * The next batch that has rows; undefined at the end.
 *
 * @throws TURN_OVER @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
 */
export function nextRows(input: Operator, run: Run): Batch | undefined {
  for (;;) {
    run.checkTime();
    const batch = input.next();
    if (batch === undefined || batch.rowCount > 0) return batch;
  }
}
