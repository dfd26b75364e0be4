/**
 * The loading phase of a subscription: the batches that its client has asked for and has not been
 * sent, and how long it may ask for none.
 *
 * The subscription lets go of it with the last batch, so that one which only follows pays nothing
 * for it. The time runs while nothing is asked for: how long the server takes is not the client's.
 */
import { assert } from "../base/assert.ts";
import type { CancelTimer, Clock } from "../base/clock.ts";
import type { BatchControl } from "../protocol/mod.ts";
import type { Budget } from "./budget.ts";
import type { BatchStep, LoadReader, LoadStep } from "./load_reader.ts";

/** Requests for batches that stay open; more are not counted. */
const REQUESTS_MAX = 16;

export interface LoadingOptions {
  readonly clock: Clock;
  /** How long the client may ask for nothing. */
  readonly timeoutMs: number;
  readonly onTimeout: () => void;
}

export class Loading {
  readonly #reader: LoadReader;
  readonly #options: LoadingOptions;
  #batchCount = 0;
  /** SUBSCRIBE asks for the first. */
  #requestCount = 1;
  #cancelTimeout: CancelTimer | undefined;

  constructor(reader: LoadReader, options: LoadingOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  /** Whether the client waits for a batch. */
  get isRequested(): boolean {
    return this.#requestCount > 0;
  }

  /** The client asks for one more batch. */
  request(): void {
    this.#requestCount = Math.min(REQUESTS_MAX, this.#requestCount + 1);
    this.#cancelTimeout?.();
  }

  /** Reads on, as {@linkcode LoadReader.next} does. */
  next(budget: Budget): LoadStep | "waiting" | undefined {
    return this.#reader.next(budget);
  }

  /** Lets go of what was read ahead; it is read again when needed. */
  release(): void {
    this.#reader.release();
  }

  /** Counts a batch that is sent. @returns What its message says of it. */
  count({ endsRequest, isLast, lastSeq, messages }: BatchStep): BatchControl {
    assert(messages === undefined || this.#batchCount === 0, "only a first batch is shared");
    const control: BatchControl = {
      batch_num: this.#batchCount,
      has_more: !isLast,
      status: isLast ? "ready" : "loading",
      last_seq_id: lastSeq,
    };
    this.#batchCount += 1;
    if (endsRequest) {
      this.#requestCount -= 1;
      if (this.#requestCount === 0) this.#armTimeout();
    }
    return control;
  }

  /** It is over: the client may take its time. */
  close(): void {
    this.#cancelTimeout?.();
    this.#reader.close();
  }

  #armTimeout(): void {
    const { clock, onTimeout, timeoutMs } = this.#options;
    this.#cancelTimeout = clock.after(timeoutMs, onTimeout);
  }
}
