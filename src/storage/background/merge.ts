/**
 * Decides when segments are merged (`merge_segments.ts`): when there are many (`merge_choice.ts`),
 * when a good part of one is history that nobody needs or is past its time to live, or when
 * somebody asks. Of a table one merge runs at a time, beside a flush (`flush.ts`), as a job that
 * can be seen and stopped.
 */
import type { Clock } from "../../base/clock.ts";
import { isDamage, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";
import type { Job, JobList, NewJob } from "../contract/job_list.ts";
import type { CompactResult } from "../contract/store.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { attempt, isFull, runAsJob } from "./background.ts";
import { horizonOf, sizeHorizonOf } from "./history_size.ts";
import {
  discardableShare,
  expiredShare,
  type MergeBounds,
  segmentsToCompact,
  segmentsToMerge,
} from "./merge_choice.ts";
import { dropExpiredSegments, mergeSegments } from "./merge_segments.ts";
import type { SegmentTools } from "./segment_drafts.ts";

/** A segment is rewritten by itself when so much of it can be discarded. */
const DISCARD_SHARE_MIN = 0.25;

/** The same when history takes too much room. */
const BOUNDED_SHARE_MIN = 0.01;

/** Where history takes too much room and none of it can go, it is looked at again after so long. */
const BOUND_AGAIN_MS = 300_000;

/** A segment is rewritten when about so much of it is past its time to live. */
const EXPIRED_SHARE_MIN = 0.5;

export interface MergerOptions extends Omit<SegmentTools, "isCancelled"> {
  readonly clock: Clock;
  readonly seqs: SeqGenerator;
  readonly log: Log;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  readonly jobs: JobList;
  /** Replaced versions may take so much room; 0 for no bound. */
  readonly historyBytesMax: number;
  readonly mergeBounds: MergeBounds;
}

export class Merger {
  readonly #options: MergerOptions;
  /** Settles when the merge of a table has ended, and never fails. */
  readonly #merging = new Map<StoredTable, Promise<unknown>>();
  /** Tables whose last merge failed: it is tried again after the next flush. */
  readonly #unmergeable = new Set<StoredTable>();
  /** A look at the room that history takes. */
  #bounding: Promise<void> | undefined;
  /** When there may be another one, by the monotonic clock. */
  #boundAgainMs = 0;
  #isClosing = false;

  constructor(options: MergerOptions) {
    this.#options = options;
  }

  /** After a flush or a merge: there may be many segments. */
  mergeIfDue(table: StoredTable): void {
    if (this.#merging.has(table)) return;
    const segments = this.#unmergeable.has(table)
      ? undefined
      : segmentsToMerge(table, this.#options.mergeBounds);
    this.#unmergeable.delete(table);
    if (segments !== undefined) this.#mergeInBackground(table, segments);
  }

  /**
   * Merges all that can be merged, and discards what is older than the table's history; resolves
   * when it is published, or when the job was cancelled: what is published by then stays.
   *
   * @throws {DiskError} @throws {CorruptionError}
   */
  compact(table: StoredTable, job?: Job): Promise<CompactResult> {
    return this.#alone(table, () => this.#compact(table, job));
  }

  /**
   * Rewrites the segments that hold rows of an owner without them; resolves when that is published,
   * or when it was cancelled. Returns how many versions are gone, old ones of others included.
   *
   * @throws {DiskError} @throws {CorruptionError}
   * @throws {DatabaseError} DATA_DAMAGED if a quarantined segment may hold rows of the owner.
   */
  erase(table: StoredTable, owner: number, job?: Job): Promise<number> {
    return this.#alone(table, () => this.#erase(table, owner, job));
  }

  /** Begins to rewrite segments of which a good part is older than their table's history. */
  discardHistory(): void {
    this.#discardHistory(DISCARD_SHARE_MIN);
  }

  /**
   * Begins to look whether history takes too much room, and to discard the oldest of it then.
   * Nothing begins while that is under way, or soon after there was nothing to discard.
   */
  boundHistory(): void {
    const { clock, historyBytesMax } = this.#options;
    // What is being merged will be another size.
    if (historyBytesMax === 0 || this.#merging.size > 0) return;
    if (this.#bounding !== undefined || this.#isClosing) return;
    if (clock.monotonicMs() < this.#boundAgainMs) return;
    this.#bounding = this.#boundHistory().finally(() => {
      this.#bounding = undefined;
    });
  }

  /**
   * Drops segments of which every row is past its time to live, and begins to rewrite those of
   * which a good part is. A memtable of such rows is flushed by its policy first.
   */
  dropExpired(): void {
    for (const table of this.#options.tables.values()) {
      const expiredSeq = table.expiredSeq(this.#options.seqs);
      if (expiredSeq === 0 || this.#merging.has(table)) continue;
      const first = table.segments[0];
      if (first === undefined || expiredShare(first, expiredSeq) < EXPIRED_SHARE_MIN) continue;
      this.#merging.set(table, this.#dropExpired(table, expiredSeq));
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#bounding;
    await Promise.allSettled(this.#merging.values());
  }

  /** @param beginNext Called behind a merge that was done; returns whether it began another. */
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

  /** What is merged of the table now is waited for, and nothing begins beside the work. */
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
    const horizonSeq = horizonOf(table, this.#options.seqs);
    const result = { mergedSegments: 0, discardedVersions: 0 };
    const runs = segmentsToCompact(table, horizonSeq, this.#options.mergeBounds);
    const allRows = runs.reduce((count, segments) => count + rowsOf(segments), 0);
    let doneRows = 0;
    job?.start();
    for (const segments of runs) {
      if (isCancelled()) break;
      const rows = rowsOf(segments);
      const discarded = await mergeSegments(table, segments, tools);
      if (isCancelled()) break;
      if (discarded !== undefined) {
        result.discardedVersions += discarded;
        result.mergedSegments += segments.length;
      }
      doneRows += rows;
      job?.advance(doneRows / allRows, `${doneRows} of ${allRows} row versions merged`);
    }
    return result;
  }

  async #erase(table: StoredTable, owner: number, job: Job | undefined): Promise<number> {
    const isCancelled = (): boolean => this.#isCancelled(table, job);
    let gone = 0;
    for (const segment of table.segments) {
      if (isCancelled()) break;
      // Of a quarantined one nobody can say whose rows it holds.
      if (!segment.guard(() => holds(segment, owner))) continue;
      const tools = { ...this.#options, isCancelled, erasedOwner: owner };
      const discarded = await mergeSegments(table, [segment], tools);
      if (discarded !== undefined) gone += discarded;
      // Damage that was met meanwhile: what is not erased must not be taken for it.
      else if (!isCancelled()) segment.requireReadable();
    }
    // Those rows left by no commit.
    table.liveRows = undefined;
    return gone;
  }

  async #boundHistory(): Promise<void> {
    const { clock, historyBytesMax, log, tables } = this.#options;
    try {
      const pause = pauser(clock);
      const steps = sizeHorizonOf([...tables.values()], historyBytesMax);
      let step = steps.next();
      while (step.done !== true) {
        await pause();
        if (this.#isClosing) return;
        step = steps.next();
      }
      if (step.value === 0) return;
      for (const table of tables.values()) {
        table.sizeHorizonSeq = Math.max(table.sizeHorizonSeq, step.value);
      }
      const hasBegun = this.#discardHistory(BOUNDED_SHARE_MIN);
      // What takes the room is younger than what may go, or in no segment that may be written anew.
      if (!hasBegun) this.#boundAgainMs = clock.monotonicMs() + BOUND_AGAIN_MS;
    } catch (error) {
      // Safe: history takes its room until the next look.
      if (!isExpected(error)) {
        this.#options.jobs.onBug(error, "a look at the size of the history");
        return;
      }
      log.error("cannot bound the history; it is tried again", { error: error.message });
    }
  }

  /** Returns whether there was anything to discard. */
  #discardHistory(shareMin: number): boolean {
    let hasBegun = false;
    for (const table of this.#options.tables.values()) {
      if (this.#merging.has(table) || table.isDropped) continue;
      if (this.#discardNext(table, shareMin)) hasBegun = true;
    }
    return hasBegun;
  }

  /** Begins to rewrite the oldest segment that is due, and then the others. */
  #discardNext(table: StoredTable, shareMin: number): boolean {
    const horizonSeq = horizonOf(table, this.#options.seqs);
    const due = table.segments.find(
      (segment) =>
        !segment.entry.quarantined && knownDiscardableShare(segment, horizonSeq) >= shareMin,
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
      due = table.segments.find(
        (segment) =>
          !segment.entry.quarantined && expiredShare(segment, expiredSeq) >= EXPIRED_SHARE_MIN,
      );
    } catch (error) {
      // Safe: the segments stay, nobody reads their rows, and the next attempt comes soon.
      const { name } = table.definition;
      if (isExpected(error)) {
        this.#options.log.error("cannot drop expired segments", {
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
          // Else the same segments would be merged again at once.
          if (job.isCancelled) this.#unmergeable.add(table);
          else job.message = mergedText(discarded === undefined ? 0 : segments.length, discarded);
        },
      });
    } catch (error) {
      // Safe: the segments stay as they are, and a damaged one is quarantined.
      if (!isExpected(error)) throw error;
      const isElsewhere = table.definition.home !== undefined;
      if (isFull(error) && !isElsewhere) this.#options.space.noteFull();
      this.#options.log.error("cannot merge segments", {
        table: table.definition.name,
        error: error.message,
      });
      this.#unmergeable.add(table);
    }
  }

  #isCancelled(table: StoredTable, job: Job | undefined): boolean {
    return this.#isClosing || table.isDropped || job?.isCancelled === true;
  }
}

const CHOICE = "the choice of segments to merge";

/** What a merge did, for its job. */
export function mergedText(segments: number, discarded = 0): string {
  return `${segments} segment(s) merged, ${discarded} old row version(s) discarded`;
}

/** @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined. */
function holds({ reader }: OpenSegment, owner: number): boolean {
  const rows = reader.ownerRange(owner);
  return rows !== undefined && rows.end > rows.start;
}

/** Damage of a deletion vector quarantines its segment, of which nothing is due then. */
function knownDiscardableShare(segment: OpenSegment, horizonSeq: Seq): number {
  try {
    return discardableShare(segment, horizonSeq);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return 0;
  }
}

function rowsOf(segments: readonly OpenSegment[]): number {
  return segments.reduce((count, { entry }) => count + entry.rowCount, 0);
}
