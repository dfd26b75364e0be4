/** Runs a generator to completion, for callers that cannot yield. */

/** Runs all steps without interruption. Returns the result of the generator. */
export function runToCompletion<T>(steps: Generator<unknown, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
