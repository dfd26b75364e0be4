/**
 * Splits the work of an async function into time slices: once a slice is used up, the function
 * yields before it continues. Between two checks of the time, it does only a bounded amount of
 * work.
 */
import type { Clock } from "./clock.ts";
import { FURTHER_SLICE_MS_MAX } from "./limits.ts";

/** The maximum number of steps in a time slice, after which other work gets a chance to run. */
const STEPS_PER_SLICE = 8;

export interface PauserOptions {
  /** Called before each step of the work and after each wait. Throws if the work has to end. */
  readonly check?: () => void;
  /**
   * The length of the first time slice, in milliseconds; absent if all slices are equally long.
   */
  readonly firstSliceMs?: number;
}

/**
 * Returns a function to be awaited before each step of some work. It lets other work run once the
 * time slice is used up.
 */
export function pauser(
  clock: Clock,
  { check, firstSliceMs = FURTHER_SLICE_MS_MAX }: PauserOptions = {},
): () => Promise<void> {
  let sliceEndMs = clock.monotonicMs() + firstSliceMs;
  let stepCount = 0;
  return async () => {
    check?.();
    stepCount += 1;
    if (clock.monotonicMs() < sliceEndMs && stepCount % STEPS_PER_SLICE !== 0) return;
    await clock.yield();
    check?.();
    sliceEndMs = clock.monotonicMs() + FURTHER_SLICE_MS_MAX;
  };
}
