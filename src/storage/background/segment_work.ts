/** Runs the long part of a flush or a merge, in this thread or another. */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { pauser } from "../../base/pauser.ts";
import { type FlushJob, type FlushOutcome, flushSteps } from "./flush_job.ts";
import { type IndexJob, indexSteps } from "./index_job.ts";
import { type MergeJob, type MergeOutcome, mergeSteps } from "./merge_job.ts";

/** Runs flush and merge jobs. Each job resolves to undefined if it was cancelled. */
export interface SegmentWork {
  /** Writes a memtable to a segment file. @throws {DiskError} */
  flush(job: FlushJob, isCancelled: () => boolean): Promise<FlushOutcome | undefined>;
  /**
   * Merges segments into one or two new segment files.
   * @throws {CorruptionError} Names the damaged source.
   * @throws {DiskError}
   */
  merge(job: MergeJob, isCancelled: () => boolean): Promise<MergeOutcome | undefined>;
  /**
   * Writes an index of a segment. Resolves to false if the job was cancelled.
   * @throws {CorruptionError} @throws {DiskError}
   */
  index(job: IndexJob, isCancelled: () => boolean): Promise<boolean>;
  /**
   * The total heap size of the worker threads in bytes, measured when each thread last finished a
   * job.
   */
  readonly heapBytes: number;
  /** Releases memory retained for later jobs. No job may be running. */
  close(): void;
}

/** Runs jobs in this thread, interleaved with its other work. */
export class InThreadWork implements SegmentWork {
  readonly heapBytes = 0;
  readonly #disk: Disk;
  readonly #clock: Clock;

  constructor({ disk, clock }: { disk: Disk; clock: Clock }) {
    this.#disk = disk;
    this.#clock = clock;
  }

  flush(job: FlushJob, isCancelled: () => boolean): Promise<FlushOutcome | undefined> {
    return this.#run(flushSteps(this.#disk, job, isCancelled));
  }

  merge(job: MergeJob, isCancelled: () => boolean): Promise<MergeOutcome | undefined> {
    return this.#run(mergeSteps(this.#disk, job, isCancelled));
  }

  index(job: IndexJob, isCancelled: () => boolean): Promise<boolean> {
    return this.#run(indexSteps(this.#disk, job, isCancelled));
  }

  close(): void {
    // Nothing to release: no memory is retained between jobs.
  }

  async #run<T>(steps: Generator<void, T>): Promise<T> {
    const pause = pauser(this.#clock);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await pause();
    }
  }
}
