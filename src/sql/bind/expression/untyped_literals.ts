/**
 * Untyped literals, which are read as the type of their place when the turn of their statement
 * comes, also those that no row would ever ask for: `CASE WHEN true THEN 1 ELSE 'a' END` fails.
 *
 * Literals that the plan cache lifted out are other ones each time, so they are read at each run.
 */
import { DatabaseError, withDetails } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import type { LiteralRead } from "../bound_expressions.ts";

/**
 * Reads literals before the statement runs.
 *
 * @param startOf Where the literal of a slot stands in the text.
 * @throws {DatabaseError} What reading one of them raises, with its position.
 */
export function readLiterals(
  reads: readonly LiteralRead[],
  slots: readonly Value[] = [],
  startOf?: (slot: number) => number | undefined,
): void {
  for (const { position, read, slot, value } of reads) {
    const given = slot === undefined ? value : (slots[slot] ?? null);
    if (given === null) continue;
    try {
      read(given);
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
      const at = (slot === undefined ? undefined : startOf?.(slot)) ?? position;
      throw withDetails(error, { position: at });
    }
  }
}

/** Whether one of them is a constant, which cannot be read: the statement fails each time. */
export function hasFaultyLiteral(reads: readonly LiteralRead[]): boolean {
  return reads.some(({ slot }) => slot === undefined);
}
