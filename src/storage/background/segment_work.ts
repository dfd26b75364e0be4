/**
 * Who writes segments: the long work of a flush or a merge, in this thread or in another.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { pauser } from "../../base/pauser.ts";
import { type FlushJob, type FlushOutcome, flushSteps } from "./flush_job.ts";
import { type MergeJob, type MergeOutcome, mergeSteps } from "./merge_job.ts";

/** Each job resolves to undefined when it was cancelled. */
export interface SegmentWork {
  /** @throws {DiskError} */
  flush(job: FlushJob, isCancelled: () => boolean): Promise<FlushOutcome | undefined>;
  /**
   * @throws {CorruptionError} Naming the source that is damaged.
   * @throws {DiskError}
   */
  merge(job: MergeJob, isCancelled: () => boolean): Promise<MergeOutcome | undefined>;
  /** Lets go of what was held for further jobs. No job is under way. */
  close(): void;
}

/** Does jobs between other work of this thread. */
export class InThreadWork implements SegmentWork {
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

  close(): void {
    // Nothing is held between jobs.
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
