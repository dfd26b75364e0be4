/**
 * The questions of a statement in a reader to the event loop: for rows of system views, rows that
 * its transaction has staged, and ids. Each is asked when the statement comes to it, so that the
 * answer is of the same moment as on the event loop.
 */
import type { Row, Value } from "../../types/mod.ts";
import type { SystemCall } from "../bind/bound.ts";
import { rowBytes } from "../execute/held/row_bytes.ts";
import type { StagedRow, StagedRows } from "../execute/run/transaction.ts";
import type { Answers, Question } from "./job.ts";

/** The first question asks for the smaller number of ids. Left-over ids are never used. */
const IDS_MIN = 16;
const IDS_MAX = 1024;

export interface QuestionsOptions {
  /** Waits for the answer. @throws {DatabaseError} The statement has to end. */
  readonly ask: <K extends Question["kind"]>(question: Asked<K>) => Answers[K];
  /** Tells that no more rows of a reading are needed. */
  readonly leave: (reading: number) => void;
  readonly stagedTableIds: readonly number[];
}

/** The questions of one job. */
export class Questions implements StagedRows {
  readonly #options: QuestionsOptions;
  readonly #stagedTableIds: ReadonlySet<number>;
  readonly #staged = new Map<number, ReadonlyMap<string, StagedRow>>();
  #stagedBytes = 0;
  #readingCount = 0;
  #ids: readonly number[] = [];
  #idsTaken = 0;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.#stagedTableIds = new Set(options.stagedTableIds);
  }

  /** Bytes of the staged rows that are held here. */
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

  hasStaged(tableId: number): boolean {
    return this.#stagedTableIds.has(tableId);
  }

  /** The rows of the caller: no other owner has any that this statement may read. */
  stagedOf(tableId: number): ReadonlyMap<string, StagedRow> | undefined {
    if (!this.hasStaged(tableId)) return undefined;
    let staged = this.#staged.get(tableId);
    if (staged === undefined) {
      staged = this.#readStaged(tableId);
      this.#staged.set(tableId, staged);
    }
    return staged;
  }

  /** The rows of a system view, of which only the columns that were asked for have values. */
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
    about: Omit<Asked<K>, "reading">,
  ): Generator<NonNullable<Answers[K]>> {
    const { ask, leave } = this.#options;
    this.#readingCount += 1;
    const reading = this.#readingCount;
    let isAtEnd = false;
    try {
      for (;;) {
        const rows = ask<K>({ ...about, reading } as Asked<K>);
        isAtEnd = rows === undefined;
        if (rows === undefined) return;
        yield rows;
      }
    } finally {
      if (!isAtEnd) leave(reading);
    }
  }
}

export type Asked<K extends Question["kind"]> = Extract<Question, { readonly kind: K }>;
