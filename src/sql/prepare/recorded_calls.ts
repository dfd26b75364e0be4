/**
 * Interrupts queries that call programs. An operator cannot wait in the middle of its work, so the
 * query is abandoned when its time slice is over, and restarted after other work has run. The
 * results of its calls are recorded, so that no program runs twice:
 *
 *     run 1   call 1  call 2 ─┤ time slice over
 *     run 2   (1)     (2)     call 3  call 4 ─┤
 *     run 3   (1)     (2)     (3)     (4)     call 5
 *
 * A restarted query reads the same snapshot, and so makes the same calls, although perhaps in a
 * different order. A query that makes different calls, because its arguments are random, is no
 * longer interrupted. A change cannot be restarted either. In these cases, `program_calls.ts`
 * limits the time of the calls.
 *
 * Invariant: a run spends at least as much time on new calls as on its work before them, so the
 * restarts at most double the time of the query.
 */
import type { Clock } from "../../base/clock.ts";
import type { Value } from "../../types/mod.ts";
import type { Sleeps } from "../execute/context/sleeps.ts";
import { bytesOf, MemoryBudget } from "../execute/materialised/memory_budget.ts";
import type { CalledProgram } from "../functions/base/function.ts";
import { textOfRow } from "../maintain/row_text.ts";

/**
 * The minimum time, in milliseconds, before a run is interrupted. Operators that pass on rows in
 * small groups let other work run earlier.
 */
const RUN_MS_MIN = 10;

/**
 * The approximate memory of a recorded result in bytes, not counting its value and the text of its
 * arguments.
 */
const RESULT_BYTES = 150;

/** The results of all calls to a program with the same arguments. */
interface RecordedResults {
  readonly values: Value[];
  /** The number of the run that last used one of these results. */
  run: number;
  /** The number of these results that the last run to use them has used so far. */
  usedCount: number;
}

export interface RecordedCallsOptions {
  readonly clock: Clock;
  /** Restarts the query; absent if the statement cannot be restarted. */
  readonly sleeps: Sleeps | undefined;
  /** The maximum memory for the recorded results, in bytes. */
  readonly bytesMax: number;
}

export class RecordedCalls {
  readonly #options: RecordedCallsOptions;
  readonly #memory: MemoryBudget;
  /** The recorded results of each program, keyed by the text of the arguments. */
  readonly #results = new Map<CalledProgram, Map<string, RecordedResults>>();
  #run = 0;
  /** The number of results that earlier runs have recorded. */
  #earlierCount = 0;
  /** The number of results that the current run has used or recorded. */
  #usedCount = 0;
  #recordedCount = 0;
  /**
   * The monotonic time at which the current run began, or its current tick of the event loop if
   * that began later.
   */
  #beganMs: number;
  /** The monotonic time of the first call in the current tick that had no recorded result. */
  #newSinceMs: number | undefined;
  #canRestart: boolean;

  constructor(options: RecordedCallsOptions) {
    this.#options = options;
    this.#memory = new MemoryBudget(options.bytesMax);
    this.#beganMs = options.clock.monotonicMs();
    this.#canRestart = options.sleeps !== undefined;
  }

  /** Must be called when the query is restarted. */
  beginAnew(): void {
    this.#run += 1;
    this.#earlierCount = this.#recordedCount;
    this.#usedCount = 0;
    this.#beginTick();
  }

  /**
   * Returns the recorded result of a call, or runs the program.
   *
   * @throws ASLEEP if the time slice is over.
   * @throws {DatabaseError} MEMORY_EXCEEDED, and the errors of the program.
   */
  resultOf(program: CalledProgram, args: readonly Value[], run: () => Value): Value {
    if (!this.#canRestart) return run();
    const text = textOfRow(args);
    const results = this.#resultsOf(program, text);
    let value = results.values[results.usedCount];
    if (value === undefined) {
      this.#checkTime();
      value = run();
      this.#memory.take(2 * text.length + bytesOf(value) + RESULT_BYTES);
      results.values.push(value);
      this.#recordedCount += 1;
    }
    results.usedCount += 1;
    this.#usedCount += 1;
    return value;
  }

  #resultsOf(program: CalledProgram, text: string): RecordedResults {
    const run = this.#run;
    let ofProgram = this.#results.get(program);
    if (ofProgram === undefined) {
      ofProgram = new Map();
      this.#results.set(program, ofProgram);
    }
    let results = ofProgram.get(text);
    if (results === undefined) {
      results = { values: [], run, usedCount: 0 };
      ofProgram.set(text, results);
    } else if (results.run !== run) {
      results.run = run;
      results.usedCount = 0;
    }
    return results;
  }

  #beginTick(): void {
    this.#beganMs = this.#options.clock.monotonicMs();
    this.#newSinceMs = undefined;
  }

  #checkTime(): void {
    const { clock, sleeps } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#newSinceMs === undefined) {
      this.#newSinceMs = nowMs;
      void clock.yield().then(() => this.#beginTick());
    }
    if (nowMs - this.#newSinceMs < Math.max(RUN_MS_MIN, this.#newSinceMs - this.#beganMs)) return;
    this.#canRestart = 2 * this.#usedCount >= this.#earlierCount;
    if (this.#canRestart) sleeps?.waitFor(() => clock.yield());
  }
}
