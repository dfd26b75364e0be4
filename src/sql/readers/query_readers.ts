/**
 * Manages the reader threads on the event loop: decides which statement gets a reader, and how
 * many readers a query gets.
 *
 * - While a statement runs in a reader, it pins the files that it reads.
 * - A statement that finds no free reader waits in a queue (`waiting_statements.ts`). A query
 *   divided among several readers gives up one of them for such a statement.
 * - One extra reader is reserved for statements that inspect the server. Without it, operators
 *   could not find and end the statements that occupy the readers.
 */
import { FIRST_SLICE_MS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import { divisionOf } from "../plan/divided.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { DividedQuery } from "./divided_query.ts";
import type { ReaderMemory } from "./job.ts";
import type { ReaderQuery, ReaderThread, StartedRead } from "./reader.ts";
import {
  type PoolCommons,
  type PoolCounts,
  ReaderPool,
  type ReaderPoolParts,
} from "./reader_pool.ts";
import type { PlaceRequest } from "./waiting_statements.ts";

export interface QueryReadersParts extends ReaderPoolParts {
  /**
   * Whether a query goes to a reader even before it turns out to be long. Only tests set this
   * option.
   */
  readonly takesAll?: boolean | undefined;
  /** The rules by which queries are divided among readers. Only tests set this option. */
  readonly dividing?: Partial<Dividing> | undefined;
}

/** The place where a statement reads its rows: a reader, or the event loop. */
export interface ReadingPlace {
  /** The time that the statement has waited for the reader, in milliseconds. */
  readonly waitedMs: number;
  /**
   * Reads the rows of the statement from the beginning, in a reader.
   *
   * @returns undefined if the place is the event loop.
   * @throws {DatabaseError}
   * @throws {CorruptionError} if a table cannot be read
   */
  begin(query: ReaderQuery): StartedRead | undefined;
  /** Frees the reader for other statements, if this statement has not used it. */
  giveBack(): void;
}

/** The number of readers by state, for monitoring. */
export interface ReaderCounts extends PoolCounts {
  /** The number of queries that readers have started since server startup. */
  readonly queries: number;
}

/** The rules by which queries are divided among readers. */
export interface Dividing {
  /** The minimum number of table rows per reader in a divided query. */
  readonly rowsEach: number;
  /**
   * The run time of the shortest query worth dividing, in milliseconds, as measured in a single
   * reader.
   */
  readonly msMin: number;
  /**
   * The minimum number of times that a query must have run before it is divided, unless it is
   * large.
   */
  readonly runsMin: number;
  /** Whether the same reader always reads the same row groups. */
  readonly isInTurn: boolean;
  /**
   * The maximum total size in bytes of the rows that the parts of a divided query return. If they
   * return more, they do not reduce their input much, and the rest of the plan would take as long
   * as the entire query in a single reader.
   */
  readonly gatheredBytesMax: number;
}

/**
 * The default rules for dividing queries. A division costs 2 to 3 ms, so it does not pay off for
 * fewer than two row groups per reader. The runtime compiles the code of a query as it runs,
 * separately in each reader, so a query that has run only once is not divided either.
 */
const DIVIDING: Dividing = {
  rowsEach: 2 * ROW_GROUP_ROWS_MAX,
  msMin: 15,
  runsMin: 5,
  isInTurn: false,
  gatheredBytesMax: 32 * 1024 * 1024,
};

/**
 * The number of rows from which a query counts as long even if it has never run. A query that
 * takes `LONG_MS` milliseconds is also worth dividing immediately. Shorter queries are not: their
 * first run mostly compiles code, and each further reader would compile the same code again.
 */
const LONG_ROWS: number = 32 * ROW_GROUP_ROWS_MAX;
const LONG_MS = 2000;

/** The interval, in milliseconds, at which idle readers are told which files they may release. */
const DROP_MS = 5000;

export class QueryReaders {
  readonly #parts: QueryReadersParts;
  readonly #pool: ReaderPool;
  readonly #inspecting: ReaderPool;
  /**
   * Plans that a reader refused to run, because it had compiled the statement to a different plan.
   */
  readonly #refused = new WeakSet<Prepared>();
  /**
   * Plans that are not divided, because a single reader is as fast, or because readers compile the
   * statement to different plans.
   */
  readonly #undivided = new WeakSet<Prepared>();
  /**
   * For each plan, the time in milliseconds that its last execution would have taken in a single
   * reader.
   */
  readonly #aloneMs = new WeakMap<Prepared, number>();
  /** For each plan, the number of its executions in readers. */
  readonly #runCounts = new WeakMap<Prepared, number>();
  /** The divided queries that are running. */
  readonly #divided = new Set<DividedQuery>();
  readonly #planNumbers = new WeakMap<Prepared, number>();
  #planCount = 0;
  #queryCount = 0;
  #isOpen = true;
  #isTimed = false;

  constructor(parts: QueryReadersParts) {
    let openedCount = 0;
    const common: PoolCommons = {
      seldomLog: new SeldomLog(parts.log, parts.clock),
      nextReader: () => {
        openedCount += 1;
        return openedCount;
      },
      ofPlan: (prepared) => this.#numberOf(prepared),
    };
    this.#parts = parts;
    this.#pool = new ReaderPool(parts, common);
    const countMax = Math.min(1, parts.countMax);
    this.#inspecting = new ReaderPool({ ...parts, countMax, hasMemory: () => true }, common);
  }

  get takesAll(): boolean {
    return this.#parts.takesAll === true;
  }

  get counts(): ReaderCounts {
    const counts = this.#pool.counts;
    const more = this.#inspecting.counts;
    return {
      queries: this.#queryCount,
      open: counts.open + more.open,
      busy: counts.busy + more.busy,
      waiting: counts.waiting + more.waiting,
      waited: counts.waited + more.waited,
      waitedMs: counts.waitedMs + more.waitedMs,
    };
  }

  /** The memory that all readers together used after their most recent statements. */
  get memory(): ReaderMemory {
    let heapBytes = 0;
    let cacheBytes = 0;
    for (const { memory } of this.#all) {
      heapBytes += memory.heapBytes;
      cacheBytes += memory.cacheBytes;
    }
    return { heapBytes, cacheBytes };
  }

  get #all(): readonly ReaderThread[] {
    return [...this.#pool.readers, ...this.#inspecting.readers];
  }

  /** Whether a reader can read the rows of a query, or the rows that a change needs. */
  canRead(prepared: Prepared): boolean {
    return readsRows(prepared) && !this.#refused.has(prepared);
  }

  /**
   * Whether the last execution of a statement in a reader took no longer than a tick of the event
   * loop.
   */
  isShort(prepared: Prepared): boolean {
    return (this.#aloneMs.get(prepared) ?? Number.POSITIVE_INFINITY) < FIRST_SLICE_MS_MAX;
  }

  /**
   * Waits in the queue, and resolves to a place where the statement can read its rows. The caller
   * must start the statement in the same tick of the event loop, or give the place back.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, as a
   *   rejection.
   */
  async place(asking: PlaceRequest): Promise<ReadingPlace> {
    const { ledger, prepared } = asking;
    const isElsewhere = isInspecting(prepared) && !this.#pool.isFreeFor(prepared);
    const pool = isElsewhere ? this.#inspecting : this.#pool;
    const choosing = pool.choose(asking);
    if (ledger.isWaiting) this.#spareOne();
    const { giveBack, reader, waitedMs } = await choosing;
    const begin = (query: ReaderQuery): StartedRead | undefined => {
      if (reader === undefined) return undefined;
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

  #runOn(reader: ReaderThread, query: ReaderQuery): StartedRead {
    const { prepared } = query;
    const sinceMs = this.#parts.clock.monotonicMs();
    const read = reader.run(query, this.#numberOf(prepared));
    const outcome = read.outcome.then((how) => {
      if (how === "refused") this.#refused.add(prepared);
      if (how === "read") this.#noteTime(prepared, sinceMs, 1);
      return how;
    });
    return { outcome, goOn: (message) => read.goOn(message), stop: () => read.stop() };
  }

  #noteTime(prepared: Prepared, sinceMs: number, readerCount: number): void {
    this.#aloneMs.set(prepared, (this.#parts.clock.monotonicMs() - sinceMs) * readerCount);
    this.#runCounts.set(prepared, this.#runCountOf(prepared) + 1);
  }

  #runCountOf(prepared: Prepared): number {
    return this.#runCounts.get(prepared) ?? 0;
  }

  /** Makes a divided query give up one of its readers for a waiting statement. */
  #spareOne(): void {
    for (const divided of this.#divided) if (divided.sparesOne()) return;
  }

  /**
   * Starts a query in several readers. Returns undefined if one reader is enough, or only one
   * reader is available.
   */
  #beginDivided(query: ReaderQuery, first: ReaderThread): StartedRead | undefined {
    const { prepared } = query;
    const dividing = { ...DIVIDING, ...this.#parts.dividing };
    // The rows of a change must arrive in the order in which the event loop would read them, so
    // only queries are divided.
    if (prepared.kind !== "query" || this.#undivided.has(prepared)) return undefined;
    if (!isOfStoredRows(query)) return undefined;
    const division = divisionOf(prepared.plan);
    if (division === undefined) return undefined;
    const aloneMs = this.#aloneMs.get(prepared);
    const isLarge = division.rowCount >= LONG_ROWS || (aloneMs ?? 0) >= LONG_MS;
    if (!isLarge && this.#runCountOf(prepared) < dividing.runsMin) return undefined;
    if (aloneMs !== undefined && aloneMs < dividing.msMin) return undefined;
    const countMax = Math.floor(Math.max(1, division.rowCount) / dividing.rowsEach);
    // If other statements are waiting, the free readers are kept for them.
    if (countMax < 2 || this.#pool.isAwaited) return undefined;
    const readers = [first, ...this.#pool.takeFree(countMax - 1)];
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
        if (how === "refused") this.#undivided.add(prepared);
        return how;
      });
    return { outcome, goOn: () => undefined, stop: () => divided.stop() };
  }

  /**
   * Tells readers to release unpacked segment parts. A busy reader releases them after its
   * statement.
   */
  giveBackMemory(): void {
    for (const reader of this.#all) reader.giveBackMemory();
  }

  close(): void {
    this.#isOpen = false;
    this.#pool.close();
    this.#inspecting.close();
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
      const readers = this.#all;
      for (const reader of readers) if (!reader.isBusy) reader.tellDropped();
      if (readers.length > 0) this.#timeDrops();
    });
  }
}

/**
 * Whether every reader of a statement would read the same rows. This excludes statements with rows
 * that the event loop supplies as answers, because such rows reflect its current state.
 */
function isOfStoredRows({ prepared, staged }: ReaderQuery): boolean {
  return prepared.requirements.every(
    (requirement) =>
      requirement.action === "write" ||
      requirement.action === "read-history" ||
      requirement.action === "read-view" ||
      (requirement.action === "read" && staged?.hasStaged(requirement.table.tableId) !== true),
  );
}

/** Whether a statement reads system views through which operators inspect the server. */
export function isInspecting({ requirements }: Prepared): boolean {
  return requirements.some((each) => each.action === "read-system" && !each.view.isOpen);
}

/** Whether a statement, in any of its parts, reads rows or evaluates expressions with queries. */
function readsRows(prepared: Prepared): boolean {
  if (prepared.kind === "query") return true;
  const { build, evaluations, reads } = prepared;
  return [{ build, evaluations }, ...reads].some(
    (part) => part.build !== undefined || part.evaluations.length > 0,
  );
}
