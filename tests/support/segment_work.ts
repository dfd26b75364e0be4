/** Runs the long part of flushes and merges on this thread, for tests that change the jobs. */
import type { Clock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import { InThreadWork } from "../../src/storage/background/segment_work.ts";
import type { SegmentWork } from "../../src/storage/mod.ts";

export function workInThisThread(parts: { disk: Disk; clock: Clock }): SegmentWork {
  return new InThreadWork(parts);
}
