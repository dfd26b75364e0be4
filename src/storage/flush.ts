/**
 * Decides when a memtable becomes a segment: by the table's policy, when it holds the log back, or
 * when somebody asks. Of a table one flush (`flush_table.ts`) and one merge (`merge_segments.ts`) run
 * at a time, beside each other, each as a job that can be seen and stopped.
 *
 * A flush that fails leaves the frozen memtable where it is, readable and in the log; the next
 * flush of the table begins with it.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";
import { CorruptionError, DatabaseError, DiskError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Seq } from "../base/seq.ts";
import type { CommitLog } from "./commit_log.ts";
import { flushTable } from "./flush_table.ts";
import { horizonSeqOf } from "./history.ts";
import { Holds } from "./holds.ts";
import { errorFrom, type Job, type JobList, type NewJob } from "./job_list.ts";
import {
  discardableShare,
  dropExpiredSegments,
  expiredShare,
  mergeSegments,
  segmentsToCompact,
  segmentsToMerge,
} from "./merge_segments.ts";
import type { OpenSegment } from "./open_segment.ts";
import type { SegmentTools } from "./segment_drafts.ts";
import type { SpaceGuard } from "./space.ts";
import type { CompactResult, FlushResult } from "./store.ts";
import type { StoredTable } from "./table.ts";

/** After a flush failed, the next attempt waits so long. */
const RETRY_MS = 5000;

/**
 * A table that is written fast is flushed by its count of rows no more often than this, so that its
 * segments grow with its speed instead of their number.
 */
const PACE_MS = 1000;

/** A segment is rewritten by itself when so much of it can be discarded. */
const DISCARD_SHARE_MIN = 0.25;

/** A segment is rewritten when about so much of it is past its time to live. */
const EXPIRED_SHARE_MIN = 0.5;

/** A timer cannot be set further ahead; a policy that waits longer has no age. */
const TIMER_MS_MAX: number = 2 ** 31 - 1;

const NOTHING: FlushResult = { versions: 0, bytes: 0 };

export interface FlusherOptions extends Omit<SegmentTools, "isCancelled"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  readonly commitLog: CommitLog;
  readonly walMaxBytes: number;
  readonly jobList: JobList;
  durable(seq: Seq): Promise<void>;
}

export class Flusher {
  readonly #options: FlusherOptions;
  readonly #flushing = new Map<StoredTable, Promise<FlushResult>>();
  /** Settles when the merge of a table has ended, and never fails. */
  readonly #merging = new Map<StoredTable, Promise<unknown>>();
  readonly #timers = new Map<StoredTable, CancelTimer>();
  /** Tables whose last flush failed, until the next attempt is due. */
  readonly #failed = new Set<StoredTable>();
  /** Tables with enough rows that wait for their turn. */
  readonly #paced = new Set<StoredTable>();
  /** Tables whose last merge failed: it is tried again after the next flush. */
  readonly #unmergeable = new Set<StoredTable>();
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
    this.#releaseLog();
    for (const table of this.#options.tables.values()) this.noteAppended(table);
    this.relieveLog();
  }

  /** Rows were added to a table, or its policy changed. */
  noteAppended(table: StoredTable): void {
    const { rowCount } = table.active;
    const { rowsMax, ageMsMax } = table.definition.flush;
    if (rowCount === 0 || this.#isClosing) return;
    if (rowCount >= rowsMax) this.#requestPaced(table);
    else if (!this.#timers.has(table)) this.#requestAfter(table, ageMsMax);
  }

  /** Flushes the tables that hold the oldest log file, when the log has become too long. */
  relieveLog(): void {
    const { commitLog, walMaxBytes, tables } = this.#options;
    if (commitLog.bytes <= walMaxBytes) return;
    for (const table of tables.values()) {
      const first = firstLogFileOf(table);
      if (first !== undefined && first <= commitLog.oldestFile) this.#request(table);
    }
  }

  /**
   * Writes everything that the table holds now; resolves when it is published, or when its job was
   * cancelled. @param job Of who asks, and ends it; without one the flush gets its own.
   */
  async flush(table: StoredTable, job?: Job): Promise<FlushResult> {
    const running = this.#flushing.get(table);
    if (running !== undefined) {
      const upTo = table.active.lastSeq;
      const result = await running;
      if (table.active.rowCount === 0 || table.progress.flushedSeq >= upTo) return result;
      if (job?.isCancelled === true) return result;
      return sum(result, await this.flush(table, job));
    }
    const flushing = this.#flushAs(table, job);
    this.#flushing.set(table, flushing);
    try {
      return await flushing;
    } finally {
      this.#flushing.delete(table);
      if (!this.#isClosing && !table.isDropped) {
        this.#mergeIfDue(table);
        // A flush that was cancelled has left its memtable.
        const waits = table.frozen !== undefined && !this.#timers.has(table);
        if (waits) this.#requestAfter(table, RETRY_MS);
        this.noteAppended(table);
      }
    }
  }

  /** After a flush or a merge: there may be many segments. */
  #mergeIfDue(table: StoredTable): void {
    if (this.#merging.has(table)) return;
    const segments = this.#unmergeable.has(table) ? undefined : segmentsToMerge(table);
    this.#unmergeable.delete(table);
    if (segments !== undefined) this.#mergeInBackground(table, segments);
  }

  #mergeInBackground(table: StoredTable, segments: readonly OpenSegment[]): void {
    const merging = this.#merge(table, segments).finally(() => {
      this.#merging.delete(table);
      if (!this.#isClosing && !table.isDropped) this.#mergeIfDue(table);
    });
    this.#merging.set(table, merging);
  }

  /**
   * Merges all that can be merged, and discards what is older than the table's history; resolves
   * when it is published, or when the job was cancelled: what is published by then stays.
   *
   * @throws {DiskError} @throws {CorruptionError}
   */
  async compact(table: StoredTable, job?: Job): Promise<CompactResult> {
    // What is merged of the table now is waited for, and nothing begins in between.
    for (;;) {
      const running = this.#merging.get(table);
      if (running === undefined) break;
      await running;
    }
    const compacting = this.#compact(table, job);
    this.#merging.set(
      table,
      compacting.catch(() => undefined),
    );
    try {
      return await compacting;
    } finally {
      this.#merging.delete(table);
      if (!this.#isClosing && !table.isDropped) this.#mergeIfDue(table);
    }
  }

  async #compact(table: StoredTable, job: Job | undefined): Promise<CompactResult> {
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    const tools = { ...this.#options, isCancelled };
    const horizonSeq = horizonSeqOf(this.#options.clock.nowMs(), table.definition.historyMs);
    const result = { mergedSegments: 0, discardedVersions: 0 };
    const runs = segmentsToCompact(table, horizonSeq);
    const allRows = runs.reduce((count, segments) => count + rowsOf(segments), 0);
    let doneRows = 0;
    job?.start();
    for (const segments of runs) {
      if (isCancelled()) break;
      const rows = rowsOf(segments);
      const discarded = await mergeSegments(table, segments, tools);
      if (isCancelled()) break;
      result.discardedVersions += discarded;
      result.mergedSegments += segments.length;
      doneRows += rows;
      job?.advance(doneRows / allRows, `${doneRows} of ${allRows} row versions merged`);
    }
    return result;
  }

  #isCancelled(table: StoredTable, job: Job | undefined): boolean {
    return this.#isClosing || table.isDropped || job?.isCancelled === true;
  }

  /** Does work as a job of its own, which ends as the work does. */
  async #asJob<T>(begun: NewJob, work: (job: Job) => Promise<T>): Promise<T> {
    const job = this.#options.jobList.begin(begun);
    job.start();
    try {
      const result = await work(job);
      const wasStopped = job.isCancelled || this.#isClosing;
      job.end({ status: wasStopped ? "cancelled" : "completed" });
      return result;
    } catch (error) {
      job.end({ status: "failed", error: errorFrom(error) });
      throw error;
    }
  }

  /** Begins to rewrite segments of which a good part is older than their table's history. */
  discardHistory(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const table of this.#options.tables.values()) {
      if (this.#merging.has(table) || table.isDropped) continue;
      const horizonSeq = horizonSeqOf(nowMs, table.definition.historyMs);
      const due = table.segments.find(
        (segment) =>
          !segment.entry.quarantined && discardableShare(segment, horizonSeq) >= DISCARD_SHARE_MIN,
      );
      if (due !== undefined) this.#mergeInBackground(table, [due]);
    }
  }

  /**
   * Drops segments of which every row is past its time to live, and begins to rewrite those of which
   * a good part is. A memtable of such rows is flushed by its policy first.
   */
  dropExpired(): void {
    for (const table of this.#options.tables.values()) {
      const expiredSeq = table.expiredSeq(this.#options.clock);
      if (expiredSeq === 0 || this.#merging.has(table)) continue;
      const first = table.segments[0];
      if (first === undefined || expiredShare(first, expiredSeq) < EXPIRED_SHARE_MIN) continue;
      this.#merging.set(table, this.#dropExpired(table, expiredSeq));
    }
  }

  async #dropExpired(table: StoredTable, expiredSeq: number): Promise<void> {
    let due: OpenSegment | undefined;
    try {
      await table.publishing.run(async () => {
        if (this.#isCancelled(table, undefined)) return;
        dropExpiredSegments(table, this.#options, expiredSeq);
      });
      due = table.segments.find(
        (segment) =>
          !segment.entry.quarantined && expiredShare(segment, expiredSeq) >= EXPIRED_SHARE_MIN,
      );
    } catch (error) {
      // Safe: the segments stay, nobody reads their rows, and the next attempt comes soon.
      if (!isExpected(error)) throw error;
      this.#options.log.error("cannot drop expired segments", {
        table: table.definition.name,
        error: error.message,
      });
    } finally {
      this.#merging.delete(table);
    }
    if (due === undefined || this.#isClosing || table.isDropped) return;
    this.#mergeInBackground(table, [due]);
  }

  async #merge(table: StoredTable, segments: readonly OpenSegment[]): Promise<void> {
    try {
      await this.#asJob({ kind: "merge", tableId: table.tableId }, async (job) => {
        const isCancelled = (): boolean => this.#isCancelled(table, job);
        const discarded = await mergeSegments(table, segments, { ...this.#options, isCancelled });
        // Else the same segments would be merged again at once.
        if (job.isCancelled) this.#unmergeable.add(table);
        else job.message = mergedText(segments.length, discarded);
      });
    } catch (error) {
      // Safe: the segments stay as they are, and a damaged one is quarantined.
      if (!isExpected(error)) throw error;
      if (isFull(error)) this.#options.space.noteFull();
      this.#options.log.error("cannot merge segments", {
        table: table.definition.name,
        error: error.message,
      });
      this.#unmergeable.add(table);
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
    this.#startedMs.delete(table);
    this.#releaseLog();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    await Promise.allSettled([...this.#flushing.values(), ...this.#merging.values()]);
  }

  #requestPaced(table: StoredTable): void {
    if (this.#flushing.has(table) || this.#failed.has(table) || this.#paced.has(table)) return;
    const nowMs = this.#options.clock.monotonicMs();
    const startedMs = this.#startedMs.get(table) ?? -Infinity;
    const waitMs = startedMs + PACE_MS - nowMs;
    if (waitMs <= 0) {
      this.#request(table);
      return;
    }
    this.#paced.add(table);
    this.#cancelTimer(table);
    this.#requestAfter(table, Math.min(waitMs, table.definition.flush.ageMsMax));
  }

  #requestAfter(table: StoredTable, delayMs: number): void {
    if (delayMs > TIMER_MS_MAX) return;
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#timers.delete(table);
      this.#paced.delete(table);
      this.#failed.delete(table);
      this.#request(table);
    });
    this.#timers.set(table, cancel);
  }

  /** Flushes a table for nobody in particular. */
  #request(table: StoredTable): void {
    if (this.#flushing.has(table) || this.#isClosing || table.isDropped) return;
    this.flush(table).catch((error: unknown) => {
      // Safe: the rows stay readable and in the log, and the flush is tried again.
      if (!isExpected(error)) throw error;
      this.#options.log.error("cannot flush a table", {
        table: table.definition.name,
        error: error.message,
      });
    });
  }

  async #flushAs(table: StoredTable, job: Job | undefined): Promise<FlushResult> {
    const hasRows = table.frozen !== undefined || table.active.rowCount > 0;
    if (this.#isClosing || table.isDropped || !hasRows) return NOTHING;
    if (job !== undefined) {
      job.start();
      return this.#flush(table, job);
    }
    return this.#asJob({ kind: "flush", tableId: table.tableId }, async (own) => {
      const result = await this.#flush(table, own);
      if (!own.isCancelled) own.message = flushedText(result);
      return result;
    });
  }

  async #flush(table: StoredTable, job: Job): Promise<FlushResult> {
    const isNew = table.frozen === undefined;
    const memtable = table.frozen ?? table.freeze();
    if (isNew) this.#cancelTimer(table);
    this.#paced.delete(table);
    this.#startedMs.set(table, this.#options.clock.monotonicMs());
    await this.#waitUntilDurable(() => memtable.lastSeq as Seq);
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    try {
      const result = await flushTable(table, memtable, { ...this.#options, isCancelled });
      this.#failed.delete(table);
      this.#releaseLog();
      return result;
    } catch (error) {
      if (error instanceof DiskError || error instanceof DatabaseError) {
        this.#noteFailed(table, error);
      }
      throw error;
    }
  }

  /** Rows that are taken back meanwhile make the wait shorter. */
  async #waitUntilDurable(lastSeq: () => Seq): Promise<void> {
    for (;;) {
      const seq = lastSeq();
      try {
        await this.#options.durable(seq);
        return;
      } catch (error) {
        const isTakenBack = error instanceof DatabaseError && error.condition === "DISK_FULL";
        if (!isTakenBack || lastSeq() === seq) throw error;
      }
    }
  }

  #noteFailed(table: StoredTable, error: DiskError | DatabaseError): void {
    if (isFull(error)) this.#options.space.noteFull();
    this.#failed.add(table);
    if (this.#isClosing) return;
    this.#cancelTimer(table);
    this.#requestAfter(table, RETRY_MS);
  }

  #cancelTimer(table: StoredTable): void {
    this.#timers.get(table)?.();
    this.#timers.delete(table);
  }

  /** Lets log files go that no table needs. */
  #releaseLog(): void {
    const { commitLog, manifest, tables, log } = this.#options;
    if (this.#logHolds.isHeld) return;
    let needed = commitLog.oldestUnwrittenFile;
    for (const table of tables.values()) needed = Math.min(needed, firstLogFileOf(table) ?? needed);
    try {
      if (needed > this.#firstLogFile) {
        manifest.publish({ firstLogFile: needed });
        this.#firstLogFile = needed;
      }
      commitLog.release(needed);
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof DatabaseError)) throw error;
      // Safe: a file that is kept too long is skipped by recovery.
      log.warn("cannot release log files", { error: error.message });
    }
  }
}

/** What a flush did, for its job. */
export function flushedText({ versions }: FlushResult): string {
  return `${versions} row version(s) written to a segment`;
}

/** What a merge did, for its job. */
export function mergedText(segments: number, discarded: number): string {
  return `${segments} segment(s) merged, ${discarded} old row version(s) discarded`;
}

/** What the disk, the catalog's disk included, can do to a flush or a merge. */
function isExpected(error: unknown): error is Error {
  return (
    error instanceof DiskError || error instanceof DatabaseError || error instanceof CorruptionError
  );
}

function isFull(error: Error): boolean {
  if (error instanceof DiskError) return error.code === "ENOSPC";
  return error instanceof DatabaseError && error.condition === "DISK_FULL";
}

function rowsOf(segments: readonly OpenSegment[]): number {
  return segments.reduce((count, { entry }) => count + entry.rowCount, 0);
}

function firstLogFileOf(table: StoredTable): number | undefined {
  const files = table
    .memtables()
    .filter(({ rowCount }) => rowCount > 0)
    .map(({ firstLogFile }) => firstLogFile)
    .filter((file) => file !== undefined);
  return files.length === 0 ? undefined : Math.min(...files);
}

function sum(left: FlushResult, right: FlushResult): FlushResult {
  return { versions: left.versions + right.versions, bytes: left.bytes + right.bytes };
}
