/**
 * Tracks the loading phase of a subscription: the batches that its client has requested but not
 * received, and the time limit for requesting the next batch.
 *
 * The subscription drops this object after the last batch, so that a following subscription uses
 * no memory for it. The timer runs only while no request is open, so that a client is never timed
 * out because of the server's delays.
 */
import { assert } from "../../base/assert.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { BatchControl } from "../../protocol/mod.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { BatchStep, LoadReader, LoadStep } from "./load_reader.ts";

/** The maximum number of open requests. Further requests are ignored. */
const REQUESTS_MAX = 16;

export interface LoadingOptions {
  readonly clock: Clock;
  /**
   * How soon the client has to request the next batch, in milliseconds. If it does not, the
   * subscription ends.
   */
  readonly timeoutMs: number;
  readonly onTimeout: () => void;
}

export class Loading {
  readonly #reader: LoadReader;
  readonly #options: LoadingOptions;
  #batchCount = 0;
  /** The number of open requests. SUBSCRIBE itself requests the first batch. */
  #requestCount = 1;
  #cancelTimeout: CancelTimer | undefined;

  constructor(reader: LoadReader, options: LoadingOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  /** Whether the client has requested a batch that has not been sent yet. */
  get isRequested(): boolean {
    return this.#requestCount > 0;
  }

  /** Records that the client has requested another batch. */
  request(): void {
    this.#requestCount = Math.min(REQUESTS_MAX, this.#requestCount + 1);
    this.#cancelTimeout?.();
  }

  /** Reads the next step, as {@linkcode LoadReader.next} does. */
  next(budget: TickBudget): LoadStep | "waiting" | undefined {
    return this.#reader.next(budget);
  }

  /** Releases rows that were read ahead. The rows are read again when they are needed. */
  release(): void {
    this.#reader.release();
  }

  /** Counts a batch as sent. @returns The control fields of its message. */
  count({ endsRequest, isLast, lastSeq, messages }: BatchStep): BatchControl {
    assert(
      messages === undefined || this.#batchCount === 0,
      "subscription: only the first batch can be shared",
    );
    const control: BatchControl = {
      batch_num: this.#batchCount,
      has_more: !isLast,
      status: isLast ? "ready" : "loading",
      last_seq_id: lastSeq ?? null,
    };
    this.#batchCount += 1;
    if (endsRequest) {
      this.#requestCount -= 1;
      if (this.#requestCount === 0) this.#armTimeout();
    }
    return control;
  }

  /** Ends the loading phase and its time limit. */
  close(): void {
    this.#cancelTimeout?.();
    this.#reader.close();
  }

  #armTimeout(): void {
    const { clock, onTimeout, timeoutMs } = this.#options;
    this.#cancelTimeout = clock.after(timeoutMs, onTimeout);
  }
}
