/**
 * Provides assertions, which are always enabled. An assertion checks a condition that can be false
 * only if Tidemark has a bug.
 *
 * A failure that a client or a disk can cause is a {@linkcode DatabaseError} or a {@linkcode
 * CorruptionError} instead (see `errors.ts`). Messages are plain string literals, so that a
 * passing assertion creates no string. They name the part of the server and the broken invariant:
 * "memtable: rows are not in ascending order of seq".
 */

/**
 * A violated invariant, which means that Tidemark has a bug. `bugs.ts` decides how much work ends
 * as a result.
 */
export class AssertionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AssertionError";
  }
}

/** Checks an invariant. @throws {AssertionError} If `condition` is false. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/**
 * Returns a value that an invariant guarantees to exist. @throws {AssertionError} If it is
 * undefined.
 */
export function defined<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new AssertionError(message);
  return value;
}

/** Marks a branch that the types make unreachable. @throws {AssertionError} On every call. */
export function unreachable(value: never, message: string): never {
  throw new AssertionError(`${message}: ${String(value)}`);
}
