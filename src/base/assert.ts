/**
 * Assertions: always on, for what can only be false when Tidemark itself has a bug.
 *
 * What a client or a disk can cause is a {@linkcode DatabaseError} or {@linkcode CorruptionError}
 * instead (see `errors.ts`). Messages are plain strings that state the invariant positively, so
 * that a passing assertion builds nothing.
 */

/** A broken invariant: a bug, whose reach `bugs.ts` decides. */
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

/** Returns a value that an invariant says is there. @throws {AssertionError} If it is undefined. */
export function defined<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new AssertionError(message);
  return value;
}

/** Marks a branch that the types rule out. @throws {AssertionError} Always. */
export function unreachable(value: never, message: string): never {
  throw new AssertionError(`${message}: ${String(value)}`);
}
