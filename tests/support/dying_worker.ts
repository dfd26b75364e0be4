/**
 * Replaces the threads that write segments. This thread performs flushes, but dies during each
 * merge, either of an uncaught error or silently.
 */
import { bunDisk } from "../../src/base/bun_disk.ts";
import { flushSteps } from "../../src/storage/mod.ts";
import type { JobMessage } from "../../src/threads/segment_jobs.ts";

declare const self: Worker;

self.addEventListener("message", ({ data: { work } }: MessageEvent<JobMessage>) => {
  if (work.kind === "flush") {
    const steps = flushSteps(bunDisk, work.job, () => false);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    self.postMessage({ kind: "flush", outcome: step.value });
    return;
  }
  const current = work.kind === "merge" ? work.job.current : undefined;
  if (current === undefined) throw new Error("This thread merges what is current");
  const pending = bunDisk.open(current.pendingPath, { create: true });
  pending.write(new Uint8Array(4096), 0);
  if (current.segmentId % 2 === 0) process.exit(1);
  throw new Error("This thread dies of every merge");
});
