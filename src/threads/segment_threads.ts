/**
 * Writes segments in separate threads, which keeps the event loop responsive. One thread handles
 * flushes and another handles merges, since a flush must not wait for a long merge of a different
 * table. If memory is scarce, a single thread does both.
 *
 *     none ──first job──► running ──idle for a while, or closed──► none
 *
 * Each thread runs one job at a time; the others wait in its queue. If a thread ends unexpectedly,
 * only its current job fails, and the next job gets a new thread.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type {
  FlushJob,
  FlushOutcome,
  IndexJob,
  MergeJob,
  MergeOutcome,
  SegmentWork,
} from "../storage/mod.ts";
import { type MessageThread, startThread } from "./message_thread.ts";
import type { Answer, HeapAnswer, JobMessage, Work } from "./segment_jobs.ts";
import { watchedFlag } from "./thread_cancel.ts";
import { errorFromFailure } from "./thread_failure.ts";

/**
 * How long, in milliseconds, a thread may be idle before it is ended. An idle thread occupies
 * several megabytes.
 */
const IDLE_MS = 30_000;

/** How much garbage, in bytes, a thread may accumulate if the process has ample memory. */
const GARBAGE_BYTES_MAX: number = 64 * 2 ** 20;

export interface SegmentThreadOptions {
  /** The module that the threads run. It must call `serveSegmentJobs`. */
  readonly entry: URL;
  /** A thread collects garbage once its arrays have grown by this many bytes. */
  readonly garbageBytesMax?: number;
  /** Whether flushes and merges share one thread, because there is not enough memory for two. */
  readonly isSingle?: boolean;
}

export class SegmentThreads implements SegmentWork {
  readonly #flushes: JobLine;
  readonly #merges: JobLine;

  constructor(clock: Clock, options: SegmentThreadOptions) {
    this.#flushes = new JobLine(clock, options);
    this.#merges = options.isSingle === true ? this.#flushes : new JobLine(clock, options);
  }

  async flush(job: FlushJob, isCancelled: () => boolean): Promise<FlushOutcome | undefined> {
    const answer = await this.#flushes.run({ kind: "flush", job }, isCancelled);
    if (answer === undefined) return undefined;
    if (answer.kind === "flush") return answer.outcome;
    throw errorOf(answer);
  }

  async merge(job: MergeJob, isCancelled: () => boolean): Promise<MergeOutcome | undefined> {
    const answer = await this.#merges.run({ kind: "merge", job }, isCancelled);
    if (answer === undefined) return undefined;
    if (answer.kind === "merge") return answer.outcome;
    throw errorOf(answer);
  }

  /** Index builds share the thread of merges, since both take a long time. */
  async index(job: IndexJob, isCancelled: () => boolean): Promise<boolean> {
    const answer = await this.#merges.run({ kind: "index", job }, isCancelled);
    if (answer === undefined) return false;
    if (answer.kind === "index") return answer.isWritten;
    throw errorOf(answer);
  }

  get heapBytes(): number {
    const merges = this.#merges === this.#flushes ? 0 : this.#merges.heapBytes;
    return this.#flushes.heapBytes + merges;
  }

  close(): void {
    this.#flushes.close();
    this.#merges.close();
  }
}

/** Manages one thread, which exists only while there is work for it. */
class JobLine {
  heapBytes = 0;
  readonly #clock: Clock;
  readonly #entry: URL;
  readonly #garbageBytesMax: number;
  #thread: MessageThread<JobMessage> | undefined;
  #cancelIdle: CancelTimer | undefined;
  /** Resolves with the answer to the running job. */
  #answer: PromiseWithResolvers<Answer> | undefined;
  /** Resolves when the last queued job has ended, even if it failed. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock, { entry, garbageBytesMax = GARBAGE_BYTES_MAX }: SegmentThreadOptions) {
    this.#clock = clock;
    this.#entry = entry;
    this.#garbageBytesMax = garbageBytesMax;
  }

  /** Runs a job in the thread. Resolves to undefined if the job is cancelled before it begins. */
  run(work: Work, isCancelled: () => boolean): Promise<Answer | undefined> {
    const done = this.#line.then(() => this.#run(work, isCancelled));
    // The next job runs even if this one failed.
    this.#line = done.catch(() => undefined);
    return done;
  }

  close(): void {
    this.#cancelIdle?.();
    const thread = this.#thread;
    this.#thread = undefined;
    this.heapBytes = 0;
    thread?.close();
  }

  async #run(work: Work, isCancelled: () => boolean): Promise<Answer | undefined> {
    if (isCancelled()) return undefined;
    this.#cancelIdle?.();
    const cancel = watchedFlag(this.#clock, isCancelled);
    try {
      const garbageBytesMax = this.#garbageBytesMax;
      return await this.#ask({ work, cancelled: cancel.flag, garbageBytesMax });
    } finally {
      cancel.stop();
      this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.close());
    }
  }

  #ask(message: JobMessage): Promise<Answer> {
    this.#thread ??= this.#start();
    this.#answer = Promise.withResolvers();
    this.#thread.post(message);
    return this.#answer.promise;
  }

  #start(): MessageThread<JobMessage> {
    const thread = startThread<JobMessage, HeapAnswer>(this.#entry, {
      onMessage: ({ heapBytes, ...answer }) => {
        this.heapBytes = heapBytes;
        this.#answer?.resolve(answer);
      },
      onFailure: (reason) => {
        this.#thread = undefined;
        this.heapBytes = 0;
        this.#answer?.reject(
          new DatabaseError(
            "STORAGE_UNAVAILABLE",
            `Cannot write a segment: the thread that writes it failed: ${reason}`,
            { hint: "the server retries automatically; if this continues, check the server's log" },
          ),
        );
      },
    });
    if (thread !== undefined) return thread;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      "Cannot write a segment: the thread that writes it cannot be started",
      { hint: "the server retries automatically; raise its limits on open files and threads" },
    );
  }
}

/** Returns the error that an answer reports. */
function errorOf(answer: Answer): Error {
  if (answer.kind === "failed") return errorFromFailure(answer.failure);
  return new Error(`A segment writer thread sent an unexpected answer: ${answer.kind}`);
}
