/**
 * Stands in for the threads that write segments: flushes, and dies of each merge after it has
 * begun, by an error that nobody catches, or without a word.
 */
import { bunDisk } from "../../src/base/bun_disk.ts";
import { flushSteps } from "../../src/storage/mod.ts";
import type { JobMessage } from "../../src/threads/segment_worker.ts";

declare const self: Worker;

self.addEventListener("message", ({ data: { work } }: MessageEvent<JobMessage>) => {
  if (work.kind === "flush") {
    const steps = flushSteps(bunDisk, work.job, () => false);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    self.postMessage({ kind: "flush", outcome: step.value });
    return;
  }
  const draft = bunDisk.open(work.job.draft, { create: true });
  draft.write(new Uint8Array(4096), 0);
  if (work.job.segmentId % 2 === 0) process.exit(1);
  throw new Error("This thread dies of every merge");
});
