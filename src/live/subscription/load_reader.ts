/**
 * Defines the source from which a loading subscription reads, one step at a time: a snapshot or a
 * replay.
 */
import type { Seq } from "../../base/seq.ts";
import type { WireRow } from "../../protocol/mod.ts";
import type { Messages, PendingChange } from "../delivery/messages.ts";
import type { RowPage } from "../rows/row_page.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";

export interface BatchStep {
  readonly kind: "batch";
  readonly rows: readonly WireRow[] | RowPage;
  /**
   * The position from which a client may resume once it has received this batch; undefined if
   * there is none.
   */
  readonly lastSeq: Seq | undefined;
  /**
   * Whether this is the last batch. Once it has been sent, the subscription sends the changes
   * after `lastSeq`.
   */
  readonly isLast: boolean;
  /** Whether the client must send a request before the next step. */
  readonly endsRequest: boolean;
  /** The messages built from the batch, if several subscriptions may send them. */
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
   * @returns undefined if the budget was used up first; the caller must then call again in a later
   *   tick. After "waiting", the caller must call again once the reader has reported that rows
   *   have arrived.
   * @throws {DatabaseError} RESUME_EXPIRED, or the error of an expression on a row.
   */
  next(budget: TickBudget): LoadStep | "waiting" | undefined;
  /** Releases rows that were read ahead. The rows are read again when they are needed. */
  release(): void;
  /** Closes the reader and releases its resources. */
  close(): void;
}
