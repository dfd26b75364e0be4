/**
 * The ledger of a job in its reader. It reads the instructions of the event loop to the job,
 * reports the resources that the job has used, and implements pg_sleep for the job.
 */
import type { Clock } from "../../base/clock.ts";
import { memoryUsage } from "../../base/memory_usage.ts";
import type { ReplicaStore } from "../../storage/mod.ts";
import {
  type CancelCause,
  checkDeadline,
  type RequestLedger,
} from "../execute/context/request_ledger.ts";
import { Sleeps } from "../execute/context/sleeps.ts";
import { TakenNumbers } from "../execute/context/taken_numbers.ts";
import type { MemoryBudget } from "../execute/materialised/memory_budget.ts";
import type { TemporaryFiles } from "../spill/mod.ts";
import { CANCEL_CAUSES, JOB_WORDS, type JobTotals, type JobWords, type QueryJob } from "./job.ts";
import type { QueryReaderParts } from "./query_reader.ts";
import type { Questions } from "./questions.ts";

export class JobLedger implements RequestLedger {
  readonly startMs: number;
  deadlineMs: number;
  rowsRead = 0;
  /** A reader thread receives no data from clients. */
  readonly bytesReceived = 0;
  memory: MemoryBudget | undefined;
  bytesElsewhere = 0;
  temporary: TemporaryFiles | undefined;
  readonly numbers: TakenNumbers = new TakenNumbers();
  sleepMs = 0;
  isWaiting = false;
  wake: (() => void) | undefined;
  questions: Questions | undefined;
  readonly #words: JobWords;
  readonly #clock: Clock;

  constructor({ timeMs, words }: QueryJob, clock: Clock) {
    this.startMs = clock.monotonicMs();
    this.deadlineMs = this.startMs + timeMs;
    this.#words = words;
    this.#clock = clock;
  }

  get cancelledBy(): CancelCause | undefined {
    return CANCEL_CAUSES[Atomics.load(this.#words, JOB_WORDS.cancelled) - 1];
  }

  noteProgress(): void {
    Atomics.store(this.#words, JOB_WORDS.kiloRowsRead, Math.floor(this.rowsRead / 1000));
    const bytes = (this.memory?.bytes ?? 0) + (this.questions?.stagedBytes ?? 0);
    Atomics.store(this.#words, JOB_WORDS.heldKib, Math.ceil(bytes / 1024));
  }

  /**
   * Checks whether the job has to end.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  look(): void {
    this.noteProgress();
    checkDeadline(this, this.#clock);
  }
}

/**
 * Returns the resources that a job has used and the memory of its reader, for the report at the
 * end of the job.
 */
export function takenBy(
  { rowsRead, sleepMs }: JobLedger,
  { cachedBytes }: Pick<ReplicaStore, "cachedBytes">,
): Pick<JobTotals, "memory" | "rowsRead" | "sleepMs"> {
  const memory = { heapBytes: memoryUsage().heapTotal, cacheBytes: cachedBytes };
  return { memory, rowsRead, sleepMs };
}

/**
 * Returns an object that implements pg_sleep by blocking the job's thread; undefined if the job
 * may not sleep.
 */
export function sleepsIn(
  { slept, words }: QueryJob,
  ledger: JobLedger,
  { clock, sleep }: Pick<QueryReaderParts, "clock" | "sleep">,
): Sleeps | undefined {
  if (slept === undefined) return undefined;
  const { msMax, overCount, sleepMs } = slept;
  ledger.sleepMs = sleepMs;
  const endMs = clock.monotonicMs() + msMax;
  return new Sleeps({
    clock,
    ledger,
    overCount,
    msMax: () => Math.max(0, endMs - clock.monotonicMs()),
    waitUntil(untilMs) {
      for (let nowMs = clock.monotonicMs(); nowMs < untilMs; nowMs = clock.monotonicMs()) {
        if (!sleep(words, Math.min(untilMs, ledger.deadlineMs) - nowMs)) return;
        ledger.look();
      }
    },
  });
}
