/**
 * Streams a response that is too large for memory: the statements continue to run while the client
 * reads the response.
 *
 *     not open ──first rows pushed──► open ──all statements ended──► ended
 *        └──all statements ended──► never: the whole response is given at once
 *
 * - A query that has pushed rows pauses until the client has taken them, so at most the rows of
 *   one tick of the event loop are in memory.
 * - While the process has nearly used up its memory, the client receives nothing. Everything that
 *   it takes soon becomes garbage, so a fast client could otherwise get the process killed.
 * - Pauses do not count towards the time limit of the request, because the client determines how
 *   fast rows are read. If a client takes nothing for a long time, or disconnects, the request
 *   ends as if by KILL QUERY.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import type { MemoryGate } from "../admission/memory_gate.ts";
import {
  cancelRequest,
  checkDeadline,
  type RequestLedger,
} from "../execute/context/request_ledger.ts";
import type {
  AnswerPart,
  AnswerReader,
  AnswerStream,
  ResultFormat,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "../ports/engine.ts";
import type { RowText } from "../result/row_text.ts";

/**
 * The size of the rows in memory at which streaming begins. A byte of JSON takes at most 8 bytes
 * in memory, so at least the first 64 KiB of the body are available when the stream opens.
 */
export const OPENING_BYTES: number = 8 * 64 * 1024;

/** The longest time in milliseconds until a paused query notices that it has been killed. */
const LOOK_MS = 100;

/** The time in milliseconds without any read after which a client is considered disconnected. */
const SILENT_MS_MAX = 60_000;

export interface ChannelOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  readonly reader: AnswerReader;
  readonly format: ResultFormat;
  readonly memoryGate: MemoryGate;
}

/**
 * Returns the channel through which a request streams its rows. The request must have an
 * `AnswerReader`.
 */
export function channelOf(
  { format = "json", reader }: SqlRequest,
  world: Pick<ChannelOptions, "clock" | "ledger" | "memoryGate">,
): AnswerChannel {
  return new AnswerChannel({
    ...world,
    format,
    reader: defined(reader, "answer stream: no reader thread is reading"),
  });
}

export class AnswerChannel implements AnswerStream {
  readonly #clock: Clock;
  readonly #ledger: RequestLedger;
  readonly #reader: AnswerReader;
  readonly #format: ResultFormat;
  readonly #memoryGate: MemoryGate;
  readonly #parts: AnswerPart[] = [];
  /** A failure other than an error of the statement. */
  #failure: Error | undefined;
  #isOpen = false;
  #isWatched = false;
  #onOpen: (() => void) | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor({ clock, format, ledger, memoryGate, reader }: ChannelOptions) {
    this.#format = format;
    this.#clock = clock;
    this.#ledger = ledger;
    this.#memoryGate = memoryGate;
    this.#reader = reader;
  }

  /** The format in which the response is streamed. */
  get format(): ResultFormat {
    return this.#format;
  }

  /**
   * Makes the request end when its client disconnects. Must be called once the request has taken
   * longer than a time slice.
   */
  watchReader(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#reader.onLeave(() => this.cancel());
  }

  /** Whether the first rows have been pushed. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Returns the entire response or, if the stream opens, the part completed before that together
   * with the stream.
   *
   * @param completed Returns the entries before the entry whose rows open the stream.
   */
  answerOf(
    whole: Promise<SqlResponse>,
    completed: () => readonly StatementResult[],
  ): Promise<SqlResponse> {
    return new Promise((resolve, reject) => {
      this.#onOpen = () => resolve({ results: [...completed()], stream: this });
      // The first time slice of a query may already have produced enough rows to open the stream.
      if (this.#isOpen) this.#onOpen();
      void this.#follow(whole, { resolve, reject });
    });
  }

  async #follow(
    whole: Promise<SqlResponse>,
    { reject, resolve }: { resolve: (response: SqlResponse) => void; reject: (e: unknown) => void },
  ): Promise<void> {
    try {
      const response = await whole;
      if (this.#isOpen) this.#push({ kind: "end", error: response.error });
      else resolve(response);
    } catch (error) {
      if (this.#isOpen) this.#fail(error);
      else reject(error);
    }
  }

  /** Pushes rows of the current statement. */
  pushRows(rows: readonly (readonly unknown[])[], head: EntryHead): void {
    this.#push({ kind: "rows", ...head, rows });
    this.#open();
  }

  /** Pushes rows as text in the format of the request. */
  pushText({ rowCount, text }: RowText, head: EntryHead): void {
    this.#push({ kind: "text", ...head, text, rowCount });
    this.#open();
  }

  /** Records the memory of pushed rows, which soon becomes garbage. */
  noteAllocated(bytes: number): void {
    this.#memoryGate.noteAllocated(bytes);
  }

  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#onOpen?.();
  }

  /**
   * Pushes the end of a statement. The pushed result does not include rows that have already been
   * pushed.
   */
  pushEntry(result: StatementResult): void {
    this.#push({ kind: "entry", result });
  }

  /**
   * Resolves when the client has taken everything that has been pushed.
   * @throws {DatabaseError} CANCELLED, SHUTTING_DOWN
   */
  async taken(): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    while (this.#parts.length > 0) {
      await this.#writerWoken();
      if (this.#ledger.cancelledBy !== undefined) checkDeadline(this.#ledger, this.#clock);
      if (this.#clock.monotonicMs() - startMs < SILENT_MS_MAX) continue;
      throw new DatabaseError(
        "CANCELLED",
        "Cannot finish the statement: the client has stopped reading the rows",
      );
    }
    this.#ledger.deadlineMs += this.#clock.monotonicMs() - startMs;
  }

  async next(): Promise<AnswerPart> {
    for (;;) {
      const isHeldBack = this.#parts.length > 0 && this.#memoryGate.isClosed;
      if (isHeldBack) await this.#memoryGate.openedForPart(this.#ledger);
      const part = this.#parts.shift();
      if (part !== undefined) {
        if (this.#parts.length === 0) this.#wakeWriter?.();
        return part;
      }
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  cancel(): void {
    cancelRequest(this.#ledger, "kill");
    this.#wakeWriter?.();
  }

  #writerWoken(): Promise<void> {
    return new Promise((resolve) => {
      const cancelTimer = this.#clock.after(LOOK_MS, resolve);
      this.#wakeWriter = () => {
        cancelTimer();
        resolve();
      };
    });
  }

  #push(part: AnswerPart): void {
    this.#parts.push(part);
    this.#wakeReader?.();
  }

  #fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.#wakeReader?.();
  }
}

/** The part of a response entry that precedes its rows. */
export interface EntryHead {
  readonly schema: readonly SchemaField[];
  readonly asUser: string;
}
