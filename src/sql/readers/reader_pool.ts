/**
 * A pool of readers, and the statements that wait for one of them.
 *
 *     none ──first long statement──► free ──chosen──► reserved ──► busy ──► free
 *                                      └──failed, hung, or closed──► none
 *
 * - If a reader fails, ends or hangs, only its own statement fails, and the reader is replaced.
 * - A reader that waits for the client of its statement does not count towards the limit: another
 *   reader may be opened in its place, up to twice the limit in total. If a statement waits while
 *   all readers wait for clients, the client that has kept its reader waiting for the longest time
 *   gets an error.
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
 * Opens a reader, whose number is never used again.
 *
 * @returns undefined if no more threads are allowed.
 */
export type OpenReader = (number: number, events: ReaderEvents) => ReaderPort | undefined;

export interface ReaderPoolParts extends ReaderParts {
  readonly open: OpenReader;
  /** Removes the temporary files of the reader with the given number, after it has ended. */
  readonly cleanUp?: ((number: number) => void) | undefined;
  /** The maximum number of readers that work at the same time; 0 for no readers. */
  readonly countMax: number;
  /** Whether the memory of all statements together is within the limit. */
  readonly hasMemory: () => boolean;
}

/**
 * The dependencies that all pools share: the log, and reader numbers that are unique among all
 * pools.
 */
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

/** A reader that was chosen for one statement. */
export interface ChosenReader {
  /** The reader; undefined if the statement runs on the event loop. */
  readonly reader: ReaderThread | undefined;
  /** The time for which the statement has waited for a reader. */
  readonly waitedMs: number;
  /** Called when the statement has begun in the reader, or will not begin there after all. */
  readonly giveBack: () => void;
}

/**
 * The maximum number of waiting statements per user. A waiting statement takes 4 KB of heap, in
 * addition to its connection.
 */
export const WAITING_PER_USER_MAX = 2000;

/** How long a client may keep a reader waiting before the client may get an error. */
const HELD_UP_MS_MAX = 10_000;

/** The time that the pool waits after a failure to start a thread before it tries again. */
const OPEN_AGAIN_MS = 1000;

/** The time between the end of a reader and the removal of its temporary files. */
const CLEAN_UP_MS = 1000;

export class ReaderPool {
  readonly #parts: ReaderPoolParts;
  readonly #common: PoolCommons;
  /** The readers by slot. An empty slot was never used, or its reader has ended. */
  readonly #readers: (ReaderThread | undefined)[];
  readonly #waiting: WaitingStatements<ChosenReader>;
  /** The readers that were chosen for statements that have not begun yet. */
  readonly #reserved = new Set<ReaderThread>();
  #isOpen = true;
  /**
   * The monotonic time from which a thread may be started again after a failure, in milliseconds.
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

  /** Whether any statement waits for a reader. */
  get isAwaited(): boolean {
    return this.#waiting.areThere;
  }

  /** Whether a statement could run without waiting. */
  isFreeFor(prepared: Prepared): boolean {
    return !this.isAwaited && this.#parts.hasMemory() && this.#free(prepared) !== undefined;
  }

  /**
   * Waits in the queue, and resolves with a reader.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   *   rejection.
   */
  choose(asking: PlaceRequest): Promise<ChosenReader> {
    if (!this.#isOpen) asking.ledger.cancelledBy ??= "shutdown";
    return this.#waiting.place(asking);
  }

  /** Returns free readers among which a statement is divided, and opens further ones if allowed. */
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
    for (const reader of this.readers) reader.close("the server is stopping");
  }

  /** Chooses a reader for the next statement. Returns undefined while the statement has to wait. */
  #chosenFor({ prepared, userId }: PlaceRequest, waitedMs: number): ChosenReader | undefined {
    if (!this.#isOpen) return undefined;
    const reader = this.#free(prepared);
    if (reader !== undefined) return this.#reserve(reader, userId, waitedMs);
    if (this.readers.length > 0) {
      // Another reader will become free, so the statement waits for it.
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

  /** Makes the slowest client end its statement if all readers wait for clients. */
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
        "Cannot finish the statement: its rows are read too slowly while other statements wait for its reader thread",
        { hint: "read the response faster, or request fewer rows" },
      ),
    );
  }

  #isFree(reader: ReaderThread): boolean {
    return !reader.isBusy && !this.#reserved.has(reader);
  }

  /** The number of readers that may still begin to work. */
  get #roomLeft(): number {
    const isAtWork = (reader: ReaderThread): boolean =>
      !this.#isFree(reader) && reader.heldUpMs === undefined;
    return Math.max(0, this.#parts.countMax - this.readers.filter(isAtWork).length);
  }

  /** Closes readers that were opened in place of readers that waited for clients. */
  #closeSurplus(): void {
    for (const [at, reader] of this.#readers.entries()) {
      if (this.readers.length <= this.#parts.countMax) return;
      if (reader === undefined || !this.#isFree(reader)) continue;
      this.#readers[at] = undefined;
      reader.close("it is no longer needed");
    }
  }

  /** Returns a free reader, preferably one that has the plan, and opens one if none is free. */
  #free(prepared: Prepared): ReaderThread | undefined {
    if (this.#roomLeft === 0) return undefined;
    const plan = this.#common.ofPlan(prepared);
    const free = this.readers.filter((reader) => this.#isFree(reader));
    return free.find((reader) => reader.knows(plan)) ?? free[0] ?? this.#opened();
  }

  /**
   * Opens one reader at a time. A thread that is still starting has not opened its files yet, so it
   * is unknown whether another thread would have enough file handles.
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
        // A terminated thread may continue to write for a moment.
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
    this.#common.seldomLog.warn("cannot start a reader thread; queries run on fewer threads", {
      open: this.readers.length,
      wanted: countMax,
      reason,
    });
    // Statements that wait for a reader which is starting may have to run without one.
    clock.after(OPEN_AGAIN_MS, () => this.#waiting.serve());
  }
}
