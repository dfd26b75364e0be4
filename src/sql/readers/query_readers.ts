/**
 * The readers in other threads, as the event loop sees them: which of them is free, what each has
 * been told, and the rows that come back.
 *
 *     none ──first long query──► free ◄──► busy ──failed, hung, or closed──► none
 *
 * - A statement in a reader pins the files that it reads, until the reader is done with it.
 * - A reader that fails, ends or hangs fails its own statement only, and is replaced.
 * - A query that finds none free takes one of a query that several divide, if there is such a
 *   query, and stays on the event loop otherwise.
 */

import type { Clock } from "../../base/clock.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { MessageThread, ThreadEvents } from "../../threads/mod.ts";
import { divisionOf } from "../plan/divided.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { DividedQuery } from "./divided_query.ts";
import type { FromReader, ToReader } from "./job.ts";
import {
  Reader,
  type ReaderParts,
  type ReaderQuery,
  type ReadOutcome,
  type StartedRead,
} from "./reader.ts";

/** A thread that reads, or a stand-in in the thread of the event loop. */
export type ReaderPort = MessageThread<ToReader>;

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
}

/** The readers as monitoring sees them. */
export interface ReaderCounts {
  readonly open: number;
  /** Open ones that run a statement. */
  readonly busy: number;
  /** Queries that a reader has begun since the start. */
  readonly queries: number;
  /** Queries that stayed on the event loop since the start, because no reader was free. */
  readonly withoutReader: number;
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

/** How long a query waits for a reader that leaves another query. */
const SPARE_MS_MAX = 50;

/** How often readers that have nothing to do are told which files they may let go of. */
const DROP_MS = 5000;

/** How long after the end of a reader its temporary files are removed. */
const CLEAN_UP_MS = 1000;

export class QueryReaders {
  readonly #parts: QueryReadersParts;
  readonly #seldomLog: SeldomLog;
  /** By number; empty places were never used, or their reader is gone. */
  readonly #readers: (Reader | undefined)[];
  /** Plans that call something which only the event loop has. */
  readonly #refused = new WeakSet<Prepared>();
  /** Plans that one reader runs as fast, or that readers have come to differ about. */
  readonly #undivided = new WeakSet<Prepared>();
  /** How long the last run would have taken in one reader. */
  readonly #aloneMs = new WeakMap<Prepared, number>();
  /** Under way. */
  readonly #divided = new Set<DividedQuery>();
  readonly #planNumbers = new WeakMap<Prepared, number>();
  #planCount = 0;
  #queryCount = 0;
  #withoutReaderCount = 0;
  #openedCount = 0;
  #isOpen = true;
  #isTimed = false;

  constructor(parts: QueryReadersParts) {
    this.#parts = parts;
    this.#seldomLog = new SeldomLog(parts.log, parts.clock);
    this.#readers = Array.from({ length: parts.countMax }, () => undefined);
  }

  get takesAll(): boolean {
    return this.#parts.takesAll === true;
  }

  get counts(): ReaderCounts {
    const open = this.#readers.filter((reader) => reader !== undefined);
    return {
      open: open.length,
      busy: open.filter(({ isBusy }) => isBusy).length,
      queries: this.#queryCount,
      withoutReader: this.#withoutReaderCount,
    };
  }

  /**
   * Reads the rows of a query, or those that a change is made of, in a reader from the beginning.
   *
   * @returns undefined if it has to stay on the event loop: it reads what only the event loop has,
   * or no reader is free.
   * @throws {DatabaseError} @throws {CorruptionError} If a table cannot be read.
   */
  begin(query: ReaderQuery): StartedRead | undefined {
    const { prepared } = query;
    if (!this.#isOpen || this.#refused.has(prepared) || !isOfTables(prepared)) return undefined;
    const reader = this.#free(prepared);
    if (reader === undefined) return this.#beginSpared(query);
    this.#noteBegun();
    return this.#beginDivided(query, reader) ?? this.#runOn(reader, query);
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

  #noteBegun(): void {
    this.#queryCount += 1;
    this.#timeDrops();
  }

  /** In a reader that is free by now. */
  #runOnFree(query: ReaderQuery): StartedRead | "refused" {
    const reader = this.#isOpen ? this.#free(query.prepared) : undefined;
    if (reader !== undefined) return this.#runOn(reader, query);
    this.#withoutReaderCount += 1;
    return "refused";
  }

  /** Takes a reader of a query that has several; undefined if none has. */
  #beginSpared(query: ReaderQuery): StartedRead | undefined {
    for (const divided of this.#divided) {
      const isFree = divided.spare();
      if (isFree === undefined) continue;
      let isStopped = false;
      const began = atLatest(isFree, this.#parts.clock).then(() => {
        if (isStopped) throw new Error("Nobody wants the rows any more");
        const read = this.#runOnFree(query);
        if (read !== "refused") this.#noteBegun();
        return read;
      });
      return laterRead(began, () => (isStopped = true));
    }
    this.#withoutReaderCount += 1;
    return undefined;
  }

  /** Undefined if one reader is enough, or there is only one. */
  #beginDivided(query: ReaderQuery, first: Reader): StartedRead | undefined {
    const { prepared } = query;
    const dividing = { ...DIVIDING, ...this.#parts.dividing };
    // A change takes its rows in the order in which the event loop would read them.
    if (prepared.kind !== "query" || this.#undivided.has(prepared)) return undefined;
    const division = divisionOf(prepared.plan);
    if (division === undefined) return undefined;
    const expectedMs = division.rowCount >= LONG_ROWS ? Number.POSITIVE_INFINITY : 0;
    if ((this.#aloneMs.get(prepared) ?? expectedMs) < dividing.msMin) return undefined;
    const countMax = Math.floor(Math.max(1, division.rowCount) / dividing.rowsEach);
    if (countMax < 2) return undefined;
    const readers = [first, ...this.#othersFree(first, countMax - 1)];
    if (readers.length === 1) return undefined;
    const plan = this.#numberOf(prepared);
    const divided = new DividedQuery(query, { readers, plan, division, dividing });
    this.#divided.add(divided);
    const sinceMs = this.#parts.clock.monotonicMs();
    const began = divided
      .run()
      .finally(() => this.#divided.delete(divided))
      .then((how) => {
        if (how === "read") {
          this.#noteTime(prepared, sinceMs, readers.length);
          return how;
        }
        this.#undivided.add(prepared);
        return this.#runOnFree(query);
      });
    return laterRead(began, () => divided.stop());
  }

  /** Readers that are free besides one; opens those that may be open. */
  #othersFree(first: Reader, countMax: number): Reader[] {
    const others: Reader[] = [];
    const isFree = (reader: Reader): boolean => reader !== first && !reader.isBusy;
    for (const reader of this.#readers) {
      if (reader !== undefined && isFree(reader)) others.push(reader);
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
    for (const reader of this.#readers) reader?.close("the server stops");
  }

  /** A free reader, one that knows the plan rather than another; opens one if none is free. */
  #free(prepared: Prepared): Reader | undefined {
    const plan = this.#numberOf(prepared);
    let free: Reader | undefined;
    for (const reader of this.#readers) {
      if (reader === undefined || reader.isBusy) continue;
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
    const reader = new Reader(this.#parts, (reason) => {
      this.#readers[place] = undefined;
      if (!this.#isOpen) return;
      log.error("a reader thread failed", { reader: number, reason });
      // A thread that is ended may write for a moment more.
      clock.after(CLEAN_UP_MS, () => cleanUp?.(number));
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

/** The read of a query whose reader is known later. */
function laterRead(began: Promise<StartedRead | ReadOutcome>, stopBefore: () => void): StartedRead {
  let stop = stopBefore;
  const outcome = began.then((read) => {
    if (typeof read === "string") return read;
    stop = () => read.stop();
    return read.outcome;
  });
  return { outcome, stop: () => stop() };
}

/** Resolves with a promise, or when a reader should have left its query for long. */
async function atLatest(promise: Promise<void>, clock: Clock): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancelTimer = clock.after(SPARE_MS_MAX, late.resolve);
  await Promise.race([promise, late.promise]);
  cancelTimer();
}

/** Whether all that a statement reads are stored tables, and it neither sleeps nor takes ids. */
function isOfTables({ plan, requirements }: Prepared): boolean {
  if (plan === undefined) return false;
  return requirements.every(({ action }) => action === "read" || action === "write");
}
