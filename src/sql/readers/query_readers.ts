/**
 * The readers in other threads, as the event loop sees them: which of them is free, which statement
 * comes next, and how many readers a query has.
 *
 *     none ──first long statement──► free ──chosen──► reserved ──► busy ──► free
 *                                      └──failed, hung, or closed──► none
 *
 * - A statement in a reader pins the files that it reads, until the reader is done with it.
 * - A reader that fails, ends or hangs fails its own statement only, and is replaced.
 * - A statement that finds none free waits in line (`waiting_statements.ts`). If several readers
 *   divide a query, that query gives up one of them for it.
 * - Where no reader can be opened, statements are sent back to the event loop.
 */

import { assert } from "../../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { ThreadEvents } from "../../threads/mod.ts";
import { divisionOf } from "../plan/divided.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { DividedQuery } from "./divided_query.ts";
import type { FromReader } from "./job.ts";
import {
  Reader,
  type ReaderParts,
  type ReaderPort,
  type ReaderQuery,
  type StartedRead,
} from "./reader.ts";
import { type Asking, type WaitingCounts, WaitingStatements } from "./waiting_statements.ts";

export type ReaderEvents = ThreadEvents<FromReader>;

/**
 * Opens a reader; the number is its own for ever.
 *
 * @returns undefined if there may be no more threads.
 */
export type OpenReader = (number: number, events: ReaderEvents) => ReaderPort | undefined;

export interface QueryReadersParts extends ReaderParts {
  readonly open: OpenReader;
  /** Removes the temporary files that a reader has left, by its number. */
  readonly cleanUp?: ((number: number) => void) | undefined;
  /** The most that may be open at a time; 0 for none. */
  readonly countMax: number;
  /** Whether queries are sent before they turn out to be long; for tests. */
  readonly takesAll?: boolean | undefined;
  /** How queries are divided over readers; for tests. */
  readonly dividing?: Partial<Dividing> | undefined;
  /** Whether all statements together hold less memory than they may. */
  readonly hasMemory: () => boolean;
}

/** A place that was chosen for one statement to read its rows: a reader, or the event loop. */
export interface ReadingPlace {
  /** How long the statement waited for it. */
  readonly waitedMs: number;
  /**
   * Reads the rows of the statement from the beginning, in a reader.
   *
   * @returns undefined if the place is the event loop.
   * @throws {DatabaseError} @throws {CorruptionError} If a table cannot be read.
   */
  begin(query: ReaderQuery): StartedRead | undefined;
  /** Gives the place up, if it was not used. */
  giveBack(): void;
}

/** The readers as monitoring sees them. */
export interface ReaderCounts extends WaitingCounts {
  readonly open: number;
  /** Open ones that run a statement. */
  readonly busy: number;
  /** Queries that a reader has begun since the start. */
  readonly queries: number;
}

/** How queries are divided over readers. */
export interface Dividing {
  /** Rows of the table for each reader, at least. */
  readonly rowsEach: number;
  /** A query that one reader runs in less time than this is not divided. */
  readonly msMin: number;
  /** Whether the same reader always reads the same row groups. */
  readonly isInTurn: boolean;
  /**
   * Parts that yield more than this have made little of their rows, and the rest of the plan would
   * take as long as the query does in one reader.
   */
  readonly gatheredBytesMax: number;
}

/** Fewer than two row groups for each reader are not worth the 2 to 3 ms that dividing costs. */
const DIVIDING: Dividing = {
  rowsEach: 2 * ROW_GROUP_ROWS_MAX,
  msMin: 15,
  isInTurn: false,
  gatheredBytesMax: 32 * 1024 * 1024,
};

/** From so many rows on a query is taken to be long before it has run. */
const LONG_ROWS: number = 32 * ROW_GROUP_ROWS_MAX;

/** How often readers that have nothing to do are told which files they may let go of. */
const DROP_MS = 5000;

/** How long after the end of a reader its temporary files are removed. */
const CLEAN_UP_MS = 1000;

export class QueryReaders {
  readonly #parts: QueryReadersParts;
  readonly #seldomLog: SeldomLog;
  /** By number; empty places were never used, or their reader is gone. */
  readonly #readers: (Reader | undefined)[];
  /** Plans that came out as another one in a reader. */
  readonly #refused = new WeakSet<Prepared>();
  /** Plans that one reader runs as fast, or that readers have come to differ about. */
  readonly #undivided = new WeakSet<Prepared>();
  /** How long the last run would have taken in one reader. */
  readonly #aloneMs = new WeakMap<Prepared, number>();
  /** Under way. */
  readonly #divided = new Set<DividedQuery>();
  readonly #waiting: WaitingStatements<ReadingPlace>;
  /** Those that were chosen for a statement that has not begun. */
  readonly #reserved = new Set<Reader>();
  readonly #planNumbers = new WeakMap<Prepared, number>();
  #planCount = 0;
  #queryCount = 0;
  #openedCount = 0;
  #isOpen = true;
  #isTimed = false;

  constructor(parts: QueryReadersParts) {
    const { clock, countMax, hasMemory, log } = parts;
    this.#parts = parts;
    this.#seldomLog = new SeldomLog(log, clock);
    this.#readers = Array.from({ length: countMax }, () => undefined);
    this.#waiting = new WaitingStatements({
      clock,
      hasMemory,
      placeFor: (asking, waitedMs) => this.#placeFor(asking, waitedMs),
    });
  }

  get takesAll(): boolean {
    return this.#parts.takesAll === true;
  }

  get counts(): ReaderCounts {
    const open = this.#openReaders;
    return {
      open: open.length,
      busy: open.filter(({ isBusy }) => isBusy).length,
      queries: this.#queryCount,
      ...this.#waiting.counts,
    };
  }

  /** Whether a reader can read the rows of a statement, or those that a change is made of. */
  canRead(prepared: Prepared): boolean {
    return !this.#refused.has(prepared) && isReadable(prepared);
  }

  /**
   * Resolves with a place once the turn of the statement has come. The statement begins in that
   * turn of the event loop, or gives the place back.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   * rejection.
   */
  place(asking: Asking): Promise<ReadingPlace> {
    if (!this.#isOpen) asking.ledger.cancelledBy ??= "shutdown";
    const place = this.#waiting.place(asking);
    if (asking.ledger.isWaiting) this.#spareOne();
    return place;
  }

  /** Returns undefined while the statement has to wait. */
  #placeFor(asking: Asking, waitedMs: number): ReadingPlace | undefined {
    if (!this.#isOpen) return undefined;
    const reader = this.#free(asking.prepared);
    if (reader !== undefined) return this.#reserve(reader, asking.userId, waitedMs);
    // Another reader will be free.
    if (this.#openReaders.length > 0) return undefined;
    return { waitedMs, begin: () => undefined, giveBack: () => undefined };
  }

  #reserve(reader: Reader, userId: string, waitedMs: number): ReadingPlace {
    this.#reserved.add(reader);
    this.#waiting.noteTaken(userId);
    let isHeld = true;
    const giveBack = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#reserved.delete(reader);
      this.#waiting.noteGivenBack(userId);
    };
    const begin = (query: ReaderQuery): StartedRead => {
      assert(isHeld, "a place is used once");
      try {
        this.#queryCount += 1;
        this.#timeDrops();
        return this.#beginDivided(query, reader) ?? this.#runOn(reader, query);
      } finally {
        giveBack();
      }
    };
    return { waitedMs, begin, giveBack };
  }

  #runOn(reader: Reader, query: ReaderQuery): StartedRead {
    const { prepared } = query;
    const sinceMs = this.#parts.clock.monotonicMs();
    const read = reader.run(query, this.#numberOf(prepared));
    const outcome = read.outcome.then((how) => {
      if (how === "refused") this.#refused.add(prepared);
      else this.#noteTime(prepared, sinceMs, 1);
      return how;
    });
    return { outcome, stop: () => read.stop() };
  }

  #noteTime(prepared: Prepared, sinceMs: number, readerCount: number): void {
    this.#aloneMs.set(prepared, (this.#parts.clock.monotonicMs() - sinceMs) * readerCount);
  }

  /** Has a query that several readers divide give up one of them, for the statement that waits. */
  #spareOne(): void {
    for (const divided of this.#divided) if (divided.sparesOne()) return;
  }

  /** Undefined if one reader is enough, or there is only one. */
  #beginDivided(query: ReaderQuery, first: Reader): StartedRead | undefined {
    const { prepared } = query;
    const dividing = { ...DIVIDING, ...this.#parts.dividing };
    // A change takes its rows in the order in which the event loop would read them.
    if (prepared.kind !== "query" || this.#undivided.has(prepared)) return undefined;
    if (!isOfStoredRows(query)) return undefined;
    const division = divisionOf(prepared.plan);
    if (division === undefined) return undefined;
    const expectedMs = division.rowCount >= LONG_ROWS ? Number.POSITIVE_INFINITY : 0;
    if ((this.#aloneMs.get(prepared) ?? expectedMs) < dividing.msMin) return undefined;
    const countMax = Math.floor(Math.max(1, division.rowCount) / dividing.rowsEach);
    // Free readers are for those who wait.
    if (countMax < 2 || this.#waiting.areThere) return undefined;
    const readers = [first, ...this.#othersFree(first, countMax - 1)];
    if (readers.length === 1) return undefined;
    const plan = this.#numberOf(prepared);
    const divided = new DividedQuery(query, { readers, plan, division, dividing });
    this.#divided.add(divided);
    const sinceMs = this.#parts.clock.monotonicMs();
    const outcome = divided
      .run()
      .finally(() => this.#divided.delete(divided))
      .then((how) => {
        if (how === "read") this.#noteTime(prepared, sinceMs, readers.length);
        else this.#undivided.add(prepared);
        return how;
      });
    return { outcome, stop: () => divided.stop() };
  }

  /** Readers that are free besides one; opens those that may be open. */
  #othersFree(first: Reader, countMax: number): Reader[] {
    const others: Reader[] = [];
    for (const reader of this.#openReaders) {
      if (reader !== first && this.#isFree(reader)) others.push(reader);
    }
    while (others.length < countMax) {
      const opened = this.#opened();
      if (opened === undefined) break;
      others.push(opened);
    }
    return others.slice(0, countMax);
  }

  close(): void {
    this.#isOpen = false;
    this.#waiting.close();
    for (const reader of this.#readers) reader?.close("the server stops");
  }

  get #openReaders(): Reader[] {
    return this.#readers.filter((reader) => reader !== undefined);
  }

  #isFree(reader: Reader): boolean {
    return !reader.isBusy && !this.#reserved.has(reader);
  }

  /** A free reader, one that knows the plan rather than another; opens one if none is free. */
  #free(prepared: Prepared): Reader | undefined {
    const plan = this.#numberOf(prepared);
    let free: Reader | undefined;
    for (const reader of this.#openReaders) {
      if (!this.#isFree(reader)) continue;
      if (reader.knows(plan)) return reader;
      free ??= reader;
    }
    return free ?? this.#opened();
  }

  #opened(): Reader | undefined {
    const place = this.#readers.indexOf(undefined);
    if (place === -1) return undefined;
    const { cleanUp, clock, log, open } = this.#parts;
    this.#openedCount += 1;
    const number = this.#openedCount;
    const reader = new Reader(this.#parts, {
      onBegun: (userId) => this.#waiting.noteTaken(userId),
      onDone: (userId) => this.#waiting.noteGivenBack(userId),
      onGone: (reason) => {
        this.#readers[place] = undefined;
        if (!this.#isOpen) return;
        log.error("a reader thread failed", { reader: number, reason });
        // A thread that is ended may write for a moment more.
        clock.after(CLEAN_UP_MS, () => cleanUp?.(number));
      },
    });
    const port = open(number, reader.events);
    if (port === undefined) {
      this.#seldomLog.warn("cannot start a reader thread, queries run on fewer", {
        open: this.counts.open,
        wanted: this.#parts.countMax,
      });
      return undefined;
    }
    reader.attach(port);
    this.#readers[place] = reader;
    return reader;
  }

  #numberOf(prepared: Prepared): number {
    let number = this.#planNumbers.get(prepared);
    if (number === undefined) {
      this.#planCount += 1;
      number = this.#planCount;
      this.#planNumbers.set(prepared, number);
    }
    return number;
  }

  #timeDrops(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#parts.clock.after(DROP_MS, () => {
      this.#isTimed = false;
      if (!this.#isOpen) return;
      for (const reader of this.#readers) if (reader?.isBusy === false) reader.tellDropped();
      if (this.counts.open > 0) this.#timeDrops();
    });
  }
}

/** Whether a statement has rows to read, and does not sleep. */
function isReadable({ plan, requirements }: Prepared): boolean {
  return plan !== undefined && requirements.every(({ action }) => action !== "sleep");
}

/**
 * Whether all readers would read the same rows. Answers of the event loop are of the moment in
 * which a reader asks.
 */
function isOfStoredRows({ prepared, staged }: ReaderQuery): boolean {
  return prepared.requirements.every(
    (requirement) =>
      requirement.action === "write" ||
      (requirement.action === "read" && staged?.hasStaged(requirement.table.tableId) !== true),
  );
}
