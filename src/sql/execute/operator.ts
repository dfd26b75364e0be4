/**
 * The contract of every operator, and the loop that runs a tree of them.
 *
 * Contract:
 * - `next()` returns a batch, possibly of no rows (work was done: ask again), or undefined once and
 *   for ever at the end. One call does a bounded piece of work, so that the loop can let others run
 *   and watch the deadline between calls.
 * - The vectors of a batch are valid until the next call; who keeps rows copies them.
 * - An operator owns its input and closes it in `close()`, also when it never reached the end.
 */

import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import type { Batch } from "../../types/mod.ts";
import type { Run } from "./run.ts";

export interface Operator {
  next(): Batch | undefined;
  close(): void;
}

/** Says when a statement must stop. */
export interface Deadline {
  /** Monotonic milliseconds; Infinity for none. */
  readonly atMs: number;
  isCancelled: boolean;
}

/** @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED */
export function checkDeadline(deadline: Deadline, clock: Clock): void {
  if (deadline.isCancelled) {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: it was cancelled");
  }
  if (clock.monotonicMs() >= deadline.atMs) {
    throw new DatabaseError("STATEMENT_TIMEOUT", "Cannot finish the statement: its time is over", {
      hint: "narrow the query, or raise timeout_ms or performance.request_timeout",
    });
  }
}

/** Drains an operator, letting others run every few milliseconds. Closes it in any case. */
export async function drain(
  operator: Operator,
  {
    clock,
    deadline,
    onBatch,
  }: {
    clock: Clock;
    deadline: Deadline;
    onBatch: (batch: Batch) => void;
  },
): Promise<void> {
  try {
    let turnEndMs = clock.monotonicMs() + TURN_MS_MAX;
    for (;;) {
      const batch = operator.next();
      if (batch === undefined) return;
      if (batch.rowCount > 0) onBatch(batch);
      const nowMs = clock.monotonicMs();
      if (nowMs < turnEndMs) continue;
      checkDeadline(deadline, clock);
      await clock.yield();
      checkDeadline(deadline, clock);
      turnEndMs = clock.monotonicMs() + TURN_MS_MAX;
    }
  } finally {
    operator.close();
  }
}

/** Drains an operator in this very turn: what a DML statement reads, it reads before anyone writes. */
export function drainNow(
  operator: Operator,
  { onBatch, run }: { run: Run; onBatch: (batch: Batch) => void },
): void {
  try {
    for (;;) {
      const batch = operator.next();
      run.checkTime();
      if (batch === undefined) return;
      run.memory.takeBatch(batch);
      if (batch.rowCount > 0) onBatch(batch);
    }
  } finally {
    operator.close();
  }
}

/** Says "nothing yet": work was done, ask again. */
export const NOTHING_YET: Batch = { rowCount: 0, columns: [] };
