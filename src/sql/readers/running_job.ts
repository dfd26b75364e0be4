/**
 * The statement that a reader runs, as the event loop sees it: its rows, which are handed on in
 * order, its questions, and why it has to end.
 */
import { defined } from "../../base/assert.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { TableShares } from "../../storage/mod.ts";
import { checkDeadline } from "../execute/run/request_ledger.ts";
import { measuredNodes } from "../prepare/measured_nodes.ts";
import type { JobAnswers } from "./answers.ts";
import {
  type AnswerMessage,
  CANCEL_CAUSES,
  FORMATS,
  type FromReader,
  JOB_WORDS,
  type JobTotals,
  type JobWords,
  newJobWords,
  WINDOW_KIB,
} from "./job.ts";
import type { ReaderQuery, ReaderRead, ReadOutcome } from "./reader.ts";

/** How often the event loop looks at a reader that is busy. */
const LOOK_MS = 50;

/** A reader that goes on for so long after its statement had to end hangs. */
const HUNG_MS = 2000;

type RowMessage = Extract<FromReader, { kind: "rows" | "text" }>;

export interface RunningJobOptions {
  readonly clock: Clock;
  readonly plan: number;
  readonly shares: TableShares;
  readonly answers: JobAnswers;
  readonly onHung: () => void;
  /** Told now and then while the statement is held up. */
  readonly onHeldUp: () => void;
}

export class RunningJob implements ReaderRead {
  readonly words: JobWords = newJobWords();
  readonly plan: number;
  readonly #query: ReaderQuery;
  readonly #clock: Clock;
  readonly #shares: TableShares;
  readonly #answers: JobAnswers;
  readonly #onHung: () => void;
  readonly #onHeldUp: () => void;
  readonly #rowsReadBefore: number;
  readonly #settled = Promise.withResolvers<ReadOutcome>();
  readonly #done = Promise.withResolvers<void>();
  readonly #queue: RowMessage[] = [];
  #isPumping = false;
  /** The outcome in the reader, while rows still wait here. */
  #ended: ReadOutcome | Error | undefined;
  #isOver = false;
  #pendingKib = 0;
  /** Bytes that the ledger was told the reader holds. */
  #heldBytes = 0;
  #endAskedMs: number | undefined;
  #heldUpSinceMs: number | undefined;
  #cancelLook: CancelTimer;

  constructor(query: ReaderQuery, options: RunningJobOptions) {
    const { answers, clock, onHeldUp, onHung, plan, shares } = options;
    this.plan = plan;
    this.#query = query;
    this.#clock = clock;
    this.#shares = shares;
    this.#answers = answers;
    this.#onHung = onHung;
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

  /** Undefined if the statement has failed: the reader has to end, and needs no answer. */
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
    this.#query.onParted?.();
  }

  /** The reader is done. @param totals undefined if it refused the statement. */
  end(totals: JobTotals | undefined): void {
    this.#letGo();
    if (totals !== undefined) this.#noteTotals(totals);
    this.#ended = totals === undefined ? "refused" : "read";
    if (!this.#isPumping) this.#settle();
  }

  /** The thread has failed before it could begin. */
  endUnstarted(): void {
    this.#letGo();
    this.#ended = this.reasonToEnd() ?? "unstarted";
    this.#settle();
  }

  #noteTotals({ measures = [], rowsRead, sleepMs, workedMs }: JobTotals): void {
    const { ledger, prepared, profile, sleeps } = this.#query;
    ledger.rowsRead = this.#rowsReadBefore + rowsRead;
    sleeps?.noteSlept(sleepMs);
    if (profile === undefined || prepared.plan === undefined) return;
    profile.addReader(workedMs);
    const nodes = measuredNodes(prepared.plan);
    for (const { at, ...measured } of measures) {
      profile.add(defined(nodes[at], "both threads have the same plan"), measured);
    }
  }

  /** The reader is done, or gone. The rows before the failure are still taken. */
  fail(error: Error): void {
    this.#ended = error;
    if (!this.#isPumping || this.reasonToEnd() !== undefined) this.#settle();
    this.#letGo();
    this.#shares.noteDamage(error);
  }

  stop(): void {
    this.abandon(new Error("Nobody wants the rows any more"));
  }

  /** How long the reader has waited for the client to take its rows; undefined if it does not. */
  get heldUpMs(): number | undefined {
    const sinceMs = this.#heldUpSinceMs;
    return sinceMs === undefined ? undefined : this.#clock.monotonicMs() - sinceMs;
  }

  /** Fails the statement, whose rows are not needed any more. */
  abandon(error: Error): void {
    if (this.#isOver) return;
    this.#raise("kill");
    this.#reject(error);
  }

  /** Why the statement has to end; undefined while it may go on. */
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
    if (this.#ended !== undefined) this.#settle();
  }

  #give(message: RowMessage): void {
    if (message.kind === "rows") this.#query.onBatch(message.batch);
    else this.#query.onText?.(message);
  }

  /** Has the reader encode the rows to come, if they go into a streamed answer. */
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
    // The deadline of a client that takes rows is later than it seems until it has taken them.
    const mayEnd = ledger.cancelledBy !== undefined || !this.#isPumping;
    const reason = mayEnd ? this.reasonToEnd() : undefined;
    if (reason !== undefined) {
      // The caller need not wait until the reader has noticed.
      this.#raise(ledger.cancelledBy ?? "kill");
      this.#reject(reason);
    }
    const kiloRows = Atomics.load(this.words, JOB_WORDS.kiloRowsRead);
    ledger.rowsRead = Math.max(ledger.rowsRead, this.#rowsReadBefore + kiloRows * 1000);
    this.#noteHeld(Atomics.load(this.words, JOB_WORDS.heldKib) * 1024);
    const nowMs = this.#clock.monotonicMs();
    const isToEnd = this.#isOver || nowMs >= ledger.deadlineMs;
    // A reader that waits for its rows to be taken does not hang.
    const isWaiting = !this.#isOver && this.#pendingKib > WINDOW_KIB;
    this.#noteHeldUp(isWaiting, nowMs);
    if (!isToEnd || isWaiting) this.#endAskedMs = undefined;
    else this.#endAskedMs ??= nowMs;
    if (this.#endAskedMs !== undefined && nowMs - this.#endAskedMs >= HUNG_MS) this.#onHung();
  }

  /** The rows of a change are taken by the event loop, and not by a client. */
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
    const ended = defined(this.#ended, "the reader has ended");
    if (ended instanceof Error) this.#settled.reject(ended);
    else this.#settled.resolve(ended);
  }

  #reject(error: unknown): void {
    this.#isOver = true;
    this.#settled.reject(error);
  }
}
