/**
 * Converts untyped literals and parameters to the required type just before their statement runs.
 * This includes literals that no row would ever evaluate: `CASE WHEN true THEN 1 ELSE 'a' END`
 * fails, and so does `id = $1` with the value "a" on an empty table.
 *
 * Parameters, and literals lifted out by the plan cache, differ between executions, so they are
 * converted at each execution.
 */
import { DatabaseError, withDetails } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import type { LiteralRead } from "../bound_expressions.ts";

/**
 * Converts literals and parameters before the statement runs.
 *
 * @param slots The values of the parameters, followed by those of lifted literals.
 * @param startOf Returns the position, in the SQL, of the literal that a slot contains.
 * @throws {DatabaseError} The error of the first value that cannot be converted, with the position
 *   of a literal or the number of a parameter.
 */
export function readLiterals(
  reads: readonly LiteralRead[],
  slots: readonly Value[] = [],
  startOf?: (slot: number) => number | undefined,
): void {
  for (const { parameter, position, read, slot, value } of reads) {
    if (parameter !== undefined && parameter.uses > 1) continue;
    const given = slot === undefined ? value : (slots[slot] ?? null);
    if (given === null) continue;
    try {
      read(given);
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
      if (parameter !== undefined) {
        throw withDetails(error, { message: `${error.message} (parameter $${parameter.number})` });
      }
      const at = (slot === undefined ? undefined : startOf?.(slot)) ?? position;
      throw withDetails(error, { position: at });
    }
  }
}

/**
 * Whether the statement contains a constant that cannot be converted. If so, every execution
 * fails.
 */
export function hasFaultyLiteral(reads: readonly LiteralRead[]): boolean {
  return reads.some(({ slot }) => slot === undefined);
}
