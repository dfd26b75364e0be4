/**
 * Sends questions of a statement in a reader to the event loop. The questions ask for rows of
 * system views, staged rows, ids, numbers of sequences, objects, and settings. Each question is
 * sent when the statement needs the answer, so the answer reflects the same state as it would on
 * the event loop.
 */
import type { Row, Value } from "../../types/mod.ts";
import type { SystemCall } from "../bind/bound.ts";
import type { StagedRow, StagedRows } from "../execute/context/transaction.ts";
import { rowBytes } from "../execute/materialised/row_bytes.ts";
import type { SettingCalls } from "../functions/base/function.ts";
import type { Answers, Question } from "./job.ts";
import { AskedObjectCalls } from "./object_questions.ts";
import { AskedSequenceCalls } from "./sequence_questions.ts";

/**
 * The minimum number of ids to request at a time. The first question requests this number. Unused
 * ids are discarded.
 */
const IDS_MIN = 16;
const IDS_MAX = 1024;

export interface QuestionsOptions {
  /**
   * Sends a question and waits for the answer.
   *
   * @throws {DatabaseError} If the statement has to end.
   */
  readonly ask: <K extends Question["kind"]>(question: QuestionOf<K>) => Answers[K];
  /** Reports that no more rows of a numbered pass over rows are needed. */
  readonly leave: (reading: number) => void;
  readonly stagedTableIds: readonly number[];
}

/** Asks the questions of a job, and caches answers that remain valid. */
export class Questions implements StagedRows, SettingCalls {
  readonly #options: QuestionsOptions;
  readonly sequences: AskedSequenceCalls;
  readonly objects: AskedObjectCalls;
  readonly #stagedTableIds: ReadonlySet<number>;
  readonly #staged = new Map<number, ReadonlyMap<string, StagedRow>>();
  #stagedBytes = 0;
  #readingCount = 0;
  readonly #settings = new Map<string, string | undefined>();
  #ids: readonly number[] = [];
  #idsTaken = 0;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.sequences = new AskedSequenceCalls((call) =>
      options.ask<"sequence">({ kind: "sequence", call }),
    );
    this.objects = new AskedObjectCalls((call) => options.ask<"object">({ kind: "object", call }));
    this.#stagedTableIds = new Set(options.stagedTableIds);
  }

  /** The size of the cached staged rows, in bytes. */
  get stagedBytes(): number {
    return this.#stagedBytes;
  }

  snowflakeId(): number {
    if (this.#idsTaken === this.#ids.length) {
      const count = Math.min(IDS_MAX, Math.max(IDS_MIN, 2 * this.#ids.length));
      this.#ids = this.#options.ask<"ids">({ kind: "ids", count });
      this.#idsTaken = 0;
    }
    this.#idsTaken += 1;
    return this.#ids[this.#idsTaken - 1] as number;
  }

  /** Returns the value of a setting. The event loop is asked for it only once. */
  current(name: string): string | undefined {
    if (!this.#settings.has(name)) {
      this.#settings.set(name, this.#options.ask<"setting">({ kind: "setting", name }));
    }
    return this.#settings.get(name);
  }

  /** Asks the event loop to change a setting of the request. Returns the new value. */
  set(name: string, value: string | undefined, isLocal: boolean): string {
    this.#settings.clear();
    const set = { value, isLocal };
    return this.#options.ask<"setting">({ kind: "setting", name, set }) ?? "";
  }

  hasStaged(tableId: number): boolean {
    return this.#stagedTableIds.has(tableId);
  }

  /**
   * Returns the staged rows of a table. All of them belong to the caller, because the statement
   * cannot read the rows of any other owner.
   */
  stagedOf(tableId: number): ReadonlyMap<string, StagedRow> | undefined {
    if (!this.hasStaged(tableId)) return undefined;
    let staged = this.#staged.get(tableId);
    if (staged === undefined) {
      staged = this.#readStaged(tableId);
      this.#staged.set(tableId, staged);
    }
    return staged;
  }

  /** Yields the rows of a system view, with values only in the requested columns. */
  *systemRows(name: string, { positions }: Pick<SystemCall, "positions">): Generator<Row[]> {
    for (const rows of this.#portions<"system">({ kind: "system", name, positions })) {
      yield rows.map((cells) => {
        const row: Value[] = [];
        for (const [i, position] of positions.entries()) row[position] = cells[i] ?? null;
        return row;
      });
    }
  }

  #readStaged(tableId: number): ReadonlyMap<string, StagedRow> {
    const staged = new Map<string, StagedRow>();
    for (const rows of this.#portions<"staged">({ kind: "staged", tableId })) {
      for (const [keyText, row] of rows) {
        staged.set(keyText, row);
        this.#stagedBytes += rowBytes(row.row);
      }
    }
    return staged;
  }

  *#portions<K extends "system" | "staged">(
    about: Omit<QuestionOf<K>, "reading">,
  ): Generator<NonNullable<Answers[K]>> {
    const { ask, leave } = this.#options;
    this.#readingCount += 1;
    const reading = this.#readingCount;
    let isAtEnd = false;
    try {
      for (;;) {
        const rows = ask<K>({ ...about, reading } as QuestionOf<K>);
        isAtEnd = rows === undefined;
        if (rows === undefined) return;
        yield rows;
      }
    } finally {
      if (!isAtEnd) leave(reading);
    }
  }
}

export type QuestionOf<K extends Question["kind"]> = Extract<Question, { readonly kind: K }>;
