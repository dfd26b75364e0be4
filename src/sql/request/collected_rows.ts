/**
 * Collects the rows of a query for the response. Rows are kept until the end of the query, because
 * most responses are short. If there are many rows, they are passed on to the client while the
 * query runs.
 */
import { assert } from "../../base/assert.ts";
import type { Batch } from "../../types/mod.ts";
import { checkResultRows } from "../execute/context/execution_context.ts";
import { batchBytes, type MemoryBudget } from "../execute/materialised/memory_budget.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { CopyText } from "../result/copy_text.ts";
import type { CellRows } from "../result/result.ts";
import type { RowText } from "../result/row_text.ts";
import { type AnswerChannel, type EntryHead, OPENING_BYTES } from "./answer_stream.ts";

export interface CollectedRowsOptions {
  readonly cells: CellRows;
  /** Writes the rows of a COPY TO, which are not converted to wire cells. */
  readonly copy?: CopyText | undefined;
  readonly head: EntryHead;
  readonly memory: MemoryBudget;
  /** The maximum number of rows; 0 means no limit. */
  readonly rowsMax: number;
  /** Whether rows are counted instead of collected, as for EXPLAIN ANALYZE. */
  readonly isCounted: boolean;
}

export class CollectedRows {
  readonly #options: CollectedRowsOptions;
  #rows: unknown[][] = [];
  /** The rows that follow the rows in `#rows`, as text. */
  #texts: RowText[] = [];
  /** The size of `#rows` in bytes, as counted against the statement's memory. */
  #bytes = 0;
  #rowCount = 0;
  /** The channel to the client; undefined until the first rows are passed on. */
  #channel: AnswerChannel | undefined;

  constructor(options: CollectedRowsOptions) {
    this.#options = options;
  }

  /**
   * Whether there are so many rows that the client should receive them before the query reads
   * more.
   */
  get areMany(): boolean {
    return this.#bytes >= OPENING_BYTES;
  }

  /** Discards the collected rows. None of them may have been passed on yet. */
  clear(): void {
    assert(this.#channel === undefined, "result rows: rows already sent cannot be discarded");
    this.#rows = [];
    this.#texts = [];
    this.#options.memory.release(this.#bytes);
    this.#bytes = 0;
    this.#rowCount = 0;
  }

  /** Adds the rows of a batch. @throws {DatabaseError} MEMORY_EXCEEDED, RESULT_TOO_LARGE */
  add(batch: Batch): void {
    const { cells, copy, isCounted, memory, rowsMax } = this.#options;
    this.#rowCount += batch.rowCount;
    checkResultRows(this.#rowCount, rowsMax);
    if (isCounted) return;
    if (copy !== undefined) {
      this.#addCopied(copy.rows(batch));
      return;
    }
    const bytes = batchBytes(batch);
    this.#bytes += bytes;
    memory.take(bytes);
    cells.append(batch, this.#rows);
  }

  #addCopied(text: RowText): void {
    this.#texts.push(text);
    this.#bytes += text.text.length;
    this.#options.memory.take(text.text.length);
  }

  /** Whether the reader thread may itself write further rows as text. */
  get takesText(): boolean {
    return this.isStreamed && this.#options.copy === undefined;
  }

  /** Whether rows have already been passed on to the client. If so, further rows may be text. */
  get isStreamed(): boolean {
    return this.#channel !== undefined;
  }

  /**
   * Adds rows as text, after rows that have already been passed on.
   *
   * @throws {DatabaseError} RESULT_TOO_LARGE
   */
  addText(text: RowText): void {
    assert(this.isStreamed, "result rows: text rows added to a result that is not streamed");
    this.#rowCount += text.rowCount;
    checkResultRows(this.#rowCount, this.#options.rowsMax);
    this.#texts.push(text);
  }

  /**
   * Passes the rows on to the client if there are many. If the result is a promise, the caller
   * must await it before adding more rows.
   */
  send(channel: AnswerChannel): Promise<void> | undefined {
    if (this.#channel === undefined && !this.areMany) return undefined;
    if (this.#rows.length + this.#texts.length === 0) return undefined;
    this.#push(channel);
    return channel.taken();
  }

  /** Returns the result of a finished query with the remaining rows. */
  finish(): StatementResult {
    const { asUser, schema } = this.#options.head;
    const { copy } = this.#options;
    const rowCount = this.#rowCount;
    if (this.#channel === undefined && copy !== undefined) {
      const rows = this.#texts.map(({ text }) => text);
      return { schema, rowCount, asUser, copied: [copy.head(), ...rows, copy.tail()] };
    }
    if (copy !== undefined) this.#texts.push({ text: copy.tail(), rowCount: 0 });
    if (this.#channel === undefined) {
      return { schema, rows: this.#rows, rowCount, asUser };
    }
    if (this.#rows.length + this.#texts.length > 0) this.#push(this.#channel);
    return { schema, rowCount, asUser };
  }

  #push(channel: AnswerChannel): void {
    const { copy, head } = this.#options;
    if (this.#channel === undefined && copy !== undefined) {
      this.#texts.unshift({ text: copy.head(), rowCount: 0 });
    }
    this.#channel = channel;
    if (this.#rows.length > 0) channel.pushRows(this.#rows, head);
    let bytes = this.#bytes;
    for (const text of this.#texts) {
      if (copy === undefined) bytes += text.text.length;
      channel.pushText(text, head);
    }
    channel.noteAllocated(bytes);
    this.#rows = [];
    this.#texts = [];
    this.#options.memory.release(this.#bytes);
    this.#bytes = 0;
  }
}
