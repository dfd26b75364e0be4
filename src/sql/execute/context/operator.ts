/**
 * Defines the contract of every operator, and the loop that runs a tree of operators.
 *
 * Contract:
 * - `next()` returns the next batch, or undefined once the end is reached. A call runs until it
 *   has rows, and calls `ExecutionContext.checkTime` in every loop that may take a long time. If
 *   `checkTime` throws, the statement ends: the operator is closed and never called again.
 * - The vectors of a batch are valid until the next call; an operator that keeps rows copies them.
 * - An operator owns its input and closes it in `close()`, even if it never reached the end.
 */

import type { Clock } from "../../../base/clock.ts";
import { FIRST_SLICE_MS_MAX, FURTHER_SLICE_MS_MAX } from "../../../base/limits.ts";
import type { Batch } from "../../../types/mod.ts";
import type { ExecutionContext } from "./execution_context.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";
import { SLICE_OVER } from "./time_slice.ts";

export interface Operator {
  next(): Batch | undefined;
  close(): void;
  /**
   * Restarts an operator that has ended, so that it reads the working tables in its context from
   * the beginning again. Returns false if a new operator has to be created instead. Absent if the
   * operator can never be restarted.
   */
  restart?(): boolean;
}

/** Creates the operators for one execution of a compiled plan. Many executions share the plan. */
export type OperatorFactory = (context: ExecutionContext) => Operator;

/**
 * The operators that already hold resources, in the tree that is currently being created;
 * undefined if no tree is being created.
 */
let beingMade: Operator[] | undefined;

/**
 * Creates the operators for an execution. If that fails, the operators created so far are closed.
 */
export function made(factory: OperatorFactory, context: ExecutionContext): Operator {
  const around = beingMade;
  const holding: Operator[] = [];
  beingMade = holding;
  try {
    return factory(context);
  } catch (error) {
    for (const operator of holding) operator.close();
    throw error;
  } finally {
    beingMade = around;
  }
}

/** Registers an operator that holds resources even before its first batch is requested. */
export function holdsFromStart(operator: Operator): void {
  beingMade?.push(operator);
}

export interface DrainOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  readonly onBatch: (batch: Batch) => void;
  /**
   * Returns whether to end the time slice early, so that the rows drained so far can be delivered
   * first.
   */
  readonly isEnough?: (() => boolean) | undefined;
  /** Whether to throw SLICE_OVER if the first time slice ends before the operator does. */
  readonly mayLeave?: boolean | undefined;
  /** Called between two time slices. Draining continues once the returned promise resolves. */
  readonly onSlice?: (() => Promise<void> | undefined) | undefined;
}

/**
 * Reads all batches of an operator, lets other work run every few milliseconds, and always closes
 * the operator. Returns undefined if one tick was enough, so that most statements need no promise.
 */
export function drain(operator: Operator, options: DrainOptions): Promise<void> | undefined {
  // An operator that throws an error counts as ended, and is closed.
  let isAtEnd = true;
  try {
    isAtEnd = drainSlice(operator, options, FIRST_SLICE_MS_MAX);
    if (!isAtEnd && options.mayLeave === true) {
      isAtEnd = true;
      throw SLICE_OVER;
    }
  } finally {
    if (isAtEnd) operator.close();
  }
  return isAtEnd ? undefined : drainFurther(operator, options);
}

async function drainFurther(operator: Operator, options: DrainOptions): Promise<void> {
  const { clock, ledger, onSlice } = options;
  try {
    do {
      checkDeadline(ledger, clock);
      const waiting = onSlice?.();
      if (waiting !== undefined) await waiting;
      await clock.yield();
      checkDeadline(ledger, clock);
    } while (!drainSlice(operator, options, FURTHER_SLICE_MS_MAX));
  } finally {
    operator.close();
  }
}

/** Drains an operator for one tick of the event loop. Returns whether the operator has ended. */
function drainSlice(
  operator: Operator,
  { clock, isEnough, onBatch }: DrainOptions,
  sliceMs: number,
): boolean {
  const sliceEndMs = clock.monotonicMs() + sliceMs;
  for (;;) {
    const batch = operator.next();
    if (batch === undefined) return true;
    if (batch.rowCount > 0) onBatch(batch);
    if (clock.monotonicMs() >= sliceEndMs) return false;
    if (isEnough?.() === true) return false;
  }
}
