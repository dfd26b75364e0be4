/**
 * Lists long-running work that users may want to see or stop: flushes, merges, scrubs, index
 * builds, table rewrites, backups, restores, exports, the erasure of accounts, and the removal of
 * dropped topics.
 *
 *     queued ──start──► running ──► completed | failed | cancelled | skipped
 *
 * - The code that begins a job also ends it, exactly once. Job ids are never reused.
 * - A bug fails the job in which it occurs, and is passed to `onBug`.
 * - The list is kept in memory and is empty after a restart, since no job survives one. Only the
 *   newest ended jobs are kept.
 */
import { assert } from "../../base/assert.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";

/** The maximum number of ended jobs in the list. */
const ENDED_MAX = 1000;

/** The number of job ids available per millisecond. */
const IDS_PER_MS = 1000;

/** The kinds of jobs that the store runs itself. When the store closes, it ends these jobs. */
type StoreJobKind = "flush" | "compact" | "merge" | "scrub";

/**
 * The kinds of jobs that higher layers run. These jobs need an open store, so they must end before
 * it closes.
 */
type JobKindAbove = "backup" | "restore" | "purge" | "clear" | "index" | "rewrite" | "export";

export type JobKind = StoreJobKind | JobKindAbove;

export type JobStatus = "queued" | "running" | "completed" | "failed" | "cancelled" | "skipped";

const KINDS: Readonly<{
  [Kind in JobKind]: {
    /** The prefix of the ids of all jobs of a kind. */
    readonly letters: string;
    readonly isOfStore: Kind extends StoreJobKind ? true : false;
  };
}> = {
  flush: { letters: "FL", isOfStore: true },
  compact: { letters: "CO", isOfStore: true },
  merge: { letters: "ME", isOfStore: true },
  scrub: { letters: "SC", isOfStore: true },
  backup: { letters: "BA", isOfStore: false },
  restore: { letters: "RE", isOfStore: false },
  purge: { letters: "PU", isOfStore: false },
  clear: { letters: "CL", isOfStore: false },
  index: { letters: "IX", isOfStore: false },
  rewrite: { letters: "RW", isOfStore: false },
  export: { letters: "EX", isOfStore: false },
};

export interface NewJob {
  readonly kind: JobKind;
  readonly tableId?: number;
  /** The parameters with which the job was started. */
  readonly parameters?: Readonly<Record<string, string | number>>;
  /** The id of the user who started the job; undefined for a job started by the server. */
  readonly createdBy?: string;
}

/** The outcome of a job. */
export interface JobEnd {
  readonly status: "completed" | "failed" | "cancelled" | "skipped";
  readonly message?: string;
  /** The error with which the job failed. */
  readonly error?: Error;
}

/** The outcome of a job whose work threw an error. */
interface FailedEnd extends JobEnd {
  readonly status: "failed";
  readonly error: Error;
}

export class Job {
  readonly jobId: string;
  readonly kind: JobKind;
  readonly tableId: number | undefined;
  readonly parameters: NewJob["parameters"];
  readonly createdBy: string | undefined;
  readonly createdAtMs: number;
  status: JobStatus = "queued";
  message: string | undefined;
  error: Error | undefined;
  /** The share of the work that is complete, from 0 to 1; undefined while unknown. */
  progress: number | undefined;
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  updatedAtMs: number;
  /** Whether the job has been cancelled. Its work checks this flag between steps. */
  isCancelled = false;
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  readonly #ended = Promise.withResolvers<void>();

  constructor(
    jobId: string,
    { createdBy, kind, parameters, tableId }: NewJob,
    { clock, onBug }: { clock: Clock; onBug: OnBug },
  ) {
    this.jobId = jobId;
    this.kind = kind;
    this.tableId = tableId;
    this.parameters = parameters;
    this.createdBy = createdBy;
    this.createdAtMs = clock.nowMs();
    this.updatedAtMs = this.createdAtMs;
    this.#clock = clock;
    this.#onBug = onBug;
  }

  get isEnded(): boolean {
    return this.finishedAtMs !== undefined;
  }

  /** Resolves when the job has ended, whatever its outcome. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Marks the job as running. Calling it again has no effect. */
  start(): void {
    if (this.status !== "queued") return;
    this.status = "running";
    this.startedAtMs = this.#clock.nowMs();
    this.updatedAtMs = this.startedAtMs;
  }

  /** Records progress. @param progress The share of the work that is complete, from 0 to 1. */
  advance(progress: number, message?: string): void {
    assert(!this.isEnded, "job list: progress reported for an ended job");
    this.progress = Math.min(1, Math.max(progress, this.progress ?? 0));
    this.message = message ?? this.message;
    this.updatedAtMs = this.#clock.nowMs();
  }

  end({ error, message, status }: JobEnd): void {
    assert(!this.isEnded, "job list: job ended twice");
    this.status = status;
    this.message = message ?? this.message;
    this.error = error;
    if (status === "completed") this.progress = 1;
    this.finishedAtMs = this.#clock.nowMs();
    this.updatedAtMs = this.finishedAtMs;
    this.#ended.resolve();
  }

  /** Ends the job as failed. @throws An error that must stop the process. */
  fail(thrown: unknown): FailedEnd {
    const error = isExpected(thrown) ? thrown : failedByBug(this.kind, thrown);
    const end: FailedEnd = { status: "failed", error };
    this.end(end);
    if (!isExpected(thrown)) this.#onBug(thrown, "a job", { job: this.jobId, kind: this.kind });
    return end;
  }
}

function failedByBug(kind: JobKind, cause: unknown): DatabaseError {
  const message =
    `Cannot finish the job (${kind}): it failed because of a bug in the server; the server's log ` +
    "has the details";
  return new DatabaseError("INTERNAL_ERROR", message, { cause });
}

function rethrow(error: unknown): never {
  throw error;
}

export interface JobListOptions {
  /**
   * Handles bugs; it may rethrow errors that must stop the process. By default, all bugs are
   * rethrown.
   */
  readonly onBug?: OnBug;
}

export class JobList {
  /** Called for each bug in background work, including work that is not a job. */
  readonly onBug: OnBug;
  readonly #clock: Clock;
  /** All listed jobs, in the order in which they began. */
  readonly #jobs = new Map<string, Job>();
  /** For each kind and table, the last job that a user started, keyed by {@linkcode pathOf}. */
  readonly #lastStarted = new Map<string, Job>();
  /** Ended jobs, in the order in which they ended. */
  readonly #ended = new Set<Job>();
  #isClosing = false;
  readonly #failedCounts = new Map<JobKind, number>(
    Object.keys(KINDS).map((kind) => [kind as JobKind, 0]),
  );
  #lastNumber = 0;

  constructor(clock: Clock, { onBug = rethrow }: JobListOptions = {}) {
    this.#clock = clock;
    this.onBug = onBug;
  }

  begin(job: NewJob): Job {
    // The numbers start from the clock, so ids from an earlier process are not repeated.
    this.#lastNumber = Math.max(this.#lastNumber + 1, this.#clock.nowMs() * IDS_PER_MS);
    const begun = new Job(`${KINDS[job.kind].letters}${this.#lastNumber}`, job, {
      clock: this.#clock,
      onBug: this.onBug,
    });
    this.#jobs.set(begun.jobId, begun);
    if (begun.createdBy !== undefined) this.#lastStarted.set(pathOf(begun), begun);
    void begun.ended.then(() => this.#noteEnd(begun));
    this.#forgetOldest();
    return begun;
  }

  /** Removes an ended job from the list, even if it is not among the oldest jobs. */
  forget(job: Job): void {
    assert(this.#ended.delete(job), "job list: cannot remove a running job");
    this.#jobs.delete(job.jobId);
  }

  /** For each kind of job, how many have failed since startup. */
  get failedCounts(): ReadonlyMap<JobKind, number> {
    return this.#failedCounts;
  }

  /** Returns all jobs, oldest first. */
  all(): readonly Job[] {
    return [...this.#jobs.values()];
  }

  find(jobId: string): Job | undefined {
    return this.#jobs.get(jobId);
  }

  /**
   * Returns the last job of a kind that a user started for a table (or for no table); undefined if
   * that job has ended.
   */
  openOf(kind: JobKind, tableId: number | undefined): Job | undefined {
    const last = this.#lastStarted.get(pathOf({ kind, tableId }));
    return last?.isEnded === true ? undefined : last;
  }

  /** Whether the database is closing. If so, all jobs are being cancelled. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Cancels every queued or running job, because the database is closing. */
  cancelAll(): void {
    this.#isClosing = true;
    for (const job of this.#jobs.values()) if (!job.isEnded) job.isCancelled = true;
  }

  /** Resolves when all jobs of higher layers have ended. */
  async endedAbove(): Promise<void> {
    const above = this.all().filter(({ kind }) => !KINDS[kind].isOfStore);
    await Promise.all(above.map(({ ended }) => ended));
  }

  #noteEnd(job: Job): void {
    const { kind, status } = job;
    this.#ended.add(job);
    if (this.#lastStarted.get(pathOf(job)) === job) this.#lastStarted.delete(pathOf(job));
    if (status === "failed") this.#failedCounts.set(kind, (this.#failedCounts.get(kind) ?? 0) + 1);
  }

  /**
   * Removes the oldest ended jobs. Only ended jobs are visited, since a statement for all tables
   * may create thousands of jobs that have not ended.
   */
  #forgetOldest(): void {
    for (const job of this.#ended) {
      if (this.#jobs.size <= ENDED_MAX) return;
      this.#ended.delete(job);
      this.#jobs.delete(job.jobId);
    }
  }
}

/**
 * Returns the time at which a job began, in Unix milliseconds. The time is part of the job's id.
 */
export function beganAtMs(jobId: string): number {
  return Math.floor(Number(jobId.slice(2)) / IDS_PER_MS);
}

function pathOf({ kind, tableId }: Pick<Job, "kind" | "tableId">): string {
  return tableId === undefined ? kind : `${kind} ${tableId}`;
}

/**
 * Runs a job's work and ends the job with its outcome. The work itself calls `start`, because it
 * may have to wait for other work first.
 *
 * @throws Errors that must stop the process. The job then ends as failed, too.
 */
export async function runJob<End extends JobEnd>(
  job: Job,
  work: () => Promise<End>,
): Promise<End | FailedEnd> {
  try {
    const end = await work();
    job.end(end);
    return end;
  } catch (error) {
    return job.fail(error);
  }
}

/** Converts a thrown value to the error with which a job ends. */
export function errorFrom(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
