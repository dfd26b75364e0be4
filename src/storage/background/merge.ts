/**
 * Decides when segments are merged (`merge_segments.ts`): when there are many of them
 * (`merge_choice.ts`), when a large part of a segment is history or no longer needed
 * (`history_choice.ts`), when rows have expired, or on request.
 *
 * Each table has at most one merge at a time, possibly alongside a flush (`flush.ts`). A merge is
 * a job, so users can list and cancel it.
 */

import type { Clock } from "../../base/clock.ts";
import { counted } from "../../base/counted.ts";
import { isDamage, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";
import type { Job, JobList, NewJob } from "../contract/job_list.ts";
import type { CompactResult } from "../contract/store_figures.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { attempt, isFull, runAsJob } from "./background.ts";
import {
  discardableShare,
  historyToCompact,
  historyToMerge,
  obsoleteCount,
  segmentToSplit,
} from "./history_choice.ts";
import { retentionFloorOf, sizeFloorOf } from "./history_size.ts";
import { expiredShare, type MergeBounds, runsWithin, segmentsToMerge } from "./merge_choice.ts";
import { dropExpiredSegments, mergeSegments } from "./merge_segments.ts";
import type { SegmentTools } from "./pending_segments.ts";

/** The share of a segment that must be discardable before the segment is rewritten on its own. */
const DISCARD_SHARE_MIN = 0.25;

/**
 * The share of a segment that must be discardable before it is rewritten while history takes up
 * too much space.
 */
const BOUNDED_SHARE_MIN = 0.01;

/**
 * The delay before history is measured again if it takes up too much space but none of it can be
 * discarded.
 */
const BOUND_AGAIN_MS = 300_000;

/** The approximate share of a segment that must have expired before the segment is rewritten. */
const EXPIRED_SHARE_MIN = 0.5;

export interface MergerOptions extends Omit<SegmentTools, "isCancelled"> {
  readonly clock: Clock;
  readonly seqs: SeqGenerator;
  readonly log: Log;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  readonly jobs: JobList;
  /** The maximum total size in bytes of replaced versions; 0 for no limit. */
  readonly historyBytesMax: number;
  readonly mergeBounds: MergeBounds;
}

export class Merger {
  readonly #options: MergerOptions;
  /**
   * For each table being merged, a promise that resolves when the merge has ended. It never
   * rejects.
   */
  readonly #merging = new Map<StoredTable, Promise<unknown>>();
  /** Tables whose last merge failed. They are merged again only after their next flush. */
  readonly #unmergeable = new Set<StoredTable>();
  /** The running check of the size of history; undefined if no check is running. */
  #bounding: Promise<void> | undefined;
  /** The earliest time of the next history size check, on the monotonic clock. */
  #boundAgainMs = 0;
  #isClosing = false;

  constructor(options: MergerOptions) {
    this.#options = options;
  }

  /**
   * Starts a merge if one is due. Called after each flush and merge, which may leave enough
   * segments for another merge.
   */
  mergeIfDue(table: StoredTable): void {
    if (this.#merging.has(table)) return;
    const segments = this.#unmergeable.has(table)
      ? undefined
      : segmentsDue(table, this.#options.mergeBounds);
    this.#unmergeable.delete(table);
    if (segments !== undefined) this.#mergeInBackground(table, segments);
  }

  /**
   * Merges all segments that can be merged, and discards history beyond the table's retention.
   * Resolves when the result is published or the job is cancelled. Results published before a
   * cancellation are kept.
   *
   * @throws {DiskError} @throws {CorruptionError}
   */
  compact(table: StoredTable, job?: Job): Promise<CompactResult> {
    return this.#alone(table, () => this.#compact(table, job));
  }

  /**
   * Rewrites all segments that contain an owner's rows, without these rows. Resolves when the
   * result is published or the job is cancelled. Returns the number of discarded versions,
   * including old versions of other owners' rows.
   *
   * @throws {DiskError} @throws {CorruptionError}
   * @throws {DatabaseError} DATA_DAMAGED if a quarantined segment may contain the owner's rows.
   */
  erase(table: StoredTable, owner: number, job?: Job): Promise<number> {
    return this.#alone(table, () => this.#erase(table, owner, job));
  }

  /**
   * Starts rewriting segments of which a large part is older than the history that their tables
   * retain.
   */
  discardHistory(): void {
    this.#discardHistory(DISCARD_SHARE_MIN);
  }

  /**
   * Starts checking whether history takes up too much space. If it does, the oldest history is
   * discarded. Does nothing while such a check is running, or soon after a check that found
   * nothing to discard.
   */
  boundHistory(): void {
    const { clock, historyBytesMax } = this.#options;
    // A running merge is about to change the size of history, so it is not measured now.
    if (historyBytesMax === 0 || this.#merging.size > 0) return;
    if (this.#bounding !== undefined || this.#isClosing) return;
    if (clock.monotonicMs() < this.#boundAgainMs) return;
    this.#bounding = this.#boundHistory().finally(() => {
      this.#bounding = undefined;
    });
  }

  /**
   * Drops segments in which every row has expired, and starts rewriting segments in which a large
   * share of the rows has expired. Expired rows in a memtable stay there until it is flushed under
   * the table's policy.
   */
  dropExpired(): void {
    for (const table of this.#options.tables.values()) {
      const expiredSeq = table.discardableSeq(this.#options.seqs);
      if (expiredSeq === 0 || this.#merging.has(table)) continue;
      if (!table.allSegments.some((each) => hasExpired(each, expiredSeq))) continue;
      this.#merging.set(table, this.#dropExpired(table, expiredSeq));
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#bounding;
    await Promise.allSettled(this.#merging.values());
  }

  /**
   * Merges segments in the background.
   * @param beginNext Called after a completed merge. Returns whether it started another merge.
   */
  #mergeInBackground(
    table: StoredTable,
    segments: readonly OpenSegment[],
    beginNext: () => boolean = () => false,
  ): void {
    if (this.#options.manifest.isBroken) return;
    const merging = this.#merge(table, segments).finally(() => {
      this.#merging.delete(table);
      if (this.#isClosing || table.isDropped) return;
      attempt(this.#options.jobs, CHOICE, () => {
        const mayGoOn = !this.#unmergeable.has(table);
        if (!mayGoOn || !beginNext()) this.mergeIfDue(table);
      });
    });
    this.#merging.set(table, merging);
  }

  /** Waits for the table's current merges, and prevents further merges while `work` runs. */
  async #alone<T>(table: StoredTable, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const running = this.#merging.get(table);
      if (running === undefined) break;
      await running;
    }
    const working = work();
    this.#merging.set(
      table,
      working.catch(() => undefined),
    );
    try {
      return await working;
    } finally {
      this.#merging.delete(table);
      if (!this.#isClosing && !table.isDropped) {
        attempt(this.#options.jobs, CHOICE, () => this.mergeIfDue(table));
      }
    }
  }

  async #compact(table: StoredTable, job: Job | undefined): Promise<CompactResult> {
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    const tools = { ...this.#options, isCancelled };
    const { mergeBounds, seqs } = this.#options;
    const retentionFloorSeq = retentionFloorOf(table, seqs);
    const result = { mergedSegments: 0, discardedVersions: 0 };
    const runs = runsWithin(table.segments, mergeBounds).filter(([first, ...others]) => {
      if (others.length > 0 || first === undefined) return true;
      return obsoleteCount(first, table.progress.flushedSeq) > 0;
    });
    const rowsOfTable = rowsOf(runs.flat());
    let allRows = rowsOfTable + rowsOf(table.history);
    let doneRows = 0;
    const mergeRuns = async (all: readonly (readonly OpenSegment[])[]): Promise<void> => {
      for (const segments of all) {
        if (isCancelled()) return;
        const rows = rowsOf(segments);
        const discarded = await mergeSegments(table, segments, tools);
        if (isCancelled()) return;
        if (discarded !== undefined) {
          result.discardedVersions += discarded;
          result.mergedSegments += segments.length;
        }
        doneRows += rows;
        job?.advance(doneRows / allRows, `${doneRows} of ${allRows} row versions merged`);
      }
    };
    job?.start();
    await mergeRuns(runs);
    // The list includes history segments that the preceding merges have just written.
    const past = historyToCompact(table, retentionFloorSeq, mergeBounds);
    allRows = rowsOfTable + rowsOf(past.flat());
    await mergeRuns(past);
    return result;
  }

  async #erase(table: StoredTable, owner: number, job: Job | undefined): Promise<number> {
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    let gone = 0;
    for (const segment of table.allSegments) {
      if (isCancelled()) break;
      // `holds` throws if the segment is quarantined, because the segment may contain the owner's
      // rows.
      if (!segment.guard(() => holds(segment, owner))) continue;
      const tools = { ...this.#options, isCancelled, erasedOwner: owner };
      const discarded = await mergeSegments(table, [segment], tools);
      if (discarded !== undefined) gone += discarded;
      // The segment has been found damaged in the meantime. Its rows must not be reported as
      // erased.
      else if (!isCancelled()) segment.requireReadable();
    }
    // The rows were erased without a commit, so the cached live row count is out of date.
    table.liveRows = undefined;
    return gone;
  }

  async #boundHistory(): Promise<void> {
    const { clock, historyBytesMax, log, tables } = this.#options;
    try {
      const pause = pauser(clock);
      const steps = sizeFloorOf([...tables.values()], historyBytesMax);
      let step = steps.next();
      while (step.done !== true) {
        await pause();
        if (this.#isClosing) return;
        step = steps.next();
      }
      if (step.value === 0) return;
      for (const table of tables.values()) {
        table.sizeFloorSeq = Math.max(table.sizeFloorSeq, step.value);
      }
      const hasBegun = this.#discardHistory(BOUNDED_SHARE_MIN);
      // No history can be discarded now: only versions that must be kept, and segments that must
      // not be rewritten, remain.
      if (!hasBegun) this.#boundAgainMs = clock.monotonicMs() + BOUND_AGAIN_MS;
    } catch (error) {
      // Ignoring the error is safe: history merely keeps its space until the next check.
      if (!isExpected(error)) {
        this.#options.jobs.onBug(error, "the check of the size of history");
        return;
      }
      log.error("cannot limit the size of the history; the server will try again", {
        error: error.message,
      });
    }
  }

  /** Starts discarding history. Returns false if there was nothing to discard. */
  #discardHistory(shareMin: number): boolean {
    let hasBegun = false;
    for (const table of this.#options.tables.values()) {
      if (this.#merging.has(table) || table.isDropped) continue;
      if (this.#discardNext(table, shareMin)) hasBegun = true;
    }
    return hasBegun;
  }

  /**
   * Starts rewriting the oldest segment that is due. The other due segments follow one after
   * another.
   */
  #discardNext(table: StoredTable, shareMin: number): boolean {
    const retentionFloorSeq = retentionFloorOf(table, this.#options.seqs);
    const due = table.allSegments.find(
      (segment) =>
        !segment.entry.quarantined && knownDiscardableShare(segment, retentionFloorSeq) >= shareMin,
    );
    if (due === undefined) return false;
    this.#mergeInBackground(table, [due], () => this.#discardNext(table, shareMin));
    return true;
  }

  async #dropExpired(table: StoredTable, expiredSeq: number): Promise<void> {
    let due: OpenSegment | undefined;
    try {
      await table.publishing.run(async () => {
        if (this.#isCancelled(table, undefined)) return;
        dropExpiredSegments(table, this.#options, expiredSeq);
      });
      due = table.allSegments.find(
        (segment) => !segment.entry.quarantined && hasExpired(segment, expiredSeq),
      );
    } catch (error) {
      // Ignoring the error is safe: the segments stay, their expired rows are not read, and
      // another attempt follows soon.
      const { name } = table.definition;
      if (isExpected(error)) {
        this.#options.log.error("cannot delete expired segments", {
          table: name,
          error: error.message,
        });
      } else {
        this.#options.jobs.onBug(error, "the removal of expired segments", { table: name });
      }
    } finally {
      this.#merging.delete(table);
    }
    if (due === undefined || this.#isClosing || table.isDropped) return;
    this.#mergeInBackground(table, [due]);
  }

  async #merge(table: StoredTable, segments: readonly OpenSegment[]): Promise<void> {
    try {
      const begun: NewJob = { kind: "merge", tableId: table.tableId };
      await runAsJob(this.#options.jobs, begun, {
        isClosing: () => this.#isClosing,
        work: async (job) => {
          const isCancelled = (): boolean => this.#isCancelled(table, job);
          const discarded = await mergeSegments(table, segments, { ...this.#options, isCancelled });
          // Marks the table, because the same segments would otherwise be merged again at once.
          if (job.isCancelled) this.#unmergeable.add(table);
          else job.message = mergedText(discarded === undefined ? 0 : segments.length, discarded);
        },
      });
    } catch (error) {
      // Ignoring the error is safe: the segments stay as they are, and a damaged segment is
      // quarantined.
      this.#unmergeable.add(table);
      if (!isExpected(error)) throw error;
      const isElsewhere = table.definition.home !== undefined;
      if (isFull(error) && !isElsewhere) this.#options.space.noteFull();
      this.#options.log.error("cannot merge segments", {
        table: table.definition.name,
        error: error.message,
      });
    }
  }

  #isCancelled(table: StoredTable, job: Job | undefined): boolean {
    return this.#isClosing || table.isDropped || job?.isCancelled === true;
  }
}

const CHOICE = "the choice of segments to merge";

/** Describes a completed merge in the message of its job. */
export function mergedText(segments: number, discarded = 0): string {
  return `${counted(segments, "segment")} merged, ${counted(discarded, "old row version")} discarded`;
}

/**
 * Returns the segments due to be merged, either because there are many or because many of their
 * rows are obsolete.
 */
function segmentsDue(table: StoredTable, bounds: MergeBounds): readonly OpenSegment[] | undefined {
  const many = segmentsToMerge(table, bounds);
  if (many !== undefined) return many;
  const toSplit = segmentToSplit(table, bounds);
  return toSplit === undefined ? historyToMerge(table, bounds) : [toSplit];
}

function hasExpired(segment: OpenSegment, expiredSeq: number): boolean {
  return expiredShare(segment, expiredSeq) >= EXPIRED_SHARE_MIN;
}

/**
 * Whether a segment contains any of an owner's rows.
 * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
 */
function holds({ reader }: OpenSegment, owner: number): boolean {
  const rows = reader.ownerRange(owner);
  return rows !== undefined && rows.end > rows.start;
}

/**
 * Returns the discardable share of a segment, or 0 if its deletion vector is damaged. Such damage
 * quarantines the segment, which is then never due.
 */
function knownDiscardableShare(segment: OpenSegment, retentionFloorSeq: Seq): number {
  try {
    return discardableShare(segment, retentionFloorSeq);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return 0;
  }
}

function rowsOf(segments: readonly OpenSegment[]): number {
  return segments.reduce((count, { entry }) => count + entry.rowCount, 0);
}
