/**
 * What flushes and merges share: they are jobs, and the disk may fail them.
 */
import { DatabaseError, DiskError } from "../base/errors.ts";
import { errorFrom, type Job, type JobList, type NewJob } from "./job_list.ts";

export interface JobWork<T> {
  readonly work: (job: Job) => Promise<T>;
  /** Whether the store closes, which cuts work short. */
  readonly isClosing: () => boolean;
}

/** Does work as a job of its own, which ends as the work does. */
export async function runAsJob<T>(
  jobList: JobList,
  begun: NewJob,
  { isClosing, work }: JobWork<T>,
): Promise<T> {
  const job = jobList.begin(begun);
  job.start();
  try {
    const result = await work(job);
    const wasStopped = job.isCancelled || isClosing();
    job.end({ status: wasStopped ? "cancelled" : "completed" });
    return result;
  } catch (error) {
    job.end({ status: "failed", error: errorFrom(error) });
    throw error;
  }
}

export function isFull(error: Error): boolean {
  if (error instanceof DiskError) return error.code === "ENOSPC";
  return error instanceof DatabaseError && error.condition === "DISK_FULL";
}
