/**
 * Runs work on small files in steps. Each step yields the file that must be durable before the
 * next step runs. The same steps serve startup, which syncs synchronously, and statements, which
 * let other work run during a sync.
 */
import type { Disk, DiskFile } from "../../base/disk.ts";

/** Steps that each yield a file, or the path of a directory, to be synced. */
export type SyncSteps<Result> = Generator<DiskFile | string, Result, void>;

/**
 * Runs the steps with synchronous syncs.
 *
 * @throws The errors of the steps. A failed sync is thrown into the step that requested it.
 */
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

/** Runs the steps with asynchronous syncs, so a slow disk does not block other work. */
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
