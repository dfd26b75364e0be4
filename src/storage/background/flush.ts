/**
 * Decides when a memtable becomes a segment: when the table's policy says so, when the memtable
 * occupies too much memory or keeps too much of the log alive, or on request. This module also
 * releases log files that no table needs.
 *
 * Each table has at most one flush (`flush_table.ts`) at a time, possibly alongside a merge
 * (`merge.ts`). A flush is a job, so users can list and cancel it.
 *
 * A failed flush leaves the frozen memtable readable and in the log. The table's next flush writes
 * that memtable first.
 */

import { inDoubt } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError, DiskError, hasNoDescriptor, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { CommitLog } from "../contract/commit_log.ts";
import type { Job, JobList, NewJob } from "../contract/job_list.ts";
import type { FlushResult } from "../contract/store_figures.ts";
import { isBelow } from "../directory/allowed_paths.ts";
import { Holds } from "../directory/holds.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { attempt, isFull, runAsJob } from "./background.ts";
import { flushTable, NOTHING } from "./flush_table.ts";
import type { Merger } from "./merge.ts";
import type { SegmentTools } from "./pending_segments.ts";

/** The delay between a failed flush and the next attempt. */
const RETRY_MS = 5000;

/**
 * The minimum interval between two flushes triggered by a table's row count. A table with a high
 * write rate thus produces larger rather than more segments, and spends less time merging small
 * segments. The cost is that recovery has to read more of the log.
 */
const PACE_MS = 4000;

/**
 * The bytes of memory and the share of the log's size limit that rows may occupy while their flush
 * waits for the minimum interval. Above either limit, the flush starts immediately.
 */
const PACED_BYTES_MAX: number = 64 * 1024 * 1024;
const PACED_LOG_SHARE = 0.25;

/**
 * The share of the full log files that a table keeps alive below which the table is flushed when
 * the log begins another file. Without this rule, a single row, such as an audit log entry, would
 * keep all these files until the row reaches its table's age limit, and every startup would read
 * them: 50 ms of CPU time for 64 MiB (2026-11-29).
 */
const KEPT_LOG_SHARE = 1 / 16;

/**
 * The maximum number of tables flushed at a time to shorten the log. The tables with the oldest
 * rows come first.
 */
const SHORTENED_MAX = 16;

/**
 * If the memtables of all tables together exceed this size, the largest memtables are flushed,
 * regardless of their policy and the log. The total is checked when the log begins another file,
 * and when a single table has grown by `LOOKED_AT_SHARE` of this bound.
 */
const MEMTABLE_BYTES_MAX: number = 512 * 1024 * 1024;
const LOOKED_AT_SHARE = 1 / 16;

/**
 * The minimum share of the memory bound that must remain in memtables that are not being flushed.
 * A flush frees memory only when it is complete, and its table keeps growing in the meantime.
 */
const LEFT_SHARE = 1 / 2;

/**
 * The maximum share of the memory bound that memtables keep when the process is short of memory.
 * Tables are flushed until this is the case.
 */
const EARLY_SHARE = 1 / 8;

/** The longest delay that a timer supports. A policy with a longer delay never flushes by age. */
const TIMER_MS_MAX: number = 2 ** 31 - 1;

export interface FlusherOptions extends Omit<SegmentTools, "isCancelled"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  readonly commitLog: CommitLog;
  readonly walMaxBytes: number;
  /** The memory bound for all memtables together. Defaults to {@linkcode MEMTABLE_BYTES_MAX}. */
  readonly memtableBytesMax?: number | undefined;
  readonly jobs: JobList;
  readonly merger: Merger;
  /** Returns the number of the first log file that is needed for a purpose other than recovery. */
  readonly keepsLogFrom: () => number;
  durable(seq: Seq): Promise<void>;
}

interface Timer {
  readonly cancel: CancelTimer;
  readonly dueMs: number;
}

export class Flusher {
  readonly #options: FlusherOptions;
  readonly #flushing = new Map<StoredTable, Promise<FlushResult>>();
  readonly #timers = new Map<StoredTable, Timer>();
  /** Tables whose last flush failed and whose next attempt is not yet due. */
  readonly #failed = new Set<StoredTable>();
  /**
   * Tables that have enough rows for a flush but must wait for the minimum interval between
   * flushes to pass.
   */
  readonly #paced = new Set<StoredTable>();
  /** For each table, when its last flush began. */
  readonly #startedMs = new Map<StoredTable, number>();
  /**
   * For each memtable, its size at the time when its growth last triggered a check of the total
   * memory.
   */
  readonly #lookedAtBytes = new WeakMap<Memtable, number>();
  /** The number of the log file at which recovery would begin, according to the manifest. */
  #firstLogFile: number;
  #isClosing = false;
  /** Counts the running copies of the log. Each copy needs all log files. */
  readonly #logHolds = new Holds();

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#firstLogFile = options.manifest.load().firstLogFile ?? 0;
  }

  /** Starts timers and flushes for the tables that recovery has filled. */
  start(): void {
    try {
      this.#releaseLog();
      for (const table of this.#options.tables.values()) this.noteAppended(table);
      this.noteRolled();
    } catch (error) {
      // If starting fails, the caller receives no store to close, so no flush may start later.
      this.#beginClosing();
      throw error;
    }
  }

  /**
   * Starts or schedules a flush if one is due. Called after rows have been added to a table or its
   * policy has changed.
   */
  noteAppended(table: StoredTable): void {
    const { rowCount } = table.active;
    const { rowsMax, ageMsMax } = table.definition.flush;
    if ((rowCount === 0 && !table.isWaiting) || this.#isClosing) return;
    this.#noteGrown(table);
    if (rowCount >= rowsMax || table.isWaiting) this.#requestPaced(table);
    else if (!this.#timers.has(table)) this.#requestAfter(table, ageMsMax);
  }

  /**
   * Flushes tables after the log has begun another file. By then, some tables may use too much
   * memory or keep too much of the log alive.
   */
  noteRolled(): void {
    this.#relieveMemory(this.#memtableBytesMax);
    this.#relieveLog();
    this.#shortenLog();
  }

  /** Releases log files that are no longer needed. */
  releaseLog(): void {
    if (!this.#isClosing) this.#releaseLog();
  }

  /**
   * Flushes all rows that the table has at the time of the call. Resolves when they are published
   * or the job is cancelled.
   *
   * @param job The caller's job, which the caller ends. If omitted, the flush creates its own.
   */
  async flush(table: StoredTable, job?: Job): Promise<FlushResult> {
    const running = this.#flushing.get(table);
    if (running !== undefined) {
      // The caller's job joins a flush that is already running, so the job counts as started.
      job?.start();
      const upTo = table.active.lastSeq;
      const result = await running;
      if (table.active.rowCount === 0 || table.progress.flushedSeq >= upTo) return result;
      if (job?.isCancelled === true) return result;
      return sum(result, await this.flush(table, job));
    }
    const flushing = this.#flushAsJob(table, job);
    this.#flushing.set(table, flushing);
    try {
      return await flushing;
    } finally {
      this.#flushing.delete(table);
      if (!this.#isClosing && !table.isDropped) {
        attempt(this.#options.jobs, "the choice of segments to merge", () =>
          this.#options.merger.mergeIfDue(table),
        );
        // A frozen memtable without a timer is left over from a flush that was cancelled or hit a
        // bug.
        const waits = table.frozen !== undefined && !this.#timers.has(table);
        if (waits) this.#requestAfter(table, RETRY_MS);
        this.noteAppended(table);
      }
    }
  }

  /** Prevents the release of log files until the returned function is called. */
  holdLog(): () => void {
    const release = this.#logHolds.hold();
    return () => {
      release();
      if (!this.#isClosing) this.#releaseLog();
    };
  }

  /** Stops tracking a table that the store has dropped. */
  forget(table: StoredTable): void {
    this.#cancelTimer(table);
    this.#paced.delete(table);
    this.#failed.delete(table);
    this.#startedMs.delete(table);
    this.#releaseLog();
  }

  async close(): Promise<void> {
    this.#beginClosing();
    await Promise.allSettled(this.#flushing.values());
  }

  /** Prevents further flushes when the store closes. */
  #beginClosing(): void {
    this.#isClosing = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  /** Checks the total memory of memtables if this table has grown much since the last check. */
  #noteGrown({ active }: StoredTable): void {
    const { bytes } = active;
    const much = this.#memtableBytesMax * LOOKED_AT_SHARE;
    if (bytes <= much || bytes - (this.#lookedAtBytes.get(active) ?? 0) <= much) return;
    this.#lookedAtBytes.set(active, bytes);
    this.#relieveMemory(this.#memtableBytesMax);
  }

  /**
   * Flushes tables early because the process is short of memory, unless memtables use little
   * memory. Returns the number of tables flushed.
   */
  giveBackMemory(): number {
    return this.#relieveMemory(this.#memtableBytesMax * EARLY_SHARE);
  }

  /**
   * Flushes the largest tables if all memtables together exceed `bytesMax`. Returns the number of
   * tables flushed.
   */
  #relieveMemory(bytesMax: number): number {
    const tables = [...this.#options.tables.values()];
    const bytes = tables.reduce((total, table) => total + bytesOf(table), 0);
    if (bytes <= bytesMax) return 0;
    const largestFirst = tables.toSorted((one, other) => other.active.bytes - one.active.bytes);
    let left = tables.reduce((total, { active }) => total + active.bytes, 0);
    let tableCount = 0;
    for (const table of largestFirst) {
      if (left <= bytesMax * LEFT_SHARE) break;
      left -= table.active.bytes;
      this.#request(table);
      tableCount += 1;
    }
    return tableCount;
  }

  get #memtableBytesMax(): number {
    return this.#options.memtableBytesMax ?? MEMTABLE_BYTES_MAX;
  }

  /** If the log is too long, flushes the tables that keep its oldest file alive. */
  #relieveLog(): void {
    const { commitLog, log, walMaxBytes, tables } = this.#options;
    const oldest = this.#neededByTables();
    const bytes = bytesBetween(commitLog.files, { first: oldest, before: Infinity });
    // Only the part of the log that tables keep alive is measured, since a flush cannot release
    // the rest.
    if (bytes <= walMaxBytes) return;
    for (const table of tables.values()) {
      if (table.firstLogFile !== oldest) continue;
      this.#request(table);
      if (table.fault === undefined) continue;
      // Warns each time the log begins another file. Without a warning, the log could fill the
      // disk unnoticed.
      log.warn("the log keeps growing because a table cannot be flushed", {
        table: table.definition.name,
        bytes,
        error: table.fault.message,
      });
    }
  }

  /** Flushes tables that keep full log files alive for only a few rows. */
  #shortenLog(): void {
    const { commitLog, tables } = this.#options;
    const { files, oldestUnwrittenFile: current } = commitLog;
    const keeping: { readonly table: StoredTable; readonly first: number }[] = [];
    for (const table of tables.values()) {
      const first = table.firstLogFile ?? current;
      if (first >= current) continue;
      const keptBytes = bytesBetween(files, { first, before: current });
      if (bytesOf(table) < KEPT_LOG_SHARE * keptBytes) keeping.push({ table, first });
    }
    const oldestFirst = keeping.toSorted((left, right) => left.first - right.first);
    for (const { table } of oldestFirst.slice(0, SHORTENED_MAX)) this.#requestPaced(table);
  }

  #requestPaced(table: StoredTable): void {
    if (this.#flushing.has(table) || this.#failed.has(table)) return;
    if (this.#isLarge(table)) {
      this.#request(table);
      return;
    }
    if (this.#paced.has(table)) return;
    const nowMs = this.#options.clock.monotonicMs();
    const startedMs = this.#startedMs.get(table) ?? -Infinity;
    const waitMs = startedMs + PACE_MS - nowMs;
    if (waitMs <= 0) {
      this.#request(table);
      return;
    }
    this.#paced.add(table);
    const delayMs = Math.min(waitMs, table.definition.flush.ageMsMax);
    // The table's oldest row may reach its age limit before the paced flush is due.
    const timer = this.#timers.get(table);
    if (timer !== undefined && timer.dueMs <= nowMs + delayMs) return;
    this.#cancelTimer(table);
    this.#requestAfter(table, delayMs);
  }

  /** Whether a table uses too much memory to wait for the minimum interval between flushes. */
  #isLarge(table: StoredTable): boolean {
    // After a cancelled flush, the frozen memtable remains, and no new flush starts immediately.
    if (table.frozen !== undefined) return false;
    const bytes = table.isWaiting ? bytesOf(table) : table.active.bytes;
    const logBytes = this.#options.walMaxBytes * PACED_LOG_SHARE;
    return bytes >= Math.min(PACED_BYTES_MAX, logBytes, this.#memtableBytesMax * LEFT_SHARE);
  }

  #requestAfter(table: StoredTable, delayMs: number): void {
    if (delayMs > TIMER_MS_MAX) return;
    const { clock } = this.#options;
    const dueMs = clock.monotonicMs() + delayMs;
    const cancel = clock.after(delayMs, () => {
      this.#timers.delete(table);
      this.#paced.delete(table);
      this.#failed.delete(table);
      this.#request(table);
    });
    this.#timers.set(table, { cancel, dueMs });
  }

  /** Starts a flush of a table in the background. */
  #request(table: StoredTable): void {
    if (this.#flushing.has(table) || this.#isClosing || table.isDropped) return;
    // The log keeps the rows until the table's storage is available again.
    if (table.fault !== undefined) return;
    if (this.#options.manifest.isBroken) return;
    this.flush(table).catch((error: unknown) => {
      // Ignoring the error is safe: the rows stay readable and in the log, and the flush is
      // retried later.
      if (!isExpected(error)) {
        this.#options.jobs.onBug(error, "a flush", { table: table.definition.name });
        return;
      }
      this.#options.log.error("cannot flush a table", {
        table: table.definition.name,
        error: error.message,
      });
    });
  }

  async #flushAsJob(table: StoredTable, job: Job | undefined): Promise<FlushResult> {
    const hasRows = table.memtables().some(({ rowCount }) => rowCount > 0);
    if (this.#isClosing || table.isDropped || !hasRows) return NOTHING;
    if (job !== undefined) {
      job.start();
      return this.#flushAll(table, job);
    }
    const begun: NewJob = { kind: "flush", tableId: table.tableId };
    return runAsJob(this.#options.jobs, begun, {
      isClosing: () => this.#isClosing,
      work: async (own) => {
        const result = await this.#flushAll(table, own);
        if (!own.isCancelled) own.message = flushedText(result);
        return result;
      },
    });
  }

  /** Flushes all of the table's rows, one memtable after another. */
  async #flushAll(table: StoredTable, job: Job): Promise<FlushResult> {
    const upTo = table.active.lastSeq;
    let result = NOTHING;
    do {
      result = sum(result, await this.#flushOldest(table, job));
    } while (!this.#isCancelled(table, job) && isAtMost(table.memtables()[0], upTo));
    return result;
  }

  async #flushOldest(table: StoredTable, job: Job): Promise<FlushResult> {
    const isNew = table.frozen === undefined;
    const memtable = table.frozen ?? table.freeze();
    if (isNew) this.#cancelTimer(table);
    this.#paced.delete(table);
    this.#startedMs.set(table, this.#options.clock.monotonicMs());
    await this.#waitUntilDurable(() => memtable.lastSeq as Seq);
    // In relaxed mode, rows may be visible before they are durable. A segment must not contain
    // rows that the log may still lose: after a crash, a commit's rows would survive in the
    // segment while its rows in other tables are gone.
    await this.#options.commitLog.synced(memtable.lastCommitSeq);
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    try {
      const result = await flushTable(table, memtable, { ...this.#options, isCancelled });
      this.#failed.delete(table);
      table.storageFailure = undefined;
      this.#releaseLog();
      return result;
    } catch (error) {
      if (error instanceof DiskError || error instanceof DatabaseError) {
        this.#noteFailed(table, error);
      } else {
        this.#retryLater(table);
      }
      throw error;
    }
  }

  #isCancelled(table: StoredTable, job: Job | undefined): boolean {
    return this.#isClosing || table.isDropped || job?.isCancelled === true;
  }

  /**
   * Waits until a memtable is durable. The wait ends earlier if the memtable's newest rows are
   * rolled back in the meantime.
   */
  async #waitUntilDurable(lastSeq: () => Seq): Promise<void> {
    for (;;) {
      const seq = lastSeq();
      try {
        await this.#options.durable(seq);
        return;
      } catch (error) {
        const isTakenBack = error instanceof DatabaseError && lastSeq() !== seq;
        if (!isTakenBack) throw error;
      }
    }
  }

  #noteFailed(table: StoredTable, error: DiskError | DatabaseError): void {
    table.storageFailure = this.#storageFailure(table, error);
    // A full storage must not block writes to tables in other storages.
    if (table.storageFailure === undefined && isFull(error)) this.#options.space.noteFull();
    this.#retryLater(table);
  }

  #retryLater(table: StoredTable): void {
    this.#failed.add(table);
    if (this.#isClosing) return;
    this.#cancelTimer(table);
    this.#requestAfter(table, RETRY_MS);
  }

  /**
   * Returns the error that prevented a flush from writing to the table's storage; undefined if the
   * flush failed for another reason.
   */
  #storageFailure(
    { definition: { home }, segments }: StoredTable,
    error: DiskError | DatabaseError,
  ): DiskError | DatabaseError | undefined {
    if (home === undefined) return undefined;
    try {
      this.#options.files.requireThere(home, segments);
    } catch (failure) {
      if (failure instanceof DatabaseError) return failure;
      throw failure;
    }
    const isThere = error instanceof DiskError && isBelow(error.path, home.root);
    return isThere && !hasNoDescriptor(error.code) ? error : undefined;
  }

  #cancelTimer(table: StoredTable): void {
    this.#timers.get(table)?.cancel();
    this.#timers.delete(table);
  }

  /** Returns the number of the first log file that recovery needs. */
  #neededByTables(): number {
    const { commitLog, tables } = this.#options;
    let needed = commitLog.oldestUnwrittenFile;
    for (const table of tables.values()) needed = Math.min(needed, table.firstLogFile ?? needed);
    return needed;
  }

  /** Releases log files that no table needs. */
  #releaseLog(): void {
    const { commitLog, keepsLogFrom, manifest, log } = this.#options;
    if (this.#logHolds.isHeld) return;
    const needed = Math.min(this.#neededByTables(), keepsLogFrom());
    try {
      if (needed > this.#firstLogFile) {
        manifest.publish({ firstLogFile: needed });
        this.#firstLogFile = needed;
      }
      commitLog.release(needed);
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof DatabaseError)) throw inDoubt(error);
      // Ignoring the error is safe: recovery skips a log file kept longer than needed.
      log.warn("cannot release log files", { error: error.message });
    }
  }
}

/** Describes a completed flush in the message of its job. */
export function flushedText({ versions }: FlushResult): string {
  return `${counted(versions, "row version")} written to a segment`;
}

/** Whether a memtable has a row at or below `seq`. */
function isAtMost(memtable: Memtable | undefined, seq: number): boolean {
  if (memtable === undefined || memtable.rowCount === 0) return false;
  return (memtable.seqs[0] ?? 0) <= seq;
}

/**
 * Returns the size in bytes of a table's memtables, including memtables that are being flushed.
 */
function bytesOf(table: StoredTable): number {
  return table.memtables().reduce((total, memtable) => total + memtable.bytes, 0);
}

function sum(left: FlushResult, right: FlushResult): FlushResult {
  return { versions: left.versions + right.versions };
}

/**
 * Returns the total size of the log files with numbers from one (inclusive) to another
 * (exclusive).
 */
function bytesBetween(
  files: CommitLog["files"],
  { before, first }: { first: number; before: number },
): number {
  let bytesTotal = 0;
  for (const { bytes, number } of files) {
    if (number >= first && number < before) bytesTotal += bytes;
  }
  return bytesTotal;
}
