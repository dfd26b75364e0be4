/**
 * The rest of an answer that is too long to be held: the statements go on while it is read.
 *
 *     not open ──first rows pushed──► open ──all statements ended──► ended
 *        └──all statements ended──► never: the whole answer is given at once
 *
 * - What is pushed waits for its reader, and the query that pushed it pauses until it was taken: no
 *   more than the rows of one turn of the event loop are held.
 * - A pause does not count as time of the request, since how fast the rows are read is the client's
 *   affair; but a reader that takes nothing for long, or leaves, ends the request like KILL QUERY.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import type {
  AnswerPart,
  AnswerReader,
  AnswerStream,
  SqlRequest,
  SqlResponse,
  StatementResult,
} from "../common/engine.ts";
import type { ResultFormat, RowText } from "../common/row_text.ts";
import { cancelRequest, checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";

/**
 * Bytes of rows, as memory counts them, from which on they are not held until the end: each byte
 * of JSON is counted as 8 at most, so the first 64 KiB of the body are there when it opens.
 */
export const OPENING_BYTES: number = 8 * 64 * 1024;

/** How long a paused query takes at most to notice that it was killed. */
const LOOK_MS = 100;

/** A reader that takes nothing for so long is gone, though nobody said so. */
const SILENT_MS_MAX = 60_000;

export interface ChannelOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  readonly reader: AnswerReader;
  readonly format: ResultFormat;
}

/** The channel of a request that somebody reads. */
export function channelOf(
  { format = "json", reader }: SqlRequest,
  { clock, ledger }: Pick<ChannelOptions, "clock" | "ledger">,
): AnswerChannel {
  return new AnswerChannel({ clock, format, ledger, reader: defined(reader, "somebody reads") });
}

export class AnswerChannel implements AnswerStream {
  readonly #clock: Clock;
  readonly #ledger: RequestLedger;
  readonly #reader: AnswerReader;
  readonly #format: ResultFormat;
  readonly #parts: AnswerPart[] = [];
  /** What is no expected failure. */
  #failure: Error | undefined;
  #isOpen = false;
  #isWatched = false;
  #onOpen: (() => void) | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor({ clock, format, ledger, reader }: ChannelOptions) {
    this.#format = format;
    this.#clock = clock;
    this.#ledger = ledger;
    this.#reader = reader;
  }

  /** The format of the answer. */
  get format(): ResultFormat {
    return this.#format;
  }

  /** From now on the request ends when its reader leaves: it is longer than a turn. */
  watchReader(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#reader.onLeave(() => this.cancel());
  }

  /** Whether the first rows were pushed. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * The answer: the whole of it, or what there was when the stream opened, and the stream.
   *
   * @param completed The entries before the one whose rows open the stream.
   */
  answerOf(
    whole: Promise<SqlResponse>,
    completed: () => readonly StatementResult[],
  ): Promise<SqlResponse> {
    return new Promise((resolve, reject) => {
      this.#onOpen = () => resolve({ results: [...completed()], stream: this });
      // The first turn of a query may have had rows enough.
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

  /** Rows of the statement at hand. */
  pushRows(rows: readonly (readonly unknown[])[], head: EntryHead): void {
    this.#push({ kind: "rows", ...head, rows });
    this.#open();
  }

  /** The same, as text in the format of the request. */
  pushText({ rowCount, text }: RowText, head: EntryHead): void {
    this.#push({ kind: "text", ...head, text, rowCount });
    this.#open();
  }

  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#onOpen?.();
  }

  /** A statement has ended; rows of it that were pushed are not in its result. */
  pushEntry(result: StatementResult): void {
    this.#push({ kind: "entry", result });
  }

  /**
   * Resolves when all that was pushed is taken.
   * @throws {DatabaseError} CANCELLED, SHUTTING_DOWN
   */
  async taken(): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    while (this.#parts.length > 0) {
      await this.#writerWoken();
      if (this.#ledger.cancelledBy !== undefined) checkDeadline(this.#ledger, this.#clock);
      if (this.#clock.monotonicMs() - startMs < SILENT_MS_MAX) continue;
      throw new DatabaseError("CANCELLED", "Cannot finish the statement: nobody reads its rows");
    }
    this.#ledger.deadlineMs += this.#clock.monotonicMs() - startMs;
  }

  async next(): Promise<AnswerPart> {
    for (;;) {
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

/** What stands before the rows of an entry. */
export interface EntryHead {
  readonly schema: readonly SchemaField[];
  readonly asUser: string;
}
