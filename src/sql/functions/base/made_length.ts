/**
 * Limits the length of the strings that functions produce. Without this limit, a statement of a
 * few bytes could ask for gigabytes, and the runtime would throw.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../../../base/limits.ts";

/**
 * The maximum number of characters in a generated string. One pass over a string of this length
 * takes a tenth of a second; a 256 MiB string would block the server.
 */
const MADE_LENGTH_MAX = 2 * 1024 * 1024;

/**
 * Checks that a function may create an array with `count` elements from a string.
 *
 * @throws {DatabaseError} VALUE_TOO_LONG
 */
export function checkMadeItems(count: number): void {
  if (count <= PARTS_OF_TEXT_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot split the string: the result would have more than ${PARTS_OF_TEXT_MAX} parts`,
    { hint: "split a shorter string" },
  );
}

/** Requires that a generated string is not too long. @throws {DatabaseError} VALUE_TOO_LONG */
export function checkMadeLength(length: number): void {
  if (length <= MADE_LENGTH_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot create a string of ${length} characters: the maximum is ${MADE_LENGTH_MAX}`,
  );
}
