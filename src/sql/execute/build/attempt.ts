/**
 * Computes values for row look-ups before any row is read. If a value cannot be computed, the rows
 * are read without the look-up, and the condition raises the error once it is tested on a row.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { endsRequest } from "../context/request_ledger.ts";

/**
 * Returns the result of the computation, or undefined if a value cannot be computed.
 *
 * @throws {DatabaseError} if the request ends meanwhile.
 */
export function attempted<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
    return undefined;
  }
}
