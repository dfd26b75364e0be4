/**
 * Work on small files in steps, each of which asks for what must be durable before the next one.
 * One order of steps serves a start, which syncs in place, and a statement, which lets others run
 * meanwhile.
 */
import type { Disk, DiskFile } from "../../base/disk.ts";

/** Yields a file, or the path of a directory, to be synced. */
export type SyncSteps<Result> = Generator<DiskFile | string, Result, void>;

/** @throws What the steps throw, which are told of a sync that failed. */
export function runNow<Result>(disk: Disk, steps: SyncSteps<Result>): Result {
  let step = steps.next();
  while (step.done !== true) {
    try {
      if (typeof step.value === "string") disk.syncDirectory(step.value);
      else step.value.syncNow();
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next();
  }
  return step.value;
}

/** The same, and a disk that takes long to sync holds nobody else up. */
export async function runSlowly<Result>(disk: Disk, steps: SyncSteps<Result>): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) {
    try {
      if (typeof step.value === "string") await disk.syncDirectorySoon(step.value);
      else await step.value.sync();
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next();
  }
  return step.value;
}
