/**
 * The code shared by flushes and merges: both run as jobs, and both may fail with a disk error.
 */
import { DatabaseError, DiskError } from "../../base/errors.ts";
import { type Job, type JobEnd, type JobList, type NewJob, runJob } from "../contract/job_list.ts";

export interface JobWork<T> {
  readonly work: (job: Job) => Promise<T>;
  /** Whether the store is closing. If so, background work ends early. */
  readonly isClosing: () => boolean;
}

interface WorkEnd<T> extends JobEnd {
  readonly result: T;
}

/** Runs work as a job that ends when the work does. @throws Any error thrown by the work. */
export async function runAsJob<T>(
  jobList: JobList,
  begun: NewJob,
  { isClosing, work }: JobWork<T>,
): Promise<T> {
  const job = jobList.begin(begun);
  const end = await runJob<WorkEnd<T>>(job, async () => {
    job.start();
    const result = await work(job);
    const wasStopped = job.isCancelled || isClosing();
    return { status: wasStopped ? "cancelled" : "completed", result };
  });
  if ("result" in end) return end.result;
  throw end.error;
}

/**
 * Runs work whose result no caller awaits. If the work throws because of a bug, the bug is
 * reported, with no other effect.
 */
export function attempt({ onBug }: Pick<JobList, "onBug">, what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    onBug(error, what);
  }
}

export function isFull(error: Error): boolean {
  if (error instanceof DiskError) return error.code === "ENOSPC";
  return error instanceof DatabaseError && error.code === "DISK_FULL";
}
