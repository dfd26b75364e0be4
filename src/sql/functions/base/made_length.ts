/**
 * How long a text may become that a function makes: a statement of a few bytes must not ask for
 * gigabytes, and the runtime throws on them.
 */
import { DatabaseError } from "../../../base/errors.ts";

/** Characters of a text that a function may make out of nothing: 256 MiB would stop the server. */
const MADE_LENGTH_MAX = 4 * 1024 * 1024;

/** @throws {DatabaseError} VALUE_TOO_LONG */
export function checkMadeLength(length: number): void {
  if (length <= MADE_LENGTH_MAX) return;
  throw new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot make a text of ${length} characters: at most ${MADE_LENGTH_MAX} are allowed`,
  );
}
