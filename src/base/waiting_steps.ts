/**
 * Runs computations that may have to wait, and that finish in the same tick if nothing has to
 * wait. A generator yields the promise to wait for, or undefined between two steps.
 */

/** A computation that yields promises to wait for, and undefined between two steps. */
export type WaitingSteps<T> = Generator<Promise<unknown> | undefined, T, unknown>;

/** Waits for a value within {@linkcode WaitingSteps}, if it is a promise. */
export function* awaited<T>(value: T | Promise<T>): WaitingSteps<T> {
  if (!(value instanceof Promise)) return value;
  const results: T[] = [];
  yield value.then((result) => results.push(result));
  return results[0] as T;
}

/** Runs steps to completion; returns a promise if they have to wait. */
export function settle<T>(steps: WaitingSteps<T>): T | Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    if (step.value !== undefined) return settleLater(steps, step.value);
    step = steps.next();
  }
  return step.value;
}

async function settleLater<T>(steps: WaitingSteps<T>, first: Promise<unknown>): Promise<T> {
  let waited: Promise<unknown> | undefined = first;
  for (;;) {
    const step: IteratorResult<Promise<unknown> | undefined, T> = await afterwards(steps, waited);
    if (step.done === true) return step.value;
    waited = step.value;
  }
}

/** Continues once a promise has settled. If it rejects, the error is thrown within the steps. */
async function afterwards<T>(
  steps: WaitingSteps<T>,
  waited: Promise<unknown> | undefined,
): Promise<IteratorResult<Promise<unknown> | undefined, T>> {
  try {
    await waited;
  } catch (error) {
    return steps.throw(error);
  }
  return steps.next();
}
