/**
 * The source that a loading subscription reads, one step at a time: a snapshot or a replay.
 */
import type { Seq } from "../../base/seq.ts";
import type { WireRow } from "../../protocol/mod.ts";
import type { Messages, PendingChange } from "../delivery/messages.ts";
import type { RowPage } from "../rows/row_page.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";

export interface BatchStep {
  readonly kind: "batch";
  readonly rows: readonly WireRow[] | RowPage;
  /** The position at which a client may resume once this batch has been sent, if there is one. */
  readonly lastSeq: Seq | undefined;
  /** Whether loading is over. Changes above `lastSeq` follow. */
  readonly isLast: boolean;
  /** Whether the client must make a request before the next step. */
  readonly endsRequest: boolean;
  /** The messages built from a first step, which several subscriptions may share. */
  readonly messages?: Messages;
}

/** A batch after which a client may resume. */
export interface PositionedBatch extends BatchStep {
  readonly lastSeq: Seq;
}

export type LoadStep = BatchStep | ChangeStep;

export interface ChangeStep {
  readonly kind: "change";
  readonly pending: PendingChange;
}

export interface LoadReader {
  /**
   * Reads the next step.
   *
   * @returns undefined if the budget was used up first: call again in a later tick. After
   *   "waiting", call again when the reader reports that rows have arrived.
   * @throws {DatabaseError} RESUME_EXPIRED, or the error of an expression on a row.
   */
  next(budget: TickBudget): LoadStep | "waiting" | undefined;
  /** Releases rows that were read ahead. They are read again when needed. */
  release(): void;
  /** Ends the reader. */
  close(): void;
}
