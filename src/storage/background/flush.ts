/**
 * Decides when a memtable becomes a segment: by the table's policy, when it holds the log back or
 * too much memory, or when somebody asks. Of a table one flush (`flush_table.ts`) runs at a time,
 * beside a merge (`merge.ts`), as a job that can be seen and stopped. And lets go of log files that
 * no table needs.
 *
 * A flush that fails leaves the frozen memtable where it is, readable and in the log; the next
 * flush of the table begins with it.
 */
import { inDoubt } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError, DiskError, hasNoDescriptor, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { CommitLog } from "../contract/commit_log.ts";
import type { Job, JobList, NewJob } from "../contract/job_list.ts";
import type { FlushResult } from "../contract/store.ts";
import { isBelow } from "../directory/allowed_paths.ts";
import { Holds } from "../directory/holds.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { attempt, isFull, runAsJob } from "./background.ts";
import { flushTable, NOTHING } from "./flush_table.ts";
import type { Merger } from "./merge.ts";
import type { SegmentTools } from "./segment_drafts.ts";

/** After a flush failed, the next attempt waits so long. */
const RETRY_MS = 5000;

/**
 * A table that is written fast is flushed by its count of rows no more often than this, so that its
 * segments grow with its speed instead of their number. With 64 clients that insert row by row,
 * four seconds instead of one took 15 % of the processor time of all threads away: most of it was
 * the merging of small segments. A durable INSERT of one row then takes 47 µs of all processors,
 * not 66. It costs that so much more of the log is read at a start.
 */
const PACE_MS = 4000;

/**
 * Rows that wait for their turn hold at most about so much memory, and about so much of what the
 * log may have: with more, a flush does not wait.
 */
const PACED_BYTES_MAX: number = 64 * 1024 * 1024;
const PACED_LOG_SHARE = 0.25;

/**
 * A memtable with more than this is flushed, whatever its policy and the log may say: the text of a
 * column is one array, which can have 4 GiB, and while a flush runs its table goes on growing. It
 * is looked at when the log begins another file.
 */
const MEMTABLE_BYTES_MAX: number = 512 * 1024 * 1024;

/** A timer cannot be set further ahead; a policy that waits longer has no age. */
const TIMER_MS_MAX: number = 2 ** 31 - 1;

export interface FlusherOptions extends Omit<SegmentTools, "isCancelled"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  readonly commitLog: CommitLog;
  readonly walMaxBytes: number;
  /** {@linkcode MEMTABLE_BYTES_MAX} when absent. */
  readonly memtableBytesMax?: number | undefined;
  readonly jobs: JobList;
  readonly merger: Merger;
  /** Files of the log from this number on are needed elsewhere. */
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
  /** Tables whose last flush failed, until the next attempt is due. */
  readonly #failed = new Set<StoredTable>();
  /** Tables with enough rows that wait for their turn. */
  readonly #paced = new Set<StoredTable>();
  /** When each table's last flush began. */
  readonly #startedMs = new Map<StoredTable, number>();
  /** Where recovery would begin to read the log, as the manifest has it. */
  #firstLogFile: number;
  #isClosing = false;
  /** Somebody copies the log. */
  readonly #logHolds = new Holds();

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#firstLogFile = options.manifest.load().firstLogFile ?? 0;
  }

  /** Begins to watch the tables that recovery has filled. */
  start(): void {
    try {
      this.#releaseLog();
      for (const table of this.#options.tables.values()) this.noteAppended(table);
      this.noteRolled();
    } catch (error) {
      // Nobody gets the store that would close it.
      this.#beginClosing();
      throw error;
    }
  }

  /** Rows were added to a table, or its policy changed. */
  noteAppended(table: StoredTable): void {
    const { rowCount } = table.active;
    const { rowsMax, ageMsMax } = table.definition.flush;
    if ((rowCount === 0 && !table.isWaiting) || this.#isClosing) return;
    if (rowCount >= rowsMax || table.isWaiting) this.#requestPaced(table);
    else if (!this.#timers.has(table)) this.#requestAfter(table, ageMsMax);
  }

  /** The log began another file: some tables may hold too much in memory, or of the log. */
  noteRolled(): void {
    this.#relieveMemory();
    this.#relieveLog();
  }

  /** Lets log files go that nobody needs any more. */
  releaseLog(): void {
    if (!this.#isClosing) this.#releaseLog();
  }

  /**
   * Writes everything that the table holds now; resolves when it is published, or when its job was
   * cancelled. @param job Of who asks, and ends it; without one the flush gets its own.
   */
  async flush(table: StoredTable, job?: Job): Promise<FlushResult> {
    const running = this.#flushing.get(table);
    if (running !== undefined) {
      // It joins the one that is running, and has begun with it.
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
        // A flush that was cancelled, or met a bug, has left its memtable.
        const waits = table.frozen !== undefined && !this.#timers.has(table);
        if (waits) this.#requestAfter(table, RETRY_MS);
        this.noteAppended(table);
      }
    }
  }

  /** Keeps every file of the log until the function that is returned is called. */
  holdLog(): () => void {
    const release = this.#logHolds.hold();
    return () => {
      release();
      if (!this.#isClosing) this.#releaseLog();
    };
  }

  /** The table was dropped. */
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

  /** No flush begins any more. */
  #beginClosing(): void {
    this.#isClosing = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #relieveMemory(): void {
    const { memtableBytesMax = MEMTABLE_BYTES_MAX, tables } = this.#options;
    for (const table of tables.values()) {
      if (table.active.bytes > memtableBytesMax) this.#request(table);
    }
  }

  /** Flushes the tables that hold the oldest log file, when the log has become too long. */
  #relieveLog(): void {
    const { commitLog, log, walMaxBytes, tables } = this.#options;
    const oldest = this.#neededByTables();
    let bytes = 0;
    for (const file of commitLog.files) if (file.number >= oldest) bytes += file.bytes;
    // What somebody else needs of the log becomes no shorter by flushing.
    if (bytes <= walMaxBytes) return;
    for (const table of tables.values()) {
      if (table.firstLogFile !== oldest) continue;
      this.#request(table);
      if (table.fault === undefined) continue;
      // Each time that the log begins another file: it grows until the disk is full.
      log.warn("the log grows, as a table cannot be flushed", {
        table: table.definition.name,
        bytes,
        error: table.fault.message,
      });
    }
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
    // The oldest row may be due before that.
    const timer = this.#timers.get(table);
    if (timer !== undefined && timer.dueMs <= nowMs + delayMs) return;
    this.#cancelTimer(table);
    this.#requestAfter(table, delayMs);
  }

  /** Whether what a table holds in memory is too much to wait for its turn. */
  #isLarge(table: StoredTable): boolean {
    // A flush that somebody stopped is not begun again at once.
    if (table.frozen !== undefined) return false;
    let { bytes } = table.active;
    if (table.isWaiting) bytes = table.memtables().reduce((total, own) => total + own.bytes, 0);
    return bytes >= Math.min(PACED_BYTES_MAX, this.#options.walMaxBytes * PACED_LOG_SHARE);
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

  /** Flushes a table for nobody in particular. */
  #request(table: StoredTable): void {
    if (this.#flushing.has(table) || this.#isClosing || table.isDropped) return;
    // The log keeps its rows until its storage is back.
    if (table.fault !== undefined) return;
    if (this.#options.manifest.isBroken) return;
    this.flush(table).catch((error: unknown) => {
      // Safe: the rows stay readable and in the log, and the flush is tried again.
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

  /** Flushes what the table holds now, memtable by memtable. */
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
    // In relaxed mode that is sooner. A segment must not have rows that the log may yet lose: with
    // them their commit's rows in other tables would be gone.
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

  /** Rows that are taken back meanwhile make the wait shorter. */
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
    // A storage that is full is no reason to refuse rows of tables that are elsewhere.
    if (table.storageFailure === undefined && isFull(error)) this.#options.space.noteFull();
    this.#retryLater(table);
  }

  #retryLater(table: StoredTable): void {
    this.#failed.add(table);
    if (this.#isClosing) return;
    this.#cancelTimer(table);
    this.#requestAfter(table, RETRY_MS);
  }

  /** What kept a flush from writing to the table's storage; undefined if it was something else. */
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

  /** The first log file that recovery needs. */
  #neededByTables(): number {
    const { commitLog, tables } = this.#options;
    let needed = commitLog.oldestUnwrittenFile;
    for (const table of tables.values()) needed = Math.min(needed, table.firstLogFile ?? needed);
    return needed;
  }

  /** Lets log files go that no table needs. */
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
      // Safe: a file that is kept too long is skipped by recovery.
      log.warn("cannot release log files", { error: error.message });
    }
  }
}

/** What a flush did, for its job. */
export function flushedText({ versions }: FlushResult): string {
  return `${versions} row version(s) written to a segment`;
}

/** Whether a memtable has a row at or below a seq. */
function isAtMost(memtable: Memtable | undefined, seq: number): boolean {
  if (memtable === undefined || memtable.rowCount === 0) return false;
  return (memtable.seqs[0] ?? 0) <= seq;
}

function sum(left: FlushResult, right: FlushResult): FlushResult {
  return { versions: left.versions + right.versions };
}
