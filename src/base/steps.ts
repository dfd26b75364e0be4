/**
 * Work that is written in steps, for who has no turns to give.
 */

/** Runs steps to their end. */
export function inOneTurn<T>(steps: Generator<unknown, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
