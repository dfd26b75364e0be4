/**
 * Pauses in the middle of an expression: for a subquery that is read for one row, for rows that
 * together take too long or make too much, and for PG_SLEEP.
 *
 * An expression is evaluated in one go. So a reading below it throws {@linkcode PAUSE} when its
 * turn is over and stays as it is, and a call throws {@linkcode TOO_MANY} when the rows so far took
 * a turn, or made more than may be held beside each other. {@linkcode Resuming} catches both, says
 * "nothing yet", and has the same rows evaluated again later: after a pause the answers so far are
 * known, and after the other there are fewer rows.
 *
 * Only an operator that can give its rows again may be left in this way. So a pause is allowed
 * while such a one evaluates, and at no time while it, or a reading, asks another operator for
 * rows. Where none is allowed, or one row is too much, what is made is bounded by the memory of the
 * statement.
 *
 * A sleep is a pause, too, and `operator.ts` waits for its end. Evaluated again, a row asks
 * for its sleeps in the same order: how many of them are over is kept beside the row. So a sleep
 * first asks for rows one by one, and where no pause is allowed it is refused.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { TURN_MS_MAX } from "../../../base/limits.ts";
import type { Batch, Value } from "../../../types/mod.ts";
import { bytesOf } from "../held/memory_budget.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import { type Run } from "./run.ts";
import type { Slices } from "./slices.ts";

/** Thrown by who cannot go on now; no failure. */
export const PAUSE: Error = new Error("The turn is over");

/** Thrown by who evaluates more rows than fit a turn; no failure. */
export const TOO_MANY: Error = new Error("The rows are too many for a turn");

/** Bytes of values that rows evaluated together may make. */
const MADE_TOGETHER_MAX = 8 * 2 ** 20;

/** Values that are shorter are left to the bound of a batch: a thousand rows of them are little. */
const NOTED_CHARACTERS_MIN = 512;

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

/** What is known of the evaluation under way. */
interface Evaluation {
  /** When it must pause; Infinity for never. */
  readonly atMs: number;
  /** Whether it may be asked for fewer rows. */
  readonly mayDivide: boolean;
}

/** How far the sleeps of the rows at hand have come: kept by who can hand the same rows again. */
export interface Sleeps {
  overCount: number;
  /** When the one after these is over; undefined before it begins. */
  untilMs: number | undefined;
}

/** What a sleep asks of its statement. */
export interface Sleeping {
  /** Returns how long it may be. @throws {DatabaseError} LIMIT_EXCEEDED */
  begin(ms: number): number;
  /** Nothing is to be done before. */
  wait(untilMs: number): void;
  readonly isAsleep: boolean;
}

export interface PausesOptions {
  readonly now: () => number;
  /** What one evaluation may make at all. */
  readonly bytesMax: () => number;
  /** Absent for who has nobody to wait for it. */
  readonly sleeping?: Sleeping | undefined;
}

const UNBROKEN: Evaluation = { atMs: Number.POSITIVE_INFINITY, mayDivide: false };

/** When the evaluation under way must pause, and what it made; one for all runs of a statement. */
export class Pauses {
  #atMs = Number.POSITIVE_INFINITY;
  #mayDivide = false;
  #madeBytes = 0;
  #callsToLook = CALLS_PER_LOOK;
  #lookedAtMs = 0;
  #sleeps: Sleeps | undefined;
  /** Sleeps that the rows at hand have asked for in this evaluation. */
  #sleepCount = 0;
  readonly #now: () => number;
  readonly #bytesMax: () => number;
  readonly #sleeping: Sleeping | undefined;

  constructor({ bytesMax, now, sleeping }: PausesOptions) {
    this.#now = now;
    this.#bytesMax = bytesMax;
    this.#sleeping = sleeping;
  }

  /** Whether who evaluates now has had its turn. */
  get isDue(): boolean {
    return this.areAllowed && (this.#now() >= this.#atMs || this.#sleeping?.isAsleep === true);
  }

  /** Whether an evaluation may pause at all. */
  get areAllowed(): boolean {
    return this.#atMs !== Number.POSITIVE_INFINITY;
  }

  during<T>(work: () => T): T {
    return this.#with({ atMs: this.#now() + TURN_MS_MAX, mayDivide: false }, work);
  }

  never<T>(work: () => T): T {
    return this.#with(UNBROKEN, work);
  }

  /** Within {@linkcode during}: rows are evaluated from now on. */
  beginRows(rowCount: number, sleeps?: Sleeps): void {
    this.#sleeps = sleeps;
    this.#sleepCount = 0;
    this.#lookedAtMs = this.#now();
    this.#atMs = this.#lookedAtMs + TURN_MS_MAX;
    this.#mayDivide = rowCount > 1;
    this.#madeBytes = 0;
  }

  /** Whether the rows begun last took so little that there may be more of them. */
  get wereFew(): boolean {
    if (this.#madeBytes > MADE_TOGETHER_MAX / 4) return false;
    return this.#now() < this.#atMs - (TURN_MS_MAX * 3) / 4;
  }

  /** Counts a value that a call is about to read; long values bring the next check forward. */
  noteRead(value: Value): void {
    if (typeof value === "string") {
      if (value.length >= NOTED_CHARACTERS_MIN) {
        this.#callsToLook -= value.length / CHARACTERS_PER_CALL;
      }
    } else if (Array.isArray(value)) {
      this.#callsToLook -= value.length / ITEMS_PER_CALL;
    }
  }

  /**
   * A call has given a value for a row.
   *
   * @throws TOO_MANY
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  note(value: Value): void {
    this.noteMade(value);
    if (this.#mayDivide && this.#madeBytes > MADE_TOGETHER_MAX) throw TOO_MANY;
    this.#callsToLook -= 1;
    if (this.#callsToLook <= 0 && this.#mayDivide) this.#look();
  }

  /** An expression without a call is going to be evaluated over so many rows. @throws TOO_MANY */
  noteRows(rowCount: number): void {
    this.#callsToLook -= rowCount / ROWS_PER_CALL;
    if (this.#callsToLook <= 0 && this.#mayDivide) this.#look();
  }

  /** A text or the like is going to stand in so many rows. @throws TOO_MANY */
  noteRepeated(value: Value, rowCount: number): void {
    if (!this.#mayDivide || typeof value === "number") return;
    if (bytesOf(value) * rowCount > MADE_TOGETHER_MAX) throw TOO_MANY;
  }

  /** A call has given one value for all rows. @throws {DatabaseError} MEMORY_EXCEEDED */
  noteMade(value: Value): void {
    if (typeof value === "string") {
      if (value.length >= NOTED_CHARACTERS_MIN) this.#make(bytesOf(value));
    } else if (typeof value === "object" && value !== null) {
      this.#make(bytesOf(value));
    }
  }

  /** When a call began that is the same for all rows: fewer of them would make it no shorter. */
  beginShared(): number {
    return this.#mayDivide ? this.#now() : 0;
  }

  endShared(sinceMs: number): void {
    if (!this.#mayDivide) return;
    const tookMs = this.#now() - sinceMs;
    this.#atMs += tookMs;
    this.#lookedAtMs += tookMs;
  }

  /**
   * Returns once so much time has passed since the row at hand first asked for it.
   *
   * @throws TOO_MANY
   * @throws PAUSE before that
   * @throws {DatabaseError} UNSUPPORTED_FEATURE, LIMIT_EXCEEDED
   */
  sleep(ms: number): void {
    const sleeps = this.#sleeps;
    const sleeping = this.#sleeping;
    if (!this.areAllowed || sleeps === undefined || sleeping === undefined) throw noSleep();
    if (this.#mayDivide) throw TOO_MANY;
    this.#sleepCount += 1;
    if (this.#sleepCount <= sleeps.overCount) return;
    const nowMs = this.#now();
    sleeps.untilMs ??= nowMs + sleeping.begin(ms);
    if (nowMs < sleeps.untilMs) {
      sleeping.wait(sleeps.untilMs);
      throw PAUSE;
    }
    sleeps.overCount += 1;
    sleeps.untilMs = undefined;
  }

  /** For who reads to the end without a pause. @throws {DatabaseError} UNSUPPORTED_FEATURE */
  requireAwake(): void {
    if (this.#sleeping?.isAsleep === true) throw noSleep();
  }

  #look(): void {
    const nowMs = this.#now();
    if (nowMs >= this.#atMs) throw TOO_MANY;
    const isLong = nowMs - this.#lookedAtMs >= LONG_CALL_MS;
    this.#callsToLook = isLong ? 1 : CALLS_PER_LOOK;
    this.#lookedAtMs = nowMs;
  }

  #make(bytes: number): void {
    this.#madeBytes += bytes;
    if (this.#madeBytes <= MADE_TOGETHER_MAX || this.#mayDivide) return;
    const bytesMax = this.#bytesMax();
    if (this.#madeBytes <= bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: an expression makes more than ${bytesMax} bytes at a time`,
      { hint: "make shorter values, or raise performance.query_memory_bytes" },
    );
  }

  #with<T>({ atMs, mayDivide }: Evaluation, work: () => T): T {
    const before = this.#atMs;
    const mayDivideBefore = this.#mayDivide;
    const madeBefore = this.#madeBytes;
    const sleepsBefore = this.#sleeps;
    const sleepCountBefore = this.#sleepCount;
    this.#atMs = atMs;
    this.#mayDivide = mayDivide;
    this.#madeBytes = 0;
    this.#sleeps = undefined;
    try {
      return work();
    } finally {
      this.#atMs = before;
      this.#mayDivide = mayDivideBefore;
      this.#madeBytes = madeBefore;
      this.#sleeps = sleepsBefore;
      this.#sleepCount = sleepCountBefore;
    }
  }
}

function noSleep(): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot call PG_SLEEP here: it would hold up all other requests",
    {
      hint: "call it in the select list or in WHERE of a query, or run SELECT PG_SLEEP(…) by itself",
    },
  );
}

/** Evaluates over slices, and again after a pause. */
export class Resuming implements Operator {
  readonly #operator: Operator;
  readonly #slices: Slices;
  readonly #run: Run;

  constructor(operator: Operator, slices: Slices, run: Run) {
    this.#operator = operator;
    this.#slices = slices;
    this.#run = run;
  }

  next(): Batch | undefined {
    try {
      return this.#run.pauses.during(() => {
        const batch = this.#operator.next();
        this.#slices.settle();
        return batch;
      });
    } catch (error) {
      if (error === PAUSE) this.#slices.repeat();
      else if (error === TOO_MANY) this.#slices.divide();
      else throw error;
      return NOTHING_YET;
    }
  }

  close(): void {
    this.#operator.close();
    this.#run.abandonReadings();
  }
}
