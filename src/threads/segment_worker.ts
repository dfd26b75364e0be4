/**
 * The entry of the threads that write segments: one job at a time, as `segment_threads.ts` hands
 * them over, told what became of each.
 *
 * A job is cancelled through a flag in shared memory, since this thread reads no message while it
 * works.
 */
import { bunDisk } from "../base/bun_disk.ts";
import {
  type FlushJob,
  type FlushOutcome,
  flushSteps,
  type MergeJob,
  type MergeOutcome,
  mergeSteps,
} from "../storage/mod.ts";
import { type CancelFlag, isRaised } from "./thread_cancel.ts";
import { failureFrom, type ThreadFailure } from "./thread_failure.ts";

export type Work =
  | { readonly kind: "flush"; readonly job: FlushJob }
  | { readonly kind: "merge"; readonly job: MergeJob };

export interface JobMessage {
  readonly work: Work;
  readonly cancelled: CancelFlag;
}

export type Answer =
  | { readonly kind: "flush"; readonly outcome: FlushOutcome | undefined }
  | { readonly kind: "merge"; readonly outcome: MergeOutcome | undefined }
  | { readonly kind: "failed"; readonly failure: ThreadFailure };

declare const self: Worker;

self.addEventListener("message", (event: MessageEvent<JobMessage>) => {
  const answer = answerTo(event.data);
  self.postMessage(answer, movedWith(answer));
});

function answerTo({ work, cancelled }: JobMessage): Answer {
  const isCancelled = (): boolean => isRaised(cancelled);
  try {
    if (work.kind === "flush") {
      return { kind: "flush", outcome: finished(flushSteps(bunDisk, work.job, isCancelled)) };
    }
    return { kind: "merge", outcome: finished(mergeSteps(bunDisk, work.job, isCancelled)) };
  } catch (error) {
    return { kind: "failed", failure: failureFrom(error) };
  }
}

/** What an answer holds that need not be copied. */
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

function finished<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
