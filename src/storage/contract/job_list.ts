/**
 * Long work that somebody may want to see, or stop: flushes, merges, scrubs, backups, restores, the
 * erasure of accounts.
 *
 *     queued ──start──► running ──► completed | failed | cancelled | skipped
 *
 * - Who began a job ends it, once. Its id is never given to another job.
 * - A bug fails the job that met it, and is passed to `onBug`.
 * - The list is in memory: after a restart nothing of it is under way, and it begins empty. Of jobs
 *   that have ended the newest are kept.
 */
import { assert } from "../../base/assert.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";

/** Ended jobs that stay in the list. */
const ENDED_MAX = 1000;

/** What the store does itself, and ends when it closes. */
type StoreJobKind = "flush" | "compact" | "merge" | "scrub";

/** What layers above do with an open store: it is to end before that closes. */
type JobKindAbove = "backup" | "restore" | "purge";

export type JobKind = StoreJobKind | JobKindAbove;

export type JobStatus = "queued" | "running" | "completed" | "failed" | "cancelled" | "skipped";

const KINDS: Readonly<{
  [Kind in JobKind]: {
    /** What ids of the kind begin with. */
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
};

export interface NewJob {
  readonly kind: JobKind;
  readonly tableId?: number;
  /** What the job was asked for. */
  readonly parameters?: Readonly<Record<string, string | number>>;
  /** User id; absent for what the server does by itself. */
  readonly createdBy?: string;
}

/** How a job ended. */
export interface JobEnd {
  readonly status: "completed" | "failed" | "cancelled" | "skipped";
  readonly message?: string;
  /** Why it failed. */
  readonly error?: Error;
}

/** How a job ends whose work throws. */
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
  /** Share that is done, 0 to 1; undefined while nobody can tell. */
  progress: number | undefined;
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  updatedAtMs: number;
  /** Somebody asked for its end; who does the work looks here between its steps. */
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

  /** Resolves when the job has ended, however it did. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Its turn has come. Further calls change nothing. */
  start(): void {
    if (this.status !== "queued") return;
    this.status = "running";
    this.startedAtMs = this.#clock.nowMs();
    this.updatedAtMs = this.startedAtMs;
  }

  /** @param progress Share that is done, 0 to 1. */
  advance(progress: number, message?: string): void {
    assert(!this.isEnded, "a job that has ended does not advance");
    this.progress = Math.min(1, Math.max(progress, this.progress ?? 0));
    this.message = message ?? this.message;
    this.updatedAtMs = this.#clock.nowMs();
  }

  end({ error, message, status }: JobEnd): void {
    assert(!this.isEnded, "a job ends once");
    this.status = status;
    this.message = message ?? this.message;
    this.error = error;
    if (status === "completed") this.progress = 1;
    this.finishedAtMs = this.#clock.nowMs();
    this.updatedAtMs = this.finishedAtMs;
    this.#ended.resolve();
  }

  /** Ends as failed by what its work threw. @throws What must stop the process. */
  fail(thrown: unknown): FailedEnd {
    const error = isExpected(thrown) ? thrown : failedByBug(this.kind, thrown);
    const end: FailedEnd = { status: "failed", error };
    this.end(end);
    if (!isExpected(thrown)) this.#onBug(thrown, "a job", { job: this.jobId, kind: this.kind });
    return end;
  }
}

function failedByBug(kind: JobKind, cause: unknown): DatabaseError {
  const message = `Cannot finish the job (${kind}): it hit a bug in the server, see the server's log`;
  return new DatabaseError("INTERNAL_ERROR", message, { cause });
}

function rethrow(error: unknown): never {
  throw error;
}

export interface JobListOptions {
  /** Throws what must stop the process; without it, all bugs do. */
  readonly onBug?: OnBug;
}

export class JobList {
  /** For bugs in background work, also in work that is no job. */
  readonly onBug: OnBug;
  readonly #clock: Clock;
  /** In the order in which they began. */
  readonly #jobs = new Map<string, Job>();
  /** What somebody started last of each kind and table, by {@linkcode pathOf}. */
  readonly #lastStarted = new Map<string, Job>();
  /** In the order in which they ended. */
  readonly #ended = new Set<Job>();
  readonly #failedCounts = new Map<JobKind, number>(
    Object.keys(KINDS).map((kind) => [kind as JobKind, 0]),
  );
  #lastNumber = 0;

  constructor(clock: Clock, { onBug = rethrow }: JobListOptions = {}) {
    this.#clock = clock;
    this.onBug = onBug;
  }

  begin(job: NewJob): Job {
    // Of the clock, so that an id of the process before this one is not met again.
    this.#lastNumber = Math.max(this.#lastNumber + 1, this.#clock.nowMs() * 1000);
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

  /** How many jobs have failed since the start, of each kind. */
  get failedCounts(): ReadonlyMap<JobKind, number> {
    return this.#failedCounts;
  }

  /** Oldest first. */
  all(): readonly Job[] {
    return [...this.#jobs.values()];
  }

  find(jobId: string): Job | undefined {
    return this.#jobs.get(jobId);
  }

  /** The job that somebody started last, if it has not ended; of one table, or of none. */
  openOf(kind: JobKind, tableId: number | undefined): Job | undefined {
    const last = this.#lastStarted.get(pathOf({ kind, tableId }));
    return last?.isEnded === true ? undefined : last;
  }

  /** Asks every job that is under way to end. */
  cancelAll(): void {
    for (const job of this.#jobs.values()) if (!job.isEnded) job.isCancelled = true;
  }

  /** Resolves when all jobs of the layers above the store have ended. */
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
   * Does not look at jobs that have not ended: of a statement for all tables there are thousands.
   */
  #forgetOldest(): void {
    for (const job of this.#ended) {
      if (this.#jobs.size <= ENDED_MAX) return;
      this.#ended.delete(job);
      this.#jobs.delete(job.jobId);
    }
  }
}

function pathOf({ kind, tableId }: Pick<Job, "kind" | "tableId">): string {
  return tableId === undefined ? kind : `${kind} ${tableId}`;
}

/**
 * Does the work of a job that was begun, and ends the job as the work does. The work starts it: its
 * turn may come later.
 *
 * @throws What must stop the process; the job has failed then as well.
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

/** What was thrown, as the error of a job. */
export function errorFrom(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
