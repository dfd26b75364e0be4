/**
 * Loads a new subscription to a result from the newest state.
 *
 * The state must not be older than the subscription, so that a client that has just written a row
 * finds the row in the snapshot.
 */
import type { Seq } from "../../base/seq.ts";
import type { WireRow } from "../../protocol/mod.ts";
import { FrameBudget } from "../rows/frame_budget.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { LoadReader, LoadStep } from "../subscription/load_reader.ts";
import type { ResultGroup } from "./result_group.ts";
import type { ResultState } from "./result_state.ts";

export interface ResultReading {
  readonly group: ResultGroup;
  /** The newest visible seq when the subscription began. */
  readonly boundary: Seq;
  readonly batchSize: number;
  readonly frameBytesMax: number;
  /** Called with the state that the client will have once it has received all batches. */
  readonly onState: (state: ResultState) => void;
}

export class ResultReader implements LoadReader {
  readonly #reading: ResultReading;
  #state: ResultState | undefined;
  #rows: Iterator<Parameters<ResultGroup["shape"]["rowOf"]>[0]> | undefined;
  #ahead: WireRow | undefined;

  constructor(reading: ResultReading) {
    this.#reading = reading;
  }

  next(budget: TickBudget): LoadStep | "waiting" | undefined {
    const { batchSize, frameBytesMax, group, onState } = this.#reading;
    if (this.#state === undefined) {
      const state = newestState(group, this.#reading.boundary);
      if (state === undefined) return "waiting";
      this.#state = state;
      this.#rows = state.rows.values();
      this.#ahead = this.#nextRow();
      onState(state);
    }
    const rows: WireRow[] = [];
    const frame = new FrameBudget(frameBytesMax);
    while (this.#ahead !== undefined && rows.length < batchSize && frame.admits(this.#ahead)) {
      rows.push(this.#ahead);
      this.#ahead = this.#nextRow();
    }
    budget.spend(1 + rows.length);
    const isLast = this.#ahead === undefined;
    // Only the last batch has a position. If a client resumed from an earlier batch, it would
    // never be sent the missing rows.
    const lastSeq = isLast ? this.#state.seq : undefined;
    return { kind: "batch", rows, lastSeq, isLast, endsRequest: true };
  }

  release(): void {
    // There is nothing to release: the rows belong to the state, which stays in memory while it is
    // being read.
  }

  close(): void {
    this.#rows = undefined;
  }

  #nextRow(): WireRow | undefined {
    const next = this.#rows?.next();
    if (next === undefined || next.done === true) return undefined;
    return this.#reading.group.shape.rowOf(next.value);
  }
}

/** Returns the newest state of a group; undefined if it is older than the boundary. */
export function newestState(group: ResultGroup, boundary: Seq): ResultState | undefined {
  const { isSuspended, state } = group;
  if (!isSuspended && state !== undefined && state.seq >= boundary) return state;
  group.awaitNewest();
  return undefined;
}
