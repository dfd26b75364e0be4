/**
 * Reads every byte of each segment about once a week, so data lost by the disk is noticed while
 * older backups still exist. Statements verify only the bytes that they read, and some bytes go
 * unread for years.
 *
 * - A segment is due once every 151 hours, at an hour derived from its id. No record of the last
 *   scrub is needed, and the work is spread evenly over time. If the server is down in that hour,
 *   the scrub is skipped. The segment's next scrub falls at a different time of day and on a
 *   different weekday.
 * - Only one scrub runs at a time. A scrub is a job, so users can list and cancel it. Like a
 *   backup, it reads one chunk at a time through a separate reader, so it evicts nothing from the
 *   cache.
 */

import { type Clock, HOUR_MS } from "../../base/clock.ts";
import { counted } from "../../base/counted.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { pauser } from "../../base/pauser.ts";
import { requireSoundSegment } from "../check/check_segments.ts";
import type { Job, JobList } from "../contract/job_list.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { DataPaths } from "../directory/file_names.ts";
import { openEitherFile } from "../segment/term_file.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { LocalSegmentFiles } from "../table/segment_files.ts";
import type { StoredTable } from "../table/table.ts";
import { runAsJob } from "./background.ts";

/**
 * Six days and seven hours. If the period were exactly a week, a server that is down every night
 * or weekend, or restarts at the same hour each day, would never read the segments due at those
 * times. A server that runs nine hours a day, five days a week, reaches each segment within seven
 * weeks. A server that is down only at night reaches each segment within three weeks.
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
  /**
   * The last hour whose due segments have been read, as a number of hours since the clock's epoch.
   */
  #hour: number;
  #scrubbing: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: ScrubberOptions) {
    this.#options = options;
    this.#hour = hourOf(options.clock);
  }

  /** Starts reading the segments that have fallen due since the last call. */
  begin(): void {
    if (this.#scrubbing !== undefined || this.#isClosing) return;
    const hour = hourOf(this.#options.clock);
    // If the clock was set back, the scrub starts again from the current hour.
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
    return [...this.#options.tables.values()].flatMap(({ allSegments }) => allSegments);
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
      // Ignoring the error is safe: no damage was found, and the segments will be due again later.
      if (!isExpected(error)) throw error;
      log.warn("cannot check all segments for damage", { error: error.message });
    }
  }

  /**
   * Reads every byte of the given segments.
   *
   * @throws {DiskError} The first error, once all other segments have been read.
   */
  async #readAll(segments: readonly OpenSegment[], job: Job): Promise<void> {
    const isStopped = (): boolean => job.isCancelled || this.#isClosing;
    const failures: DiskError[] = [];
    let damagedCount = 0;
    for (const [index, segment] of segments.entries()) {
      if (isStopped()) return;
      // A merge or a drop may have removed the segment in the meantime.
      const isThere = this.#segments().includes(segment) && !segment.entry.quarantined;
      try {
        if (isThere && !(await this.#isSound(segment, isStopped))) damagedCount += 1;
      } catch (error) {
        // A segment that cannot be opened must not prevent the reading of other segments due in
        // the same hour.
        if (!(error instanceof DiskError)) throw error;
        failures.push(error);
      }
      if (isStopped()) return;
      const readCount = index + 1 - failures.length;
      const text = `${readCount} of ${counted(segments.length, "segment")} read, ${damagedCount} damaged`;
      job.advance((index + 1) / segments.length, text);
    }
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }

  /**
   * Checks as much of a segment as can be read. Returns false if it is damaged. @throws
   * {DiskError}
   */
  async #isSound({ entry }: OpenSegment, isStopped: () => boolean): Promise<boolean> {
    const { clock, disk, files, onDamage, paths } = this.#options;
    const takeTurn = pauser(clock);
    const pause = async (): Promise<void> => {
      if (isStopped())
        throw new DatabaseError("CANCELLED", "Cannot continue the job: it was stopped");
      await takeTurn();
    };
    // Keeps the segment's files in place. Otherwise a flush could write a new deletion vector and
    // remove the one being checked.
    const release = files.hold();
    try {
      await requireSoundSegment(disk, paths, { entry, pause });
      // A damaged index is only logged. It loses no row, so the segment stays in use.
      for (const indexId of entry.indexIds ?? [])
        files.openIndex(entry, indexId, openEitherFile)?.close();
      return true;
    } catch (error) {
      if (error instanceof CorruptionError) {
        onDamage(entry, error);
        return false;
      }
      if (error instanceof DatabaseError && error.code === "CANCELLED") return true;
      throw error;
    } finally {
      release();
    }
  }
}

function hourOf(clock: Clock): number {
  return Math.floor(clock.nowMs() / HOUR_MS);
}

/**
 * Returns the number of hours since a segment was last due to be read; 0 if it is due in hour
 * `hour`.
 */
function hoursSinceTurn({ segmentId }: SegmentEntry, hour: number): number {
  return (((hour - segmentId) % PERIOD_HOURS) + PERIOD_HOURS) % PERIOD_HOURS;
}
