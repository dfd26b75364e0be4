/**
 * Checks, while a statement or a live query is bound, that its request may go on and that the bound
 * form fits its memory. Rows that it holds are counted in `execute/held/memory_budget.ts`.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Watch } from "../bind/binding.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";

/** The least memory limit before the run, even if the limit for rows is lower. */
const UNRUN_BYTES_MIN: number = 64 * 2 ** 20;

/** Returns a check that throws STATEMENT_TIMEOUT, CANCELLED or MEMORY_EXCEEDED. */
export function watchOf(
  ledger: RequestLedger,
  { clock, limits }: Pick<SqlEnvironment, "clock" | "limits">,
): Watch {
  const bytesMax = Math.max(limits.queryMemoryBytes, UNRUN_BYTES_MIN);
  return (bytes) => {
    checkDeadline(ledger, clock);
    if (bytes <= bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: its expressions need more than ${bytesMax} bytes before it runs`,
      { hint: "write a shorter statement, or raise performance.query_memory_bytes" },
    );
  };
}
