/**
 * Turns of work that is written as an async function: it waits between two steps when its turn is
 * over. A step is a bounded piece of work.
 */
import type { Clock } from "./clock.ts";
import { FURTHER_TURN_MS_MAX } from "./limits.ts";

/** Steps after which others get a turn in any case. */
const STEPS_PER_TURN = 8;

export interface PauserOptions {
  /** Called at each step, and after each wait: throws if the work is to end. */
  readonly check?: () => void;
  /** How long the turn in which the work begins may take. */
  readonly firstTurnMs?: number;
}

/** Makes a function that lets other work run when it is time to. */
export function pauser(
  clock: Clock,
  { check, firstTurnMs = FURTHER_TURN_MS_MAX }: PauserOptions = {},
): () => Promise<void> {
  let turnEndMs = clock.monotonicMs() + firstTurnMs;
  let stepCount = 0;
  return async () => {
    check?.();
    stepCount += 1;
    if (clock.monotonicMs() < turnEndMs && stepCount % STEPS_PER_TURN !== 0) return;
    await clock.yield();
    check?.();
    turnEndMs = clock.monotonicMs() + FURTHER_TURN_MS_MAX;
  };
}
