/** Runs generators to completion, for callers that cannot yield. */

/** Runs a generator to completion without interruption. Returns its result. */
export function runToCompletion<T>(steps: Generator<unknown, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
