/**
 * Limits the length of strings that functions create. Otherwise, a statement of a few bytes could
 * request gigabytes, for which the runtime would throw an error.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../../../base/limits.ts";

/**
 * The maximum number of characters in a generated text. A text of 256 MiB would block the server,
 * whereas one pass over a text of this length takes a tenth of a second.
 */
const MADE_LENGTH_MAX = 2 * 1024 * 1024;

/**
 * Limits the number of items in an array that is created from a text.
 *
 * @throws {DatabaseError} VALUE_TOO_LONG
 */
export function checkMadeItems(count: number): void {
  if (count <= PARTS_OF_TEXT_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot split a string into more than ${PARTS_OF_TEXT_MAX} parts`,
    { hint: "split a shorter text" },
  );
}

/** Limits the length of a generated text. @throws {DatabaseError} VALUE_TOO_LONG */
export function checkMadeLength(length: number): void {
  if (length <= MADE_LENGTH_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot create a string of ${length} characters: the maximum is ${MADE_LENGTH_MAX}`,
  );
}
