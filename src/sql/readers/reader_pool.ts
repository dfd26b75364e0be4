/**
 * Some readers, and the statements that wait for one of them.
 *
 *     none ──first long statement──► free ──chosen──► reserved ──► busy ──► free
 *                                      └──failed, hung, or closed──► none
 *
 * - A reader that fails, ends or hangs fails its own statement only, and is replaced.
 * - A reader that waits for the client of its statement does not count: another may be opened in
 *   its place, and twice as many in all. When all of them wait for clients, and a statement waits
 *   for a reader, the client that has kept one waiting for longest gets an error.
 * - Where no reader can be opened, statements are sent to the event loop.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { ThreadEvents } from "../../threads/mod.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { FromReader } from "./job.ts";
import { Reader, type ReaderParts, type ReaderPort } from "./reader.ts";
import { type Asking, type WaitingCounts, WaitingStatements } from "./waiting_statements.ts";

export type ReaderEvents = ThreadEvents<FromReader>;

/**
 * Opens a reader; the number is its own for ever.
 *
 * @returns undefined if there may be no more threads.
 */
export type OpenReader = (number: number, events: ReaderEvents) => ReaderPort | undefined;

export interface ReaderPoolParts extends ReaderParts {
  readonly open: OpenReader;
  /** Removes the temporary files that a reader has left, by its number. */
  readonly cleanUp?: ((number: number) => void) | undefined;
  /** The most that may be at work at a time; 0 for none. */
  readonly countMax: number;
  /** Whether all statements together hold less memory than they may. */
  readonly hasMemory: () => boolean;
}

/** Used by all pools: numbers that no two of them give twice, and the log. */
export interface PoolCommons {
  nextReader(): number;
  ofPlan(prepared: Prepared): number;
  /** For warnings that all pools would repeat. */
  readonly seldomLog: SeldomLog;
}

/** The readers as monitoring sees them. */
export interface PoolCounts extends WaitingCounts {
  readonly open: number;
  /** Open ones that run a statement. */
  readonly busy: number;
}

/** A reader that was chosen for one statement. */
export interface ChosenReader {
  /** Undefined if the statement runs on the event loop. */
  readonly reader: Reader | undefined;
  /** How long the statement waited. */
  readonly waitedMs: number;
  /** The statement has begun, or will not. */
  readonly giveBack: () => void;
}

/** Statements of one user that may wait. Each takes 4 KB of heap besides its connection. */
export const WAITING_PER_USER_MAX = 2000;

/** A client that has kept a reader waiting for so long may get an error. */
const HELD_UP_MS_MAX = 10_000;

/** How long no thread is started after one could not be. */
const OPEN_AGAIN_MS = 1000;

/** How long after the end of a reader its temporary files are removed. */
const CLEAN_UP_MS = 1000;

export class ReaderPool {
  readonly #parts: ReaderPoolParts;
  readonly #common: PoolCommons;
  /** Empty places were never used, or their reader is gone. */
  readonly #readers: (Reader | undefined)[];
  readonly #waiting: WaitingStatements<ChosenReader>;
  /** Readers that were chosen for a statement that has not begun. */
  readonly #reserved = new Set<Reader>();
  #isOpen = true;
  /** When a thread may be started again after one could not be, in monotonic milliseconds. */
  #openAgainMs = 0;

  constructor(parts: ReaderPoolParts, common: PoolCommons) {
    const { clock, countMax, hasMemory } = parts;
    this.#parts = parts;
    this.#common = common;
    this.#readers = Array.from({ length: 2 * countMax }, () => undefined);
    this.#waiting = new WaitingStatements({
      clock,
      hasMemory,
      perUserMax: WAITING_PER_USER_MAX,
      placeFor: (asking, waitedMs) => this.#chosenFor(asking, waitedMs),
    });
  }

  get counts(): PoolCounts {
    const open = this.readers;
    const busy = open.filter(({ isBusy }) => isBusy).length;
    return { open: open.length, busy, ...this.#waiting.counts };
  }

  get readers(): Reader[] {
    return this.#readers.filter((reader) => reader !== undefined);
  }

  /** Whether a statement waits. */
  get isAwaited(): boolean {
    return this.#waiting.areThere;
  }

  /** Whether a statement would not have to wait. */
  isFreeFor(prepared: Prepared): boolean {
    return !this.isAwaited && this.#parts.hasMemory() && this.#free(prepared) !== undefined;
  }

  /**
   * Resolves with a reader once the turn of the statement has come.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   * rejection.
   */
  choose(asking: Asking): Promise<ChosenReader> {
    if (!this.#isOpen) asking.ledger.cancelledBy ??= "shutdown";
    return this.#waiting.place(asking);
  }

  /** Readers that are free, to run a part of a statement each; opens those that may be open. */
  takeFree(countMax: number): Reader[] {
    const most = Math.min(countMax, this.#roomLeft);
    const free = this.readers.filter((reader) => this.#isFree(reader));
    while (free.length < most) {
      const opened = this.#opened();
      if (opened === undefined) break;
      free.push(opened);
    }
    return free.slice(0, most);
  }

  close(): void {
    this.#isOpen = false;
    this.#waiting.close();
    for (const reader of this.readers) reader.close("the server stops");
  }

  /** Returns undefined while the statement has to wait. */
  #chosenFor({ prepared, userId }: Asking, waitedMs: number): ChosenReader | undefined {
    if (!this.#isOpen) return undefined;
    const reader = this.#free(prepared);
    if (reader !== undefined) return this.#reserve(reader, userId, waitedMs);
    if (this.readers.length > 0) {
      // Another reader will be free.
      this.#endHeldUp();
      return undefined;
    }
    return { reader, waitedMs, giveBack: () => undefined };
  }

  #reserve(reader: Reader, userId: string, waitedMs: number): ChosenReader {
    this.#reserved.add(reader);
    this.#waiting.noteTaken(userId);
    let isHeld = true;
    const giveBack = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#reserved.delete(reader);
      this.#waiting.noteGivenBack(userId);
    };
    return { reader, waitedMs, giveBack };
  }

  /** Has the slowest client end its statement if all readers wait for clients. */
  #endHeldUp(): void {
    let slowest: Reader | undefined;
    for (const reader of this.readers) {
      const { heldUpMs } = reader;
      if (heldUpMs === undefined) return;
      if (heldUpMs > (slowest?.heldUpMs ?? HELD_UP_MS_MAX)) slowest = reader;
    }
    slowest?.abandon(
      new DatabaseError(
        "CANCELLED",
        "Cannot finish the statement: its rows are taken too slowly, and others wait for its reader",
        { hint: "read the answer faster, or ask for fewer rows" },
      ),
    );
  }

  #isFree(reader: Reader): boolean {
    return !reader.isBusy && !this.#reserved.has(reader);
  }

  /** How many readers may begin to work. */
  get #roomLeft(): number {
    const isAtWork = (reader: Reader): boolean =>
      !this.#isFree(reader) && reader.heldUpMs === undefined;
    return Math.max(0, this.#parts.countMax - this.readers.filter(isAtWork).length);
  }

  /** Ends readers that were opened in place of those that waited for clients. */
  #closeSurplus(): void {
    for (const [at, reader] of this.#readers.entries()) {
      if (this.readers.length <= this.#parts.countMax) return;
      if (reader === undefined || !this.#isFree(reader)) continue;
      this.#readers[at] = undefined;
      reader.close("it is not needed any more");
    }
  }

  /** A free reader, one that knows the plan rather than another; opens one if none is free. */
  #free(prepared: Prepared): Reader | undefined {
    if (this.#roomLeft === 0) return undefined;
    const plan = this.#common.ofPlan(prepared);
    const free = this.readers.filter((reader) => this.#isFree(reader));
    return free.find((reader) => reader.knows(plan)) ?? free[0] ?? this.#opened();
  }

  /**
   * Opens one at a time: a thread that starts has not opened its files yet, so nobody knows whether
   * there is room for another.
   */
  #opened(): Reader | undefined {
    const place = this.#readers.indexOf(undefined);
    const { cleanUp, clock, log, open } = this.#parts;
    const isStarting = this.readers.some(({ isReady }) => !isReady);
    if (place === -1 || isStarting || clock.monotonicMs() < this.#openAgainMs) return undefined;
    const number = this.#common.nextReader();
    const reader = new Reader(this.#parts, {
      onReady: () => this.#waiting.serve(),
      onBegun: (userId) => this.#waiting.noteTaken(userId),
      onDone: (userId) => {
        this.#waiting.noteGivenBack(userId);
        this.#closeSurplus();
      },
      onHeldUp: () => this.#waiting.serve(),
      onGone: (reason) => {
        if (this.#readers[place] !== reader) return;
        this.#readers[place] = undefined;
        if (!this.#isOpen) return;
        if (reader.isReady) log.error("a reader thread failed", { reader: number, reason });
        else this.#noteUnstarted(reason);
        // A thread that is ended may write for a moment more.
        clock.after(CLEAN_UP_MS, () => cleanUp?.(number));
      },
    });
    const port = open(number, reader.events);
    if (port === undefined) {
      this.#noteUnstarted("there is no room for a thread");
      return undefined;
    }
    reader.attach(port);
    this.#readers[place] = reader;
    return reader;
  }

  #noteUnstarted(reason: string): void {
    const { clock, countMax } = this.#parts;
    this.#openAgainMs = clock.monotonicMs() + OPEN_AGAIN_MS;
    this.#common.seldomLog.warn("cannot start a reader thread, queries run on fewer", {
      open: this.readers.length,
      wanted: countMax,
      reason,
    });
    // Statements that wait for a starting reader may have to run without one.
    clock.after(OPEN_AGAIN_MS, () => this.#waiting.serve());
  }
}
