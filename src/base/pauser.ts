/**
 * Turns of work that is written as an async function, in the background or after a commit: it waits
 * between two steps when its turn is over. Statements that may be ended have turns of their own, in
 * `sql/execute/run/operator.ts` and `sql/execute/run/step_turns.ts`.
 */
import type { Clock } from "./clock.ts";
import { FURTHER_TURN_MS_MAX } from "./limits.ts";

/** Steps after which others get a turn in any case. */
const STEPS_PER_TURN = 8;

/** Makes a function that lets other work run when it is time to. */
export function pauser(clock: Clock): () => Promise<void> {
  let turnStartMs = clock.monotonicMs();
  let stepCount = 0;
  return async () => {
    stepCount += 1;
    const isOver = clock.monotonicMs() - turnStartMs >= FURTHER_TURN_MS_MAX;
    if (!isOver && stepCount % STEPS_PER_TURN !== 0) return;
    await clock.yield();
    turnStartMs = clock.monotonicMs();
  };
}
