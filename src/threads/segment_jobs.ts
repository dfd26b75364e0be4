/**
 * Runs jobs inside a thread that writes segments. `segment_threads.ts` sends one job at a time and
 * waits for its outcome.
 *
 * A job is cancelled through a flag in shared memory, because the thread reads no messages while
 * it is working.
 */

import { bunDisk } from "../base/bun_disk.ts";
import { systemClock } from "../base/clock.ts";
import { collectArrays, IdleCollection } from "../base/garbage.ts";
import { memoryUsage } from "../base/memory_usage.ts";
import {
  canComputeKeys,
  type FlushJob,
  type FlushOutcome,
  flushSteps,
  type IndexJob,
  indexSteps,
  type MergeJob,
  type MergeOutcome,
  mergeSteps,
} from "../storage/mod.ts";
import { type CancelFlag, isRaised } from "./thread_cancel.ts";
import { failureFrom, type ThreadFailure } from "./thread_failure.ts";

export type Work =
  | { readonly kind: "flush"; readonly job: FlushJob }
  | { readonly kind: "merge"; readonly job: MergeJob }
  | { readonly kind: "index"; readonly job: IndexJob };

export interface JobMessage {
  readonly work: Work;
  readonly cancelled: CancelFlag;
  /** The thread collects garbage once its arrays have grown by this many bytes. */
  readonly garbageBytesMax: number;
}

export type Answer =
  | { readonly kind: "flush"; readonly outcome: FlushOutcome | undefined }
  | { readonly kind: "merge"; readonly outcome: MergeOutcome | undefined }
  | { readonly kind: "index"; readonly isWritten: boolean }
  | { readonly kind: "failed"; readonly failure: ThreadFailure };

/** The answer to a job, with the size of the thread's heap in bytes after the job. */
export type HeapAnswer = Answer & { readonly heapBytes: number };

declare const self: Worker;

const collection = new IdleCollection(systemClock);

/**
 * Serves all jobs that arrive from now on.
 *
 * @param loadKeys Enables this thread to compute the expressions in index keys. Called only before
 *   the first job with such an index, because most databases have no such index.
 */
export function serveSegmentJobs(loadKeys: () => Promise<void>): void {
  self.addEventListener("message", ({ data }: MessageEvent<JobMessage>) => {
    if (canComputeKeys() || !computesKeys(data.work)) perform(data);
    else void loadKeys().then(() => perform(data));
  });
}

function computesKeys({ job, kind }: Work): boolean {
  const outputs = kind === "index" ? [job.output] : job.indexes;
  return outputs.some(({ columns }) => columns.some(({ expression }) => expression !== undefined));
}

function perform(message: JobMessage): void {
  const answered = answerTo(message);
  const told: HeapAnswer = { ...answered, heapBytes: memoryUsage().heapTotal };
  self.postMessage(told, movedWith(answered));
  collectArrays(message.garbageBytesMax);
  collection.noteWork();
}

function answerTo({ cancelled, garbageBytesMax, work }: JobMessage): Answer {
  const isCancelled = (): boolean => isRaised(cancelled);
  try {
    if (work.kind === "flush") {
      return {
        kind: "flush",
        outcome: finished(flushSteps(bunDisk, work.job, isCancelled), garbageBytesMax),
      };
    }
    if (work.kind === "index") {
      const isWritten = finished(indexSteps(bunDisk, work.job, isCancelled), garbageBytesMax);
      return { kind: "index", isWritten };
    }
    return {
      kind: "merge",
      outcome: finished(mergeSteps(bunDisk, work.job, isCancelled), garbageBytesMax),
    };
  } catch (error) {
    return { kind: "failed", failure: failureFrom(error) };
  }
}

/**
 * Returns the buffers of an answer that are transferred to the receiving thread rather than
 * copied.
 */
function movedWith(answer: Answer): ArrayBuffer[] {
  switch (answer.kind) {
    case "flush":
      return answer.outcome === undefined ? [] : [answer.outcome.order.buffer];
    case "merge":
      return (answer.outcome?.newRows ?? []).map(({ buffer }) => buffer);
    default:
      return [];
  }
}

function finished<T>(steps: Generator<void, T>, garbageBytesMax: number): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    collectArrays(garbageBytesMax);
  }
}
