/**
 * Limits the first time slice of a statement on the event loop.
 *
 * A statement that can move to a reader thread gets only a limited time on the event loop. When
 * this time is over, `ExecutionContext.checkTime` throws {@linkcode SLICE_OVER} through all
 * operators and expressions. The operators are then discarded, and the statement is restarted in a
 * reader thread. Reading has no effects, so a restart is safe.
 */

/**
 * Thrown to end the first time slice of a statement. This is not a failure, so every enclosing
 * catch clause must rethrow it.
 */
export const SLICE_OVER: Error = new Error("The first time slice of the statement is over");
