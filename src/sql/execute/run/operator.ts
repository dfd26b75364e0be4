/**
 * The contract of every operator, and the loop that runs a tree of them.
 *
 * Contract:
 * - `next()` returns the next batch, or undefined once and for ever at the end. It runs straight
 *   through until it has rows, and calls `Run.checkTime` in every loop that may run for long. An
 *   error of that call ends the statement: an operator is closed then, and never asked again.
 * - The vectors of a batch are valid until the next call; who keeps rows copies them.
 * - An operator owns its input and closes it in `close()`, also when it never reached the end.
 */

import type { Clock } from "../../../base/clock.ts";
import { FURTHER_TURN_MS_MAX, TURN_MS_MAX } from "../../../base/limits.ts";
import type { Batch } from "../../../types/mod.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";
import type { Run } from "./run.ts";
import { TURN_OVER } from "./turn.ts";

export interface Operator {
  next(): Batch | undefined;
  close(): void;
}

/** Makes the operators of one run of a compiled plan, which many runs share. */
export type OperatorFactory = (run: Run) => Operator;

/** The operators under construction that already hold resources. */
let beingMade: Operator[] | undefined;

/** Makes the operators of a run. If that fails, the operators made so far are closed. */
export function made(factory: OperatorFactory, run: Run): Operator {
  const around = beingMade;
  const holding: Operator[] = [];
  beingMade = holding;
  try {
    return factory(run);
  } catch (error) {
    for (const operator of holding) operator.close();
    throw error;
  } finally {
    beingMade = around;
  }
}

/** Registers an operator that holds resources before its first batch. */
export function holdsFromStart(operator: Operator): void {
  beingMade?.push(operator);
}

export interface DrainOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  readonly onBatch: (batch: Batch) => void;
  /** Ends a turn early: what was drained should be taken away first. */
  readonly isEnough?: (() => boolean) | undefined;
  /** Whether TURN_OVER is thrown when the first turn did not reach the end. */
  readonly mayLeave?: boolean | undefined;
  /** Called between two turns; what it returns is waited for. */
  readonly onTurn?: (() => Promise<void> | undefined) | undefined;
}

/**
 * Drains an operator, letting others run every few milliseconds, and closes it in any case. Returns
 * undefined when one turn was enough, as it is for most statements: they pay for no promise.
 */
export function drain(operator: Operator, options: DrainOptions): Promise<void> | undefined {
  // A batch that fails is an end, too.
  let isAtEnd = true;
  try {
    isAtEnd = drainTurn(operator, options, TURN_MS_MAX);
    if (!isAtEnd && options.mayLeave === true) {
      isAtEnd = true;
      throw TURN_OVER;
    }
  } finally {
    if (isAtEnd) operator.close();
  }
  return isAtEnd ? undefined : drainFurther(operator, options);
}

async function drainFurther(operator: Operator, options: DrainOptions): Promise<void> {
  const { clock, ledger, onTurn } = options;
  try {
    do {
      checkDeadline(ledger, clock);
      const waiting = onTurn?.();
      if (waiting !== undefined) await waiting;
      await clock.yield();
      checkDeadline(ledger, clock);
    } while (!drainTurn(operator, options, FURTHER_TURN_MS_MAX));
  } finally {
    operator.close();
  }
}

/** Drains for one turn of the event loop. Returns whether the operator is at its end. */
function drainTurn(
  operator: Operator,
  { clock, isEnough, onBatch }: DrainOptions,
  turnMs: number,
): boolean {
  const turnEndMs = clock.monotonicMs() + turnMs;
  for (;;) {
    const batch = operator.next();
    if (batch === undefined) return true;
    if (batch.rowCount > 0) onBatch(batch);
    if (clock.monotonicMs() >= turnEndMs) return false;
    if (isEnough?.() === true) return false;
  }
}
