/**
 * What flushes and merges share: they are jobs, and the disk may fail them.
 */
import { DatabaseError, DiskError } from "../../base/errors.ts";
import { type Job, type JobEnd, type JobList, type NewJob, runJob } from "../contract/job_list.ts";

export interface JobWork<T> {
  readonly work: (job: Job) => Promise<T>;
  /** Whether the store closes, which cuts work short. */
  readonly isClosing: () => boolean;
}

interface WorkEnd<T> extends JobEnd {
  readonly result: T;
}

/** Does work as a job of its own, which ends as the work does. @throws What the work throws. */
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

/** Does what nobody waits for; a bug ends it, and nothing else. */
export function attempt({ onBug }: Pick<JobList, "onBug">, what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    onBug(error, what);
  }
}

export function isFull(error: Error): boolean {
  if (error instanceof DiskError) return error.code === "ENOSPC";
  return error instanceof DatabaseError && error.condition === "DISK_FULL";
}
