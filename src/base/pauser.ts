/**
 * How long work in the background holds the event loop: a few milliseconds, then others get a turn.
 */
import type { Clock } from "./clock.ts";

/** How long a flush or a merge may hold the event loop, about. */
const TURN_MS = 2;

/** Steps after which others get a turn in any case. */
const STEPS_PER_TURN = 8;

/** Makes a function that lets other work run when it is time to. */
export function pauser(clock: Clock): () => Promise<void> {
  let turnStartMs = clock.monotonicMs();
  let stepCount = 0;
  return async () => {
    stepCount += 1;
    if (stepCount % STEPS_PER_TURN !== 0 && clock.monotonicMs() - turnStartMs < TURN_MS) return;
    await clock.yield();
    turnStartMs = clock.monotonicMs();
  };
}
