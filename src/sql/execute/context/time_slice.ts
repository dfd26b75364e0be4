/**
 * The first time slice of a statement on the event loop.
 *
 * A statement that may leave the event loop has a time budget there. When the budget is spent,
 * `ExecutionContext.checkTime` throws {@linkcode SLICE_OVER} out of all operators and expressions.
 * The statement is then discarded and restarted in a reader. Reading has no effects, so there is
 * nothing to resume.
 */

/**
 * Ends the first time slice of a statement. This is not a failure, so every catch on the way must
 * rethrow it.
 */
export const SLICE_OVER: Error = new Error("The first time slice of the statement is over");
