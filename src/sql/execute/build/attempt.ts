/**
 * Computes the values for row lookups before any row is read. If a value cannot be computed, the
 * rows are read without a lookup, and the condition raises the error once it is tested on a row.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { endsRequest } from "../context/request_ledger.ts";

/**
 * Returns the result of a computation; undefined if a value cannot be computed.
 *
 * @throws {DatabaseError} If the request ends while the computation runs.
 */
export function attempted<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
    return undefined;
  }
}
