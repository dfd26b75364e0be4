/**
 * The effort of evaluating expressions: calls that take long look at the time, and the bytes of the
 * values that they make are counted.
 *
 * An expression is evaluated over many rows in one go. So each call is noted here. Once some calls,
 * or long values, have passed, the run looks at its time: that ends a statement which was killed,
 * whose time is over, or which has to leave the event loop. An operator whose expressions may make
 * long values evaluates as many rows at a time as make little (`paced_rows.ts`).
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import { bytesOf } from "../held/memory_budget.ts";
import type { Run } from "./run.ts";

/** Values that are shorter are not counted: a batch of them is little. */
const COUNTED_CHARACTERS_MIN = 512;

/** Calls between two looks at the clock, which costs as much as a short call. */
const CALLS_PER_LOOK = 16;

/** Rows over which a loop of numbers takes as long as a short call. */
const ROWS_PER_CALL = 64;

/**
 * The number of characters or array items that a call processes in the time of one ordinary call.
 */
const CHARACTERS_PER_CALL = 4096;
const ITEMS_PER_CALL = 64;

/** A call for which the clock was worth a look of its own. */
const LONG_CALL_MS = 0.1;

export interface EffortOptions {
  readonly run: Pick<Run, "checkTime" | "monotonicMs">;
  /** Bytes that one evaluation may make. */
  readonly bytesMax: number;
}

/** One for all runs of a statement. */
export class Effort {
  readonly #options: EffortOptions;
  #madeBytes = 0;
  #callsToLook = CALLS_PER_LOOK;
  #lookedAtMs = 0;

  constructor(options: EffortOptions) {
    this.#options = options;
  }

  /** Bytes of long values that were made since rows were begun last. */
  get madeBytes(): number {
    return this.#madeBytes;
  }

  /** Values that were made before are in the hands of their operator now. */
  beginRows(): void {
    this.#madeBytes = 0;
  }

  /** Runs another query in the middle of an evaluation, whose own bytes count on behind it. */
  apart<T>(work: () => T): T {
    const madeBytes = this.#madeBytes;
    try {
      return work();
    } finally {
      this.#madeBytes = madeBytes;
    }
  }

  /** Counts a value that a call is about to read; long values bring the next look forward. */
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
   * A call has given a value.
   *
   * @throws What `Run.checkTime` throws. @throws {DatabaseError} MEMORY_EXCEEDED
   */
  note(value: Value): void {
    if (typeof value === "string") {
      if (value.length >= COUNTED_CHARACTERS_MIN) this.#make(bytesOf(value));
    } else if (typeof value === "object" && value !== null) {
      this.#make(bytesOf(value));
    }
    this.#callsToLook -= 1;
    if (this.#callsToLook <= 0) this.#look();
  }

  /** An expression is going to be evaluated over so many rows. @throws As {@linkcode note}. */
  noteRows(rowCount: number): void {
    this.#callsToLook -= rowCount / ROWS_PER_CALL;
    if (this.#callsToLook <= 0) this.#look();
  }

  /** A value is going to stand in so many rows. */
  noteRepeated(value: Value, rowCount: number): void {
    // The rows share it, but not in an answer.
    if (typeof value !== "number") this.#madeBytes += bytesOf(value) * rowCount;
  }

  #look(): void {
    const { run } = this.#options;
    run.checkTime();
    const nowMs = run.monotonicMs();
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
      `Cannot run the statement: an expression makes more than ${bytesMax} bytes at a time`,
      { hint: "make shorter values, or raise performance.query_memory_bytes" },
    );
  }
}
