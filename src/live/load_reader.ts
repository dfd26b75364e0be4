/**
 * What a loading subscription reads from: a snapshot or a replay, one step at a time.
 */
import type { Seq } from "../base/seq.ts";
import type { CellObject } from "../protocol/mod.ts";
import type { Budget } from "./budget.ts";
import type { ChangeDraft, Messages } from "./messages.ts";
import type { RowPage } from "./row_page.ts";

export interface BatchStep {
  readonly kind: "batch";
  readonly rows: readonly CellObject[] | RowPage;
  /** Everything up to here has been sent once this batch has: where a client may resume. */
  readonly lastSeq: Seq;
  /** Loading is over; what follows are the changes above `lastSeq`. */
  readonly isLast: boolean;
  /** The client must ask before the next step. */
  readonly endsRequest: boolean;
  /** Of the first step, which several subscriptions may take: the messages made of it. */
  readonly messages?: Messages;
}

export type LoadStep = BatchStep | { readonly kind: "change"; readonly draft: ChangeDraft };

export interface LoadReader {
  /**
   * Reads on.
   *
   * @returns undefined when the budget was used up first: call again in a later turn. After
   * "waiting", call again when the reader says that rows have arrived.
   * @throws {DatabaseError} RESUME_EXPIRED, or what an expression raises on a row.
   */
  next(budget: Budget): LoadStep | "waiting" | undefined;
  /** Lets go of what was read ahead; it is read again when needed. */
  release(): void;
  /** Nobody reads on. */
  close(): void;
}
