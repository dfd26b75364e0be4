/**
 * Runs computations that may have to wait, and that finish in the same tick if nothing has to
 * wait. Such a computation is a generator, which yields a promise to wait for, or undefined where
 * no wait is necessary.
 */

/** A computation that yields promises to wait for, or undefined where no wait is necessary. */
export type WaitingSteps<T> = Generator<Promise<unknown> | undefined, T, unknown>;

/** Waits for a value within {@linkcode WaitingSteps} if the value is a promise. */
export function* awaited<T>(value: T | Promise<T>): WaitingSteps<T> {
  if (!(value instanceof Promise)) return value;
  const results: T[] = [];
  yield value.then((result) => results.push(result));
  return results[0] as T;
}

/** Runs a computation to completion. Returns a promise only if the computation has to wait. */
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

/**
 * Continues a computation once a promise has settled. If the promise rejects, its error is thrown
 * within the computation.
 */
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
