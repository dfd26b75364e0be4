/**
 * Splits the work of an async function into time slices: once a slice is used up, the function
 * yields before its next step. Each step is a bounded piece of work.
 */
import type { Clock } from "./clock.ts";
import { FURTHER_SLICE_MS_MAX } from "./limits.ts";

/** The maximum number of steps before other work gets a chance to run. */
const STEPS_PER_SLICE = 8;

export interface PauserOptions {
  /** Called before each step and after each wait. Throws if the work has to end. */
  readonly check?: () => void;
  /** The length of the first time slice, in milliseconds. */
  readonly firstSliceMs?: number;
}

/** Creates a function that lets other work run once its time slice is over. */
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
