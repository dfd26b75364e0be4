/**
 * Represents, on the event loop, the statement that a reader runs. It passes on rows in order,
 * answers questions from the reader, and ends the statement if necessary.
 */
import { defined } from "../../base/assert.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { TableShares } from "../../storage/mod.ts";
import { checkDeadline } from "../execute/context/request_ledger.ts";
import { measuredNodes } from "../prepare/measured_nodes.ts";
import type { JobAnswers } from "./answers.ts";
import {
  type AnswerMessage,
  CANCEL_CAUSES,
  FORMATS,
  type FromReader,
  type FurtherMessage,
  JOB_WORDS,
  type JobTotals,
  type JobWords,
  newJobWords,
  WINDOW_KIB,
} from "./job.ts";
import type { ReaderQuery, ReaderRead, ReadOutcome } from "./reader.ts";

/** The interval, in milliseconds, at which the event loop checks a busy reader. */
const LOOK_MS = 50;

/**
 * The time in milliseconds for which a reader may continue after its statement should have ended.
 * After that, the reader counts as hanging.
 */
const HUNG_MS = 2000;

/**
 * The maximum time in milliseconds until a reader's thread has started. Starting may take seconds
 * on a busy machine.
 */
const START_MS_MAX = 30_000;

type RowMessage = Extract<FromReader, { kind: "rows" | "text" }>;

export interface RunningJobOptions {
  readonly clock: Clock;
  readonly plan: number;
  readonly shares: TableShares;
  readonly answers: JobAnswers;
  /** Whether the thread of the reader has started. */
  readonly isStarted: () => boolean;
  readonly onHung: () => void;
  /** Sends a message to the reader, if it still has this job. */
  readonly goOn: (message: FurtherMessage) => void;
  /** Called repeatedly while the statement's client does not read the rows. */
  readonly onHeldUp: () => void;
}

export class RunningJob implements ReaderRead {
  readonly words: JobWords = newJobWords();
  readonly plan: number;
  readonly #query: ReaderQuery;
  readonly #clock: Clock;
  readonly #shares: TableShares;
  readonly #answers: JobAnswers;
  readonly #isStarted: () => boolean;
  readonly #onHung: () => void;
  readonly #goOn: (message: FurtherMessage) => void;
  readonly #onHeldUp: () => void;
  readonly #rowsReadBefore: number;
  readonly #settled = Promise.withResolvers<ReadOutcome>();
  readonly #done = Promise.withResolvers<void>();
  readonly #queue: RowMessage[] = [];
  #isPumping = false;
  /** Whether the reader is waiting for a message that continues the job. */
  #isParted = false;
  /**
   * The outcome that the reader has reported while some of its rows have not been passed on yet.
   */
  #ended: ReadOutcome | Error | undefined;
  #isOver = false;
  #pendingKib = 0;
  /** The memory that the job uses in the reader, in bytes, as last reported to the ledger. */
  #heldBytes = 0;
  #endAskedMs: number | undefined;
  #wasStarted = false;
  #heldUpSinceMs: number | undefined;
  #cancelLook: CancelTimer;

  constructor(query: ReaderQuery, options: RunningJobOptions) {
    const { answers, clock, goOn, isStarted, onHeldUp, onHung, plan, shares } = options;
    this.plan = plan;
    this.#query = query;
    this.#clock = clock;
    this.#shares = shares;
    this.#answers = answers;
    this.#isStarted = isStarted;
    this.#onHung = onHung;
    this.#goOn = goOn;
    this.#onHeldUp = onHeldUp;
    this.#rowsReadBefore = query.ledger.rowsRead;
    query.ledger.wake = () => this.#look();
    this.#cancelLook = clock.after(LOOK_MS, () => this.#lookLater());
  }

  get outcome(): Promise<ReadOutcome> {
    return this.#settled.promise;
  }

  get done(): Promise<void> {
    return this.#done.promise;
  }

  takeRows(message: RowMessage): void {
    if (this.#isOver) return;
    this.#queue.push(message);
    this.#pendingKib += message.kib;
    if (!this.#isPumping) void this.#pump();
  }

  /**
   * Answers a question from the reader. Returns undefined if the statement has failed; the reader
   * then has to end and needs no answer.
   */
  answerTo({ number, question }: Extract<FromReader, { kind: "ask" }>): AnswerMessage | undefined {
    if (this.#isOver) return undefined;
    try {
      return { number, answer: this.#answers.answer(question) };
    } catch (error) {
      this.#raise("kill");
      this.#reject(error);
      return undefined;
    }
  }

  noteAnswered(): void {
    Atomics.add(this.words, JOB_WORDS.answered, 1);
    Atomics.notify(this.words, JOB_WORDS.answered);
  }

  leave(reading: number): void {
    this.#answers.leave(reading);
  }

  noteParted(): void {
    this.#isParted = true;
    if (!this.#isPumping) this.#query.onParted?.();
  }

  goOn(message: FurtherMessage): void {
    this.#isParted = false;
    this.#goOn(message);
  }

  /**
   * Ends the job.
   *
   * @param totals undefined if the reader has refused the statement.
   */
  end(totals: JobTotals | undefined): void {
    this.#letGo();
    if (totals !== undefined) this.#noteTotals(totals);
    this.#ended = totals === undefined ? "refused" : "read";
    if (!this.#isPumping) this.#settle();
  }

  /** Ends the job of a reader whose thread failed before it could begin. */
  endUnstarted(): void {
    this.#letGo();
    this.#ended = this.reasonToEnd() ?? "unstarted";
    this.#settle();
  }

  #noteTotals({ measures = [], rowsRead, sleepMs, workedMs }: JobTotals): void {
    const { ledger, prepared, profile, sleeps } = this.#query;
    ledger.rowsRead = this.#rowsReadBefore + rowsRead;
    sleeps?.noteSlept(sleepMs);
    profile?.addReader(workedMs);
    if (profile === undefined || prepared.plan === undefined) return;
    const nodes = measuredNodes(prepared.plan);
    for (const { at, ...measured } of measures) {
      profile.add(
        defined(nodes[at], "reader job: measured node is missing from the plan"),
        measured,
      );
    }
  }

  /**
   * Fails the job of a reader that has finished or ended. Rows that have already arrived are still
   * passed on.
   */
  fail(error: Error): void {
    this.#ended = error;
    if (!this.#isPumping || this.reasonToEnd() !== undefined) this.#settle();
    this.#letGo();
    this.#shares.noteDamage(error);
  }

  stop(): void {
    this.abandon(new Error("The rows are no longer needed"));
  }

  /**
   * The time for which the reader has been waiting for the client to take its rows, in
   * milliseconds; undefined if the reader is not waiting.
   */
  get heldUpMs(): number | undefined {
    const sinceMs = this.#heldUpSinceMs;
    return sinceMs === undefined ? undefined : this.#clock.monotonicMs() - sinceMs;
  }

  /** Fails the statement before it has ended, so that its remaining rows are not needed. */
  abandon(error: Error): void {
    if (this.#isOver) return;
    this.#raise("kill");
    this.#reject(error);
  }

  /**
   * Returns the error with which the statement has to end, or undefined as long as it may
   * continue.
   */
  reasonToEnd(): Error | undefined {
    try {
      checkDeadline(this.#query.ledger, this.#clock);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        if (this.#isOver) break;
        this.#give(next);
        const waiting = this.#query.taken?.();
        if (waiting !== undefined) await waiting;
        this.#askForText();
        this.#pendingKib -= next.kib;
        Atomics.add(this.words, JOB_WORDS.takenKib, next.kib);
        Atomics.notify(this.words, JOB_WORDS.takenKib);
      }
    } catch (error) {
      this.#raise("kill");
      this.#reject(error);
    }
    this.#isPumping = false;
    if (this.#isParted) this.#query.onParted?.();
    if (this.#ended !== undefined) this.#settle();
  }

  #give(message: RowMessage): void {
    if (message.kind === "rows") this.#query.onBatch(message.batch);
    else this.#query.onText?.(message);
  }

  /** Makes the reader encode further rows as text, if the rows go into a streamed response. */
  #askForText(): void {
    const format = this.#query.textFormat?.();
    if (format === undefined) return;
    Atomics.store(this.words, JOB_WORDS.format, FORMATS.indexOf(format) + 1);
  }

  #lookLater(): void {
    this.#look();
    if (this.#ended === undefined && !this.#isLetGo) {
      this.#cancelLook = this.#clock.after(LOOK_MS, () => this.#lookLater());
    }
  }

  #look(): void {
    const { ledger } = this.#query;
    // While rows are being handed to the client, the time limit does not apply. The time spent is
    // added to the deadline.
    const mayEnd = ledger.cancelledBy !== undefined || !this.#isPumping;
    const reason = mayEnd ? this.reasonToEnd() : undefined;
    if (reason !== undefined) {
      // The caller need not wait until the reader notices that the job has to end.
      this.#raise(ledger.cancelledBy ?? "kill");
      this.#reject(reason);
    }
    const kiloRows = Atomics.load(this.words, JOB_WORDS.kiloRowsRead);
    ledger.rowsRead = Math.max(ledger.rowsRead, this.#rowsReadBefore + kiloRows * 1000);
    this.#noteHeld(Atomics.load(this.words, JOB_WORDS.heldKib) * 1024);
    const nowMs = this.#clock.monotonicMs();
    const isToEnd = this.#isOver || nowMs >= ledger.deadlineMs;
    // A reader waiting for its rows to be taken is not hanging.
    const isWaiting = !this.#isOver && this.#pendingKib > WINDOW_KIB;
    this.#noteHeldUp(isWaiting, nowMs);
    if (!isToEnd || isWaiting) this.#endAskedMs = undefined;
    else this.#endAskedMs ??= nowMs;
    const isStarted = this.#isStarted();
    if (isStarted && !this.#wasStarted) this.#endAskedMs &&= nowMs;
    this.#wasStarted = isStarted;
    const hungMs = isStarted ? HUNG_MS : START_MS_MAX;
    if (this.#endAskedMs !== undefined && nowMs - this.#endAskedMs >= hungMs) this.#onHung();
  }

  /**
   * Records whether a client keeps the reader waiting. The rows of a change do not count, because
   * they go to the event loop rather than to a client.
   */
  #noteHeldUp(isWaiting: boolean, nowMs: number): void {
    const isHeldUp = isWaiting && this.#query.prepared.kind === "query";
    this.#heldUpSinceMs = isHeldUp ? (this.#heldUpSinceMs ?? nowMs) : undefined;
    if (isHeldUp) this.#onHeldUp();
  }

  #noteHeld(bytes: number): void {
    this.#query.ledger.bytesElsewhere += bytes - this.#heldBytes;
    this.#heldBytes = bytes;
  }

  #raise(cause: (typeof CANCEL_CAUSES)[number]): void {
    Atomics.store(this.words, JOB_WORDS.cancelled, CANCEL_CAUSES.indexOf(cause) + 1);
    Atomics.notify(this.words, JOB_WORDS.takenKib);
    Atomics.notify(this.words, JOB_WORDS.answered);
    Atomics.notify(this.words, JOB_WORDS.cancelled);
  }

  #isLetGo = false;

  #letGo(): void {
    this.#isLetGo = true;
    this.#cancelLook();
    this.#query.ledger.wake = undefined;
    this.#noteHeld(0);
    this.#shares.release();
    this.#answers.close();
    this.#done.resolve();
  }

  #settle(): void {
    this.#isOver = true;
    const ended = defined(this.#ended, "reader job: ended without a result");
    if (ended instanceof Error) this.#settled.reject(ended);
    else this.#settled.resolve(ended);
  }

  #reject(error: unknown): void {
    this.#isOver = true;
    this.#settled.reject(error);
  }
}
