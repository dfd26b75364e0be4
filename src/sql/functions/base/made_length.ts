/**
 * How long a text may become that a function makes: a statement of a few bytes must not ask for
 * gigabytes, and the runtime throws on them.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../../../base/limits.ts";

/**
 * The most characters of a text that a function may generate. A text of 256 MiB would stop the
 * server, and one pass over a text of this length takes a tenth of a second.
 */
const MADE_LENGTH_MAX = 2 * 1024 * 1024;

/** Limits the items of an array that is made from a text. @throws {DatabaseError} VALUE_TOO_LONG */
export function checkMadeItems(count: number): void {
  if (count <= PARTS_OF_TEXT_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot split a text into more than ${PARTS_OF_TEXT_MAX} parts`,
    { hint: "split a shorter text" },
  );
}

/** @throws {DatabaseError} VALUE_TOO_LONG */
export function checkMadeLength(length: number): void {
  if (length <= MADE_LENGTH_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot make a text of ${length} characters: at most ${MADE_LENGTH_MAX} are allowed`,
  );
}
