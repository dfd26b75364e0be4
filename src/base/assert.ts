/**
 * Provides assertions, which are always on. An assertion checks a condition that is false only if
 * Tidemark has a bug.
 *
 * Failures that a client or a disk can cause are a {@linkcode DatabaseError} or {@linkcode
 * CorruptionError} instead (see `errors.ts`). Messages are plain strings that state the invariant,
 * so that a passing assertion creates no string.
 */

/** A violated invariant, which is a bug. `bugs.ts` decides how far its effects reach. */
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

/** Returns a value that an invariant guarantees. @throws {AssertionError} If it is undefined. */
export function defined<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new AssertionError(message);
  return value;
}

/** Marks a branch that the types make unreachable. @throws {AssertionError} Always. */
export function unreachable(value: never, message: string): never {
  throw new AssertionError(`${message}: ${String(value)}`);
}
