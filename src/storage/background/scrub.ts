/**
 * Reads every byte of each segment within a week, so that what a disk has lost is noticed while
 * there are backups from before. A statement checks what it reads, and much is read by none for
 * years.
 *
 * - A segment has its turn in one hour of each 151, by its number: nothing need be kept of when it
 *   was read last, and the work is spread. A turn in hours without a server is missed, and the next
 *   one is at another time of day and of the week.
 * - One scrub runs at a time, as a job that can be seen and stopped. It is beside the statements as
 *   a backup is: in steps of a chunk, through a reader of its own that crowds nothing out.
 */
import { type Clock, HOUR_MS } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { pauser } from "../../base/pauser.ts";
import { requireSoundSegment } from "../check/check_segments.ts";
import type { Job, JobList } from "../contract/job_list.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { DataPaths } from "../directory/file_names.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { LocalSegmentFiles } from "../table/segment_files.ts";
import type { StoredTable } from "../table/table.ts";
import { runAsJob } from "./background.ts";

/**
 * Six days and seven hours. With a week itself, a server that stops each night or weekend, or
 * begins anew each day at the same hour, would never come to what has its turn then. On in nine
 * hours of five days, it comes to each segment within seven weeks; stopped for the nights only,
 * within three.
 */
const PERIOD_HOURS = 151;

export interface ScrubberOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly log: Log;
  readonly files: LocalSegmentFiles;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly jobs: JobList;
  readonly onDamage: (entry: SegmentEntry, damage: CorruptionError) => void;
}

export class Scrubber {
  readonly #options: ScrubberOptions;
  /** Those with their turn up to here were read, since the epoch of the clock. */
  #hour: number;
  #scrubbing: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: ScrubberOptions) {
    this.#options = options;
    this.#hour = hourOf(options.clock);
  }

  /** Begins to read the segments that had their turn since the last call. */
  begin(): void {
    if (this.#scrubbing !== undefined || this.#isClosing) return;
    const hour = hourOf(this.#options.clock);
    // A clock that was set back begins anew.
    const passed = hour - this.#hour;
    this.#hour = hour;
    const segments = this.#segments().filter(
      ({ entry }) => !entry.quarantined && hoursSinceTurn(entry, hour) < passed,
    );
    if (segments.length === 0) return;
    this.#scrubbing = this.#scrub(segments).finally(() => {
      this.#scrubbing = undefined;
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#scrubbing;
  }

  #segments(): OpenSegment[] {
    return [...this.#options.tables.values()].flatMap(({ segments }) => segments);
  }

  async #scrub(segments: readonly OpenSegment[]): Promise<void> {
    const { jobs, log } = this.#options;
    try {
      await runAsJob(
        jobs,
        { kind: "scrub" },
        {
          isClosing: () => this.#isClosing,
          work: (job) => this.#readAll(segments, job),
        },
      );
    } catch (error) {
      // Safe: no byte was taken for damaged, and they have their turn again.
      if (!isExpected(error)) throw error;
      log.warn("cannot read all segments for damage", { error: error.message });
    }
  }

  /** @throws {DiskError} The first one, once all others are read. */
  async #readAll(segments: readonly OpenSegment[], job: Job): Promise<void> {
    const isStopped = (): boolean => job.isCancelled || this.#isClosing;
    const failures: DiskError[] = [];
    let damagedCount = 0;
    for (const [index, segment] of segments.entries()) {
      if (isStopped()) return;
      // A merge or a drop may have come before.
      const isThere = this.#segments().includes(segment) && !segment.entry.quarantined;
      try {
        if (isThere && !(await this.#isSound(segment, isStopped))) damagedCount += 1;
      } catch (error) {
        // One that cannot be opened would else keep those with the same hour from ever being read.
        if (!(error instanceof DiskError)) throw error;
        failures.push(error);
      }
      if (isStopped()) return;
      const readCount = index + 1 - failures.length;
      const text = `${readCount} of ${segments.length} segment(s) read, ${damagedCount} damaged`;
      job.advance((index + 1) / segments.length, text);
    }
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }

  /** Whether it is, as far as it was read. @throws {DiskError} */
  async #isSound({ entry }: OpenSegment, isStopped: () => boolean): Promise<boolean> {
    const { clock, disk, files, onDamage, paths } = this.#options;
    const takeTurn = pauser(clock);
    const pause = async (): Promise<void> => {
      if (isStopped()) throw new DatabaseError("CANCELLED", "Cannot go on: the job was stopped");
      await takeTurn();
    };
    // A flush writes another deletion vector, and would remove this one.
    const release = files.hold();
    try {
      await requireSoundSegment(disk, paths, { entry, pause });
      return true;
    } catch (error) {
      if (error instanceof CorruptionError) {
        onDamage(entry, error);
        return false;
      }
      if (error instanceof DatabaseError && error.condition === "CANCELLED") return true;
      throw error;
    } finally {
      release();
    }
  }
}

function hourOf(clock: Clock): number {
  return Math.floor(clock.nowMs() / HOUR_MS);
}

/** How long ago a segment had its turn, 0 if that is now. */
function hoursSinceTurn({ segmentId }: SegmentEntry, hour: number): number {
  return (((hour - segmentId) % PERIOD_HOURS) + PERIOD_HOURS) % PERIOD_HOURS;
}
