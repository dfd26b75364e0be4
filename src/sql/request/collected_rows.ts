/**
 * The rows of a query on their way into its answer: held until its end, as most are few, or given
 * to the reader of the request once they are many.
 */
import { assert } from "../../base/assert.ts";
import type { Batch } from "../../types/mod.ts";
import type { StatementResult } from "../common/engine.ts";
import type { CellRows } from "../common/result.ts";
import type { RowText } from "../common/row_text.ts";
import { batchBytes, type MemoryBudget } from "../execute/held/memory_budget.ts";
import { checkResultRows } from "../execute/run/run.ts";
import { type AnswerChannel, type EntryHead, OPENING_BYTES } from "./answer_stream.ts";

export interface CollectedRowsOptions {
  readonly cells: CellRows;
  readonly head: EntryHead;
  readonly memory: MemoryBudget;
  /** 0 is no limit. */
  readonly rowsMax: number;
  /** Rows are counted and not kept, as EXPLAIN ANALYZE shows none. */
  readonly isCounted: boolean;
}

export class CollectedRows {
  readonly #options: CollectedRowsOptions;
  #rows: unknown[][] = [];
  /** Rows behind those, as text. */
  #texts: RowText[] = [];
  /** Of `#rows`, in the memory of the statement. */
  #bytes = 0;
  #rowCount = 0;
  /** Who takes them, once some were given away. */
  #channel: AnswerChannel | undefined;

  constructor(options: CollectedRowsOptions) {
    this.#options = options;
  }

  /** Whether so many wait that the reader should have them first. */
  get areMany(): boolean {
    return this.#bytes >= OPENING_BYTES;
  }

  /** Forgets the rows so far, none of which was given away. */
  clear(): void {
    assert(this.#channel === undefined, "rows that were given away cannot be taken back");
    this.#rows = [];
    this.#options.memory.release(this.#bytes);
    this.#bytes = 0;
    this.#rowCount = 0;
  }

  /** @throws {DatabaseError} MEMORY_EXCEEDED, RESULT_TOO_LARGE */
  add(batch: Batch): void {
    const { cells, isCounted, memory, rowsMax } = this.#options;
    this.#rowCount += batch.rowCount;
    checkResultRows(this.#rowCount, rowsMax);
    if (isCounted) return;
    const bytes = batchBytes(batch);
    this.#bytes += bytes;
    memory.take(bytes);
    cells.append(batch, this.#rows);
  }

  /** Whether some rows were given away; those that follow may come as text. */
  get isStreamed(): boolean {
    return this.#channel !== undefined;
  }

  /** Rows behind those that were given away. @throws {DatabaseError} RESULT_TOO_LARGE */
  addText(text: RowText): void {
    assert(this.isStreamed, "rows come as text once they are many");
    this.#rowCount += text.rowCount;
    checkResultRows(this.#rowCount, this.#options.rowsMax);
    this.#texts.push(text);
  }

  /**
   * Gives the rows so far to the reader if they are many. Returns what to wait for before there may
   * be more.
   */
  send(channel: AnswerChannel): Promise<void> | undefined {
    if (this.#channel === undefined && !this.areMany) return undefined;
    if (this.#rows.length + this.#texts.length === 0) return undefined;
    this.#push(channel);
    return channel.taken();
  }

  /** What is left, of a query that has ended. */
  finish(): StatementResult {
    const { asUser, schema } = this.#options.head;
    const rowCount = this.#rowCount;
    if (this.#channel === undefined) {
      return { schema, rows: this.#rows, rowCount, asUser };
    }
    if (this.#rows.length + this.#texts.length > 0) this.#push(this.#channel);
    return { schema, rowCount, asUser };
  }

  #push(channel: AnswerChannel): void {
    this.#channel = channel;
    const { head } = this.#options;
    if (this.#rows.length > 0) channel.pushRows(this.#rows, head);
    for (const text of this.#texts) channel.pushText(text, head);
    this.#rows = [];
    this.#texts = [];
    this.#options.memory.release(this.#bytes);
    this.#bytes = 0;
  }
}
