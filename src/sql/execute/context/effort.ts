/**
 * Measures the cost of evaluating expressions: triggers time checks during long calls, and counts
 * the size of the values that calls produce.
 *
 * An expression is evaluated over many rows without a pause, so every call is recorded here. The
 * time is checked after a number of calls, or after long values. The time check ends a statement
 * that was cancelled, has timed out, or must move to a reader thread. An operator with expressions
 * that may produce long values evaluates fewer rows at a time (`paced_rows.ts`).
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import { bytesOf } from "../materialised/memory_budget.ts";
import type { ExecutionContext } from "./execution_context.ts";

/**
 * The minimum length, in characters, of a value whose size is counted. Even a whole batch of
 * shorter values is small.
 */
const COUNTED_CHARACTERS_MIN = 512;

/** The number of calls between two time checks. A time check costs as much as a short call. */
const CALLS_PER_LOOK = 16;

/** The number of rows that a numeric loop processes in the time of a short call. */
const ROWS_PER_CALL = 64;

/** The number of characters, or of array items, that a call of ordinary length processes. */
const CHARACTERS_PER_CALL = 4096;
const ITEMS_PER_CALL = 64;

/** The minimum expected duration, in milliseconds, of a call that gets its own time check. */
const LONG_CALL_MS = 0.1;

export interface EffortOptions {
  readonly context: Pick<ExecutionContext, "checkTime" | "monotonicMs">;
  /** The maximum number of bytes that an evaluation may produce. */
  readonly bytesMax: number;
}

/** The cost of a statement's expressions so far, shared by all of its runs. */
export class Effort {
  readonly #options: EffortOptions;
  #madeBytes = 0;
  #callsToLook = CALLS_PER_LOOK;
  #lookedAtMs = 0;

  constructor(options: EffortOptions) {
    this.#options = options;
  }

  /** How many bytes of long values have been produced since the last `beginRows`. */
  get madeBytes(): number {
    return this.#madeBytes;
  }

  /**
   * Resets the count of produced bytes, because the operator that stores the earlier values counts
   * them itself.
   */
  beginRows(): void {
    this.#madeBytes = 0;
  }

  /**
   * Runs another query in the middle of an evaluation. The byte count of the evaluation continues
   * afterwards.
   */
  apart<T>(work: () => T): T {
    const madeBytes = this.#madeBytes;
    try {
      return work();
    } finally {
      this.#madeBytes = madeBytes;
    }
  }

  /**
   * Records a value that a call is about to read. Long values bring the next time check forward.
   */
  noteRead(value: Value): void {
    if (typeof value === "string") {
      if (value.length >= COUNTED_CHARACTERS_MIN) {
        this.#callsToLook -= value.length / CHARACTERS_PER_CALL;
      }
    } else if (Array.isArray(value)) {
      this.#callsToLook -= value.length / ITEMS_PER_CALL;
    }
  }

  /**
   * Records the result of a call.
   *
   * @throws The errors of `ExecutionContext.checkTime`.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  note(value: Value): void {
    if (typeof value === "string") {
      if (value.length >= COUNTED_CHARACTERS_MIN) this.#make(bytesOf(value));
    } else if (typeof value === "object" && value !== null) {
      this.#make(bytesOf(value));
    }
    this.noteCall();
  }

  /**
   * Records a call whose caller counts the result itself.
   *
   * @throws The errors of `ExecutionContext.checkTime`.
   */
  noteCall(): void {
    this.#callsToLook -= 1;
    if (this.#callsToLook <= 0) this.#look();
  }

  /**
   * Records the evaluation of an expression over a number of rows.
   *
   * @throws The errors of {@linkcode noteCall}.
   */
  noteRows(rowCount: number): void {
    this.#callsToLook -= rowCount / ROWS_PER_CALL;
    if (this.#callsToLook <= 0) this.#look();
  }

  /** Records a value that is repeated in a number of rows. */
  noteRepeated(value: Value, rowCount: number): void {
    // In memory, all rows share the repeated value, but a result contains it once per row.
    if (typeof value !== "number") this.#madeBytes += bytesOf(value) * rowCount;
  }

  #look(): void {
    const { context } = this.#options;
    context.checkTime();
    const nowMs = context.monotonicMs();
    const isLong = nowMs - this.#lookedAtMs >= LONG_CALL_MS;
    this.#callsToLook = isLong ? 1 : CALLS_PER_LOOK;
    this.#lookedAtMs = nowMs;
  }

  #make(bytes: number): void {
    this.#madeBytes += bytes;
    const { bytesMax } = this.#options;
    if (this.#madeBytes <= bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: one of its expressions produces more than ${bytesMax} bytes at once`,
      { hint: "produce shorter values, or raise performance.query_memory_bytes" },
    );
  }
}
