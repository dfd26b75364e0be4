/**
 * Keeps a pool of readers, and the statements that wait for a reader.
 *
 *     none ──first long statement──► free ──chosen──► reserved ──► busy ──► free
 *                                      └──failed, hung, or closed──► none
 *
 * - If a reader fails, ends or hangs, only its own statement fails, and the reader is replaced.
 * - A reader waiting for its statement's client does not count towards the limit: another reader
 *   may be opened in its place, up to twice the limit in total. If a statement waits while all
 *   readers wait for clients, the client that has kept its reader waiting longest gets an error.
 * - If no reader can be opened, statements are sent to the event loop.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { ThreadEvents } from "../../threads/mod.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { FromReader } from "./job.ts";
import { type ReaderParts, type ReaderPort, ReaderThread } from "./reader.ts";
import { type PlaceRequest, type WaitingCounts, WaitingStatements } from "./waiting_statements.ts";

export type ReaderEvents = ThreadEvents<FromReader>;

/**
 * Opens a reader. The number of a reader is never used again.
 *
 * @returns undefined if no more threads are allowed.
 */
export type OpenReader = (number: number, events: ReaderEvents) => ReaderPort | undefined;

export interface ReaderPoolParts extends ReaderParts {
  readonly open: OpenReader;
  /** Removes the temporary files of a reader that has ended. */
  readonly cleanUp?: ((number: number) => void) | undefined;
  /** The maximum number of readers that may work at the same time; 0 for no readers. */
  readonly countMax: number;
  /** Whether the memory of all statements together is within its limit. */
  readonly hasMemory: () => boolean;
}

/** The log that all pools share, and a source of reader numbers that are unique across pools. */
export interface PoolCommons {
  nextReader(): number;
  ofPlan(prepared: Prepared): number;
  /** A log for warnings that every pool would otherwise repeat. */
  readonly seldomLog: SeldomLog;
}

/** The number of readers by state, for monitoring. */
export interface PoolCounts extends WaitingCounts {
  readonly open: number;
  /** The number of open readers that run a statement. */
  readonly busy: number;
}

/** The reader chosen for a statement. */
export interface ChosenReader {
  /** The reader; undefined if the statement runs on the event loop. */
  readonly reader: ReaderThread | undefined;
  /** The time that the statement has waited for a reader, in milliseconds. */
  readonly waitedMs: number;
  /**
   * Must be called when the statement has started in the reader, or will not run there after all.
   */
  readonly giveBack: () => void;
}

/**
 * The maximum number of waiting statements per user. A waiting statement takes 4 KB of heap, in
 * addition to its connection.
 */
export const WAITING_PER_USER_MAX = 2000;

/**
 * The time in milliseconds for which a client may keep a reader waiting before it risks an error.
 */
const HELD_UP_MS_MAX = 10_000;

/**
 * The time in milliseconds that the pool waits before it tries again to start a thread after a
 * failure.
 */
const OPEN_AGAIN_MS = 1000;

/** The time in milliseconds between the end of a reader and the removal of its temporary files. */
const CLEAN_UP_MS = 1000;

export class ReaderPool {
  readonly #parts: ReaderPoolParts;
  readonly #common: PoolCommons;
  /**
   * The readers, indexed by slot. A slot is empty if it was never used, or if its reader has
   * ended.
   */
  readonly #readers: (ReaderThread | undefined)[];
  readonly #waiting: WaitingStatements<ChosenReader>;
  /** The readers chosen for statements that have not started yet. */
  readonly #reserved = new Set<ReaderThread>();
  #isOpen = true;
  /**
   * The monotonic time, in milliseconds, from which a thread may be started again after a failure.
   */
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

  get readers(): ReaderThread[] {
    return this.#readers.filter((reader) => reader !== undefined);
  }

  /** Whether any statement is waiting for a reader. */
  get isAwaited(): boolean {
    return this.#waiting.areThere;
  }

  /** Whether a statement could start in a reader without waiting. */
  isFreeFor(prepared: Prepared): boolean {
    return !this.isAwaited && this.#parts.hasMemory() && this.#free(prepared) !== undefined;
  }

  /**
   * Waits in the queue, and resolves to a reader for the statement.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   *   rejection.
   */
  choose(asking: PlaceRequest): Promise<ChosenReader> {
    if (!this.#isOpen) asking.ledger.cancelledBy ??= "shutdown";
    return this.#waiting.place(asking);
  }

  /**
   * Returns free readers among which to divide a statement. Opens more readers if the limit allows
   * it.
   */
  takeFree(countMax: number): ReaderThread[] {
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
    for (const reader of this.readers) reader.close("the server is shutting down");
  }

  /** Chooses a reader for the next statement. Returns undefined if the statement has to wait. */
  #chosenFor({ prepared, userId }: PlaceRequest, waitedMs: number): ChosenReader | undefined {
    if (!this.#isOpen) return undefined;
    const reader = this.#free(prepared);
    if (reader !== undefined) return this.#reserve(reader, userId, waitedMs);
    if (this.readers.length > 0) {
      // The statement waits, because another reader will become free.
      this.#endHeldUp();
      return undefined;
    }
    return { reader, waitedMs, giveBack: () => undefined };
  }

  #reserve(reader: ReaderThread, userId: string, waitedMs: number): ChosenReader {
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

  /** If all readers wait for clients, fails the statement of the slowest client. */
  #endHeldUp(): void {
    let slowest: ReaderThread | undefined;
    for (const reader of this.readers) {
      const { heldUpMs } = reader;
      if (heldUpMs === undefined) return;
      if (heldUpMs > (slowest?.heldUpMs ?? HELD_UP_MS_MAX)) slowest = reader;
    }
    slowest?.abandon(
      new DatabaseError(
        "CANCELLED",
        "Cannot finish the statement: the client reads the rows too slowly while other " +
          "statements are waiting for the same thread",
        { hint: "read the response faster, or request fewer rows" },
      ),
    );
  }

  #isFree(reader: ReaderThread): boolean {
    return !reader.isBusy && !this.#reserved.has(reader);
  }

  /** The number of additional readers that may run a statement at the same time. */
  get #roomLeft(): number {
    const isAtWork = (reader: ReaderThread): boolean =>
      !this.#isFree(reader) && reader.heldUpMs === undefined;
    return Math.max(0, this.#parts.countMax - this.readers.filter(isAtWork).length);
  }

  /** Closes surplus readers, which were opened while other readers waited for clients. */
  #closeSurplus(): void {
    for (const [at, reader] of this.#readers.entries()) {
      if (this.readers.length <= this.#parts.countMax) return;
      if (reader === undefined || !this.#isFree(reader)) continue;
      this.#readers[at] = undefined;
      reader.close("the thread is no longer needed");
    }
  }

  /** Returns a free reader, preferably one that has the plan. Opens a reader if none is free. */
  #free(prepared: Prepared): ReaderThread | undefined {
    if (this.#roomLeft === 0) return undefined;
    const plan = this.#common.ofPlan(prepared);
    const free = this.readers.filter((reader) => this.#isFree(reader));
    return free.find((reader) => reader.knows(plan)) ?? free[0] ?? this.#opened();
  }

  /**
   * Opens a reader unless another reader is still starting. A starting thread has not opened its
   * files yet, so it is unknown whether there are enough file handles for another reader.
   */
  #opened(): ReaderThread | undefined {
    const place = this.#readers.indexOf(undefined);
    const { cleanUp, clock, log, open } = this.#parts;
    const isStarting = this.readers.some(({ isReady }) => !isReady);
    if (place === -1 || isStarting || clock.monotonicMs() < this.#openAgainMs) return undefined;
    const number = this.#common.nextReader();
    const reader = new ReaderThread(this.#parts, {
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
        // A terminated thread may still write to its temporary files for a moment.
        clock.after(CLEAN_UP_MS, () => cleanUp?.(number));
      },
    });
    const port = open(number, reader.events);
    if (port === undefined) {
      this.#noteUnstarted("no more threads are allowed");
      return undefined;
    }
    reader.attach(port);
    this.#readers[place] = reader;
    return reader;
  }

  #noteUnstarted(reason: string): void {
    const { clock, countMax } = this.#parts;
    this.#openAgainMs = clock.monotonicMs() + OPEN_AGAIN_MS;
    this.#common.seldomLog.warn("cannot start a reader thread; queries will run on fewer threads", {
      open: this.readers.length,
      wanted: countMax,
      reason,
    });
    // Statements that wait for a reader whose thread has not started may have to run without one.
    clock.after(OPEN_AGAIN_MS, () => this.#waiting.serve());
  }
}
