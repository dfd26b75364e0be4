/**
 * The first turn of a statement on the event loop.
 *
 * A statement that may leave the event loop has a budget there. When the budget is spent,
 * `Run.checkTime` throws {@linkcode TURN_OVER} out of all operators and expressions. The statement
 * is then forgotten and begun anew in a reader. Reading has no effects, so there is nothing to
 * resume.
 */

/** Ends the first turn of a statement; no failure. A catch on its way passes it on. */
export const TURN_OVER: Error = new Error("The first turn of the statement is over");
