/**
 * Reads the first rows of a subscription that resumes: the net difference between the client's
 * rows and the newest state.
 *
 *     rows at the position, from history ─┐
 *                                         ├─► deletes as changes, then new and changed rows in
 *     newest state ───────────────────────┘   batches, the last of which is a position again
 */
import type { Seq } from "../../base/seq.ts";
import type { WireRow } from "../../protocol/mod.ts";
import {
  type PendingChange,
  type PendingChangeOptions,
  pendingChangeFrom,
} from "../delivery/messages.ts";
import type { LiveChange } from "../program/live_program.ts";
import { FrameBudget } from "../rows/frame_budget.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { LoadReader, LoadStep } from "../subscription/load_reader.ts";
import type { ResultHost } from "./result_group.ts";
import { withReasons } from "./result_messages.ts";
import { newestState, type ResultReading } from "./result_reader.ts";
import { changesBetween, type ResultState } from "./result_state.ts";

export interface ResumeReading extends ResultReading {
  readonly host: Pick<ResultHost, "store">;
  readonly position: Seq;
  /** Called when the rows at the position have been read or could not be read. */
  readonly onArrived: () => void;
}

export class ResumeReader implements LoadReader {
  readonly #reading: ResumeReading;
  #before: ResultState | undefined;
  #failure: { readonly error: unknown } | undefined;
  #state: ResultState | undefined;
  #deletes: PendingChange[] = [];
  #rows: WireRow[] = [];

  constructor(reading: ResumeReading) {
    this.#reading = reading;
    void this.#readBefore();
  }

  next(budget: TickBudget): LoadStep | "waiting" | undefined {
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#state ??= this.#compare();
    const state = this.#state;
    if (state === undefined) return "waiting";
    const pending = this.#deletes.shift();
    if (pending !== undefined) {
      budget.spend(pending.count);
      return { kind: "change", pending };
    }
    const { batchSize, frameBytesMax } = this.#reading;
    const frame = new FrameBudget(frameBytesMax);
    let end = 0;
    while (end < Math.min(batchSize, this.#rows.length)) {
      const row = this.#rows[end];
      if (row === undefined || !frame.admits(row)) break;
      end += 1;
    }
    const rows = this.#rows.splice(0, end);
    budget.spend(1 + rows.length);
    const isLast = this.#rows.length === 0;
    // Only the last batch has a position. If a client resumed from an earlier batch, it would
    // never be sent the rest of the difference.
    const lastSeq = isLast ? state.seq : undefined;
    return { kind: "batch", rows, lastSeq, isLast, endsRequest: true };
  }

  release(): void {
    // There is nothing to release: the rows belong to the difference, which was computed for this
    // client.
  }

  close(): void {
    this.#before = undefined;
    this.#rows = [];
    this.#deletes = [];
  }

  async #readBefore(): Promise<void> {
    const { group, onArrived, position } = this.#reading;
    try {
      this.#before = await group.stateAt(position);
    } catch (error) {
      this.#failure = { error };
    }
    onArrived();
  }

  /** Computes the difference once both states are available. */
  #compare(): ResultState | undefined {
    const { boundary, frameBytesMax, group, host, onState } = this.#reading;
    const before = this.#before;
    const after = newestState(group, boundary);
    if (before === undefined || after === undefined) return undefined;
    const changes = changesBetween(before, after, group.shape);
    const deletes = changes.filter(({ type }) => type === "delete");
    const explained = withReasons(deletes, group.plan, { before, after });
    this.#deletes = pendingOf(explained, { frameBytesMax, store: host.store });
    this.#rows = changes.flatMap(({ row }) => (row === undefined ? [] : [row]));
    this.#before = undefined;
    onState(after);
    return after;
  }
}

function pendingOf(changes: readonly LiveChange[], options: PendingChangeOptions): PendingChange[] {
  const all: PendingChange[] = [];
  for (let start = 0; start < changes.length; ) {
    const pending = pendingChangeFrom(changes, start, options);
    all.push({ ...pending, isCommitEnd: false });
    start += pending.count;
  }
  return all;
}
