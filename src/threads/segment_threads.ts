/**
 * Writes segments in threads of their own, so that the event loop goes on answering: one for
 * flushes and one for merges, since a flush must not wait for a long merge of another table.
 *
 *     none ──first job──► running ──idle for a while, or closed──► none
 *
 * Of each kind one job is under way at a time; others wait in line. A thread that ends by itself
 * fails its job only, and the next job gets a new one.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type {
  FlushJob,
  FlushOutcome,
  MergeJob,
  MergeOutcome,
  SegmentWork,
} from "../storage/mod.ts";
import { type MessageThread, startThread } from "./message_thread.ts";
import type { Answer, JobMessage, Work } from "./segment_worker.ts";
import { watchedFlag } from "./thread_cancel.ts";
import { errorFromFailure } from "./thread_failure.ts";

/** A thread without work is ended after this, since it holds some megabytes. */
const IDLE_MS = 30_000;

export class SegmentThreads implements SegmentWork {
  readonly #flushes: Line;
  readonly #merges: Line;

  /** @param entry What the threads run: `segment_worker.ts`, or a stand-in. */
  constructor(clock: Clock, entry: URL = new URL("./segment_worker.ts", import.meta.url)) {
    this.#flushes = new Line(clock, entry);
    this.#merges = new Line(clock, entry);
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

  close(): void {
    this.#flushes.close();
    this.#merges.close();
  }
}

/** One thread, while there is work for it. */
class Line {
  readonly #clock: Clock;
  readonly #entry: URL;
  #thread: MessageThread<JobMessage> | undefined;
  #cancelIdle: CancelTimer | undefined;
  /** To the job under way. */
  #answer: PromiseWithResolvers<Answer> | undefined;
  /** Settles when the last job in line has ended, and never fails. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock, entry: URL) {
    this.#clock = clock;
    this.#entry = entry;
  }

  /** Undefined when the work was cancelled before it began. */
  run(work: Work, isCancelled: () => boolean): Promise<Answer | undefined> {
    const done = this.#line.then(() => this.#run(work, isCancelled));
    // Who waits in line does not care how the one before ended.
    this.#line = done.catch(() => undefined);
    return done;
  }

  close(): void {
    this.#cancelIdle?.();
    const thread = this.#thread;
    this.#thread = undefined;
    thread?.close();
  }

  async #run(work: Work, isCancelled: () => boolean): Promise<Answer | undefined> {
    if (isCancelled()) return undefined;
    this.#cancelIdle?.();
    const cancel = watchedFlag(this.#clock, isCancelled);
    try {
      return await this.#ask({ work, cancelled: cancel.flag });
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
    const thread = startThread<JobMessage, Answer>(this.#entry, {
      onMessage: (answer) => this.#answer?.resolve(answer),
      onFailure: (reason) => {
        this.#thread = undefined;
        this.#answer?.reject(
          new DatabaseError(
            "STORAGE_UNAVAILABLE",
            `Cannot write a segment: the thread that does it failed: ${reason}`,
            { hint: "it is tried again by itself; if it goes on, see the log of the server" },
          ),
        );
      },
    });
    if (thread !== undefined) return thread;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      "Cannot write a segment: its thread cannot be started",
      { hint: "it is tried again by itself; raise the server's limits of open files and threads" },
    );
  }
}

/** What the work failed with. */
function errorOf(answer: Answer): Error {
  if (answer.kind === "failed") return errorFromFailure(answer.failure);
  return new Error(`A thread that writes segments answered with a ${answer.kind}`);
}
