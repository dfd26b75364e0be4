/**
 * Answers the questions that a reader asks during a job: for rows that only the event loop has,
 * for ids, for numbers of sequences, for objects, and for settings.
 *
 * - Each answer is a bounded piece of work, so other requests can run between two answers.
 * - Rows are produced on demand, and not stored on the event loop.
 * - A transaction stages the rows of a statement only after the statement has read all of its
 *   rows. The staged rows therefore do not change during a job.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../storage/mod.ts";
import type { Row } from "../../types/mod.ts";
import type { SystemCall, SystemView } from "../bind/bound.ts";
import type { StagedRow } from "../execute/context/transaction.ts";
import { rowBytes } from "../execute/materialised/row_bytes.ts";
import type { ObjectCalls, SequenceCalls, SettingCalls } from "../functions/base/function.ts";
import type { KeyedRow, Question, ReaderAnswer } from "./job.ts";
import { answeredLookup } from "./object_questions.ts";
import { answeredCall } from "./sequence_questions.ts";

/**
 * The maximum number of rows in one answer. Sending so many takes a few tenths of a millisecond.
 */
const ROWS_MAX = 512;
const BYTES_MAX: number = 256 * 1024;

/**
 * The maximum time in milliseconds for producing the rows of an answer. This limit takes effect if
 * rows are slow to produce.
 */
const MAKE_MS_MAX = 1;

export interface JobAnswersOptions {
  readonly clock: Clock;
  readonly store: Pick<Store, "snowflakeId">;
  /** Takes numbers from sequences, with the caller's rights; absent for a live query. */
  readonly sequences: SequenceCalls | undefined;
  /** Looks up objects for the caller. */
  readonly objects: ObjectCalls;
  /** Reads and changes the settings of the request; absent for a live query. */
  readonly settings: SettingCalls | undefined;
  /** The system views that the statement reads, keyed by qualified name. */
  readonly systemViews: ReadonlyMap<string, SystemView>;
  readonly caller: Omit<SystemCall, "positions">;
  /** Returns the rows of a table that the caller's transaction has staged. */
  readonly stagedOf: (tableId: number) => Iterable<readonly [string, StagedRow]>;
}

/** Answers the questions of one job. */
export class JobAnswers {
  readonly #options: JobAnswersOptions;
  readonly #readings = new Map<number, RowReading<Row> | RowReading<KeyedRow>>();

  constructor(options: JobAnswersOptions) {
    this.#options = options;
  }

  /** Answers a question from the reader. @throws {DatabaseError} if the statement must end. */
  answer(question: Question): ReaderAnswer {
    const { clock, store } = this.#options;
    if (question.kind === "ids") {
      return Array.from({ length: question.count }, () => store.snowflakeId());
    }
    if (question.kind === "sequence") {
      const sequences = defined(
        this.#options.sequences,
        "reader answer: live query asked for a sequence",
      );
      return answeredCall(question.call, sequences);
    }
    if (question.kind === "object") return answeredLookup(question.call, this.#options.objects);
    if (question.kind === "setting") {
      const settings = defined(
        this.#options.settings,
        "reader answer: live query asked for a setting",
      );
      const { name, set } = question;
      return set === undefined
        ? settings.current(name)
        : settings.set(name, set.value, set.isLocal);
    }
    const known = this.#readings.get(question.reading);
    const reading = known ?? this.#begun(question);
    if (known === undefined) this.#readings.set(question.reading, reading);
    return reading.next(clock);
  }

  /** Ends a numbered pass over rows whose remaining rows are not needed. */
  leave(reading: number): void {
    this.#readings.get(reading)?.close();
    this.#readings.delete(reading);
  }

  close(): void {
    for (const reading of this.#readings.keys()) this.leave(reading);
  }

  #begun(
    question: Exclude<Question, { kind: "ids" | "object" | "sequence" | "setting" }>,
  ): RowReading<Row> | RowReading<KeyedRow> {
    const { caller, stagedOf, systemViews } = this.#options;
    if (question.kind === "staged") {
      const rows = stagedOf(question.tableId);
      return new RowReading(shownRows(rows), ([, { row }]) => rowBytes(row));
    }
    const { name, positions } = question;
    const view = defined(
      systemViews.get(name),
      "reader answer: statement read a system view it did not require",
    );
    return new RowReading(columnsOf(view.rows({ ...caller, positions }), positions), rowBytes);
  }
}

/** A pass over rows that are produced on demand and divided among several answers. */
class RowReading<T> {
  readonly #portions: Iterator<readonly T[]>;
  readonly #bytesOf: (row: T) => number;
  #portion: readonly T[] = [];
  #position = 0;

  constructor(portions: Iterable<readonly T[]>, bytesOf: (row: T) => number) {
    this.#portions = portions[Symbol.iterator]();
    this.#bytesOf = bytesOf;
  }

  /**
   * Returns the next rows, or undefined at the end. An empty list means that producing the next
   * rows takes more time than one answer may take.
   */
  next(clock: Clock): readonly T[] | undefined {
    const rows: T[] = [];
    const endMs = clock.monotonicMs() + MAKE_MS_MAX;
    let bytes = 0;
    for (let portions = 0; ; portions += 1) {
      for (; this.#position < this.#portion.length; this.#position += 1) {
        if (rows.length === ROWS_MAX || bytes >= BYTES_MAX) return rows;
        const row = this.#portion[this.#position] as T;
        bytes += this.#bytesOf(row);
        rows.push(row);
      }
      if (portions > 0 && clock.monotonicMs() >= endMs) return rows;
      const step = this.#portions.next();
      if (step.done === true) return rows.length === 0 ? undefined : rows;
      this.#portion = step.value;
      this.#position = 0;
    }
  }

  close(): void {
    this.#portions.return?.();
  }
}

function* columnsOf(
  portions: Iterable<readonly Row[]>,
  positions: readonly number[],
): Generator<readonly Row[]> {
  for (const portion of portions) {
    yield portion.map((row) => positions.map((position) => row[position] ?? null));
  }
}

/**
 * Yields the values that a scan returns for each staged row: the values of the row itself or, if
 * it was deleted, those of its tombstone.
 */
function* shownRows(rows: Iterable<readonly [string, StagedRow]>): Generator<readonly KeyedRow[]> {
  for (const [keyText, { isDeleted, row, stored }] of rows) {
    const shown = isDeleted ? stored : row;
    yield [[keyText, { row: shown ?? [], isDeleted, stored: isDeleted ? shown : undefined }]];
  }
}
