/**
 * Queues statements until a reader is free and memory is available.
 *
 *     waiting ──a reader is free, and memory──► given a place
 *        └──killed, out of time, client gone, server stops──► refused
 *
 * - A waiting statement holds no rows, no snapshot and no files.
 * - While the statements together have reached the memory limit, no statement gets a place.
 */
import { type CancelTimer, type Clock, HOUR_MS } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { ReaderQueue } from "./reader_queue.ts";

/** A request of a statement for a place to read its rows. */
export interface PlaceRequest {
  readonly userId: string;
  readonly prepared: Prepared;
  readonly ledger: Pick<
    RequestLedger,
    "cancelledBy" | "deadlineMs" | "isWaiting" | "memory" | "wake"
  >;
}

export interface WaitingOptions<Place> {
  readonly clock: Clock;
  /** The maximum number of waiting statements per user; unlimited if absent. */
  readonly perUserMax?: number | undefined;
  /** Whether the memory of all statements together is within the limit. */
  readonly hasMemory: () => boolean;
  /** Chooses a place for the next statement. Returns undefined if the statement has to wait. */
  readonly placeFor: (asking: PlaceRequest, waitedMs: number) => Place | undefined;
}

/**
 * The number of statements that are waiting now, and the number and total wait of the statements
 * that have waited since startup.
 */
export interface WaitingCounts {
  readonly waiting: number;
  readonly waited: number;
  readonly waitedMs: number;
}

/** The interval, in milliseconds, at which the queue checks whether memory is available again. */
const LOOK_MS = 20;

interface WaitingStatement<Place> extends PlaceRequest {
  readonly sinceMs: number;
  readonly give: (place: Place) => void;
  readonly refuse: (error: unknown) => void;
  cancelTimer: CancelTimer | undefined;
}

export class WaitingStatements<Place> {
  readonly #options: WaitingOptions<Place>;
  readonly #queue = new ReaderQueue<WaitingStatement<Place>>();
  #isTimed = false;
  #waitedCount = 0;
  #waitedMs = 0;

  constructor(options: WaitingOptions<Place>) {
    this.#options = options;
  }

  get counts(): WaitingCounts {
    return { waiting: this.#queue.length, waited: this.#waitedCount, waitedMs: this.#waitedMs };
  }

  /** Whether any statement is waiting for a reader. */
  get areThere(): boolean {
    return this.#queue.length > 0;
  }

  /**
   * Waits in the queue, and resolves to a place where the statement can read its rows.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   *   rejection.
   */
  place(asking: PlaceRequest): Promise<Place> {
    const { clock, perUserMax } = this.#options;
    const { ledger, prepared, userId } = asking;
    const { promise, reject: refuse, resolve: give } = Promise.withResolvers<Place>();
    if (perUserMax !== undefined && this.#queue.lengthOf(userId) >= perUserMax) {
      refuse(tooManyWaiting(perUserMax));
      return promise;
    }
    const sinceMs = clock.monotonicMs();
    const waiting: WaitingStatement<Place> = {
      userId,
      prepared,
      ledger,
      sinceMs,
      give,
      refuse,
      cancelTimer: undefined,
    };
    // The memory used in the statement's first time slice has been released.
    ledger.memory = undefined;
    ledger.isWaiting = true;
    ledger.wake = () => this.#look(waiting);
    this.#queue.add(waiting);
    // If other statements are already waiting, there is no place for this statement either.
    if (this.#queue.length === 1) this.serve();
    if (ledger.isWaiting) {
      this.#waitedCount += 1;
      this.#look(waiting);
    }
    return promise;
  }

  /** Gives places to waiting statements, as long as places are available. */
  serve(): void {
    for (let next = this.#queue.first(); next !== undefined; next = this.#queue.first()) {
      if (!this.#options.hasMemory()) {
        this.#lookLater();
        return;
      }
      const waitedMs = this.#options.clock.monotonicMs() - next.sinceMs;
      const place = this.#options.placeFor(next, waitedMs);
      if (place === undefined) return;
      this.#leave(next);
      next.give(place);
    }
  }

  noteTaken(userId: string): void {
    this.#queue.noteTaken(userId);
  }

  noteGivenBack(userId: string): void {
    this.#queue.noteGivenBack(userId);
    this.serve();
  }

  /** Refuses all waiting statements, because the server is stopping. */
  close(): void {
    for (const waiting of this.#queue.all()) {
      waiting.ledger.cancelledBy ??= "shutdown";
      this.#look(waiting);
    }
  }

  /** Ends the wait of a statement that may not wait any longer. */
  #look(waiting: WaitingStatement<Place>): void {
    const { clock } = this.#options;
    const { ledger } = waiting;
    try {
      const leftMs = ledger.deadlineMs - checkDeadline(ledger, clock);
      waiting.cancelTimer?.();
      waiting.cancelTimer = clock.after(Math.min(leftMs, HOUR_MS), () => this.#look(waiting));
    } catch (error) {
      this.#leave(waiting);
      waiting.refuse(error);
    }
  }

  #leave(waiting: WaitingStatement<Place>): void {
    const { ledger, sinceMs } = waiting;
    this.#queue.remove(waiting);
    this.#waitedMs += this.#options.clock.monotonicMs() - sinceMs;
    waiting.cancelTimer?.();
    ledger.isWaiting = false;
    ledger.wake = undefined;
  }

  #lookLater(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#options.clock.after(LOOK_MS, () => {
      this.#isTimed = false;
      this.serve();
    });
  }
}

function tooManyWaiting(perUserMax: number): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot run the statement: ${perUserMax} statements from the same user are already waiting`,
    { hint: "send fewer long-running statements at a time, or raise server.workers" },
  );
}
