/**
 * Checks, while a statement or a live query is bound, that its request may continue and that its
 * bound form does not take too much memory. Memory for rows is counted in
 * `execute/materialised/memory_budget.ts`.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { BindingWatch } from "../bind/binding.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { SqlEnvironment } from "../ports/environment.ts";

/**
 * The minimum memory limit for binding a statement. It applies even if the limit for rows is
 * lower.
 */
const UNRUN_BYTES_MIN: number = 64 * 2 ** 20;

/**
 * Returns a check that throws STATEMENT_TIMEOUT, CANCELLED or MEMORY_EXCEEDED if the request must
 * end.
 */
export function watchOf(
  ledger: RequestLedger,
  { clock, limits }: Pick<SqlEnvironment, "clock" | "limits">,
): BindingWatch {
  const bytesMax = Math.max(limits.queryMemoryBytes, UNRUN_BYTES_MIN);
  return (bytes) => {
    checkDeadline(ledger, clock);
    if (bytes <= bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: preparing its expressions takes more than ${bytesMax} bytes ` +
        "of memory",
      { hint: "write a shorter statement, or raise performance.query_memory_bytes" },
    );
  };
}
