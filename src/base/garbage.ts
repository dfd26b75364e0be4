/**
 * Decides when to collect garbage. A query operator that has just moved its data to disk knows
 * that most of the heap is garbage. The collector would not notice this until the heap had
 * doubled. A sort of 5 M rows within 64 MiB takes up 85 MB of memory with such collections, and
 * 270 MB without.
 *
 * However, the moved data may be small, for example one of thousands of small partitions, whereas
 * a collection scans the entire heap. Therefore, nothing is collected until the heap has grown
 * enough to justify it: with one collection per partition, a DISTINCT of 12,000 rows within 1 MiB
 * spent nine tenths of its time on collections. The same applies to the garbage of large
 * statements, because a client may send any number of them.
 */
import type { Clock } from "./clock.ts";
import { arrayBytes, memoryUsage } from "./memory_usage.ts";

/**
 * The maximum heap sizes at which garbage is collected immediately. Collecting `OBJECT_BYTES_MAX`
 * bytes of objects takes about 20 ms, which is not noticeable. Typed arrays are not scanned, but a
 * collection immediately returns their memory to the system, which takes at most 25 ms for
 * `RETURNED_BYTES_MAX` bytes. Returning 1.5 GB took 200 ms.
 */
const OBJECT_BYTES_MAX = 96 * 2 ** 20;
const RETURNED_BYTES_MAX = 256 * 2 ** 20;

/** The number of bytes by which the heap must grow after a collection to justify another one. */
const GROWN_BYTES_MIN = 8 * 2 ** 20;

/** The smallest heap size observed since the last collection, in bytes. */
let leastBytes = 0;

/**
 * Collects garbage after a lot of memory has become unused. If the heap contains many objects, the
 * collector is only asked to start in parallel with the program.
 */
export function collectSoon(): void {
  const usage = memoryUsage();
  // The heap may have shrunk, because the collector may also have run by itself.
  leastBytes = Math.min(leastBytes, usage.heapUsed);
  if (usage.heapUsed - leastBytes < GROWN_BYTES_MIN) return;
  Bun.gc(usage.heapTotal <= OBJECT_BYTES_MAX && usage.heapUsed <= RETURNED_BYTES_MAX);
  leastBytes = memoryUsage().heapUsed;
}

/** Whether a collection is already scheduled. Statements that end in the same tick share it. */
let isCollectionDue = false;

/**
 * Schedules a collection after a large statement has ended. The statement's data becomes garbage
 * one tick later, when no running code refers to it any longer. Without this collection, a refused
 * change to a million rows left 230 MB in typed arrays, which still existed when the next
 * statement took up as much again.
 */
export function collectAfterTurn(clock: Clock): void {
  if (isCollectionDue) return;
  isCollectionDue = true;
  void clock.yield().then(collectDue);
}

function collectDue(): void {
  isCollectionDue = false;
  collectSoon();
}

/**
 * How long a thread must have been idle, in milliseconds, before a collection is expected not to
 * delay any client.
 */
const IDLE_MS = 1000;

/**
 * Collects the garbage of an idle thread. The collector only runs when more memory is allocated,
 * so an idle thread would otherwise keep the garbage from its last job.
 */
export class IdleCollection {
  readonly #clock: Clock;
  readonly #collect: () => void;
  #workedAtMs = 0;
  #isTimed = false;

  /**
   * Creates a collector for one thread. It waits until the thread is idle.
   * @param collect Collects the garbage; replaced in tests.
   */
  constructor(clock: Clock, collect: () => void = collectAll) {
    this.#clock = clock;
    this.#collect = collect;
  }

  /** Must be called whenever the thread has finished some work. */
  noteWork(): void {
    this.#workedAtMs = this.#clock.monotonicMs();
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#lookAfter(IDLE_MS);
  }

  #lookAfter(ms: number): void {
    this.#clock.after(ms, () => {
      const idleMs = this.#clock.monotonicMs() - this.#workedAtMs;
      if (idleMs < IDLE_MS) {
        this.#lookAfter(IDLE_MS - idleMs);
        return;
      }
      this.#isTimed = false;
      this.#collect();
    });
  }
}

/**
 * The smallest total size of this thread's typed arrays since `collectArrays` last collected
 * garbage.
 */
let leastArrayBytes = 0;

/**
 * Collects garbage if this thread's typed arrays have grown by at least the given number of bytes.
 * Must be called only while no client is waiting for the thread. An array that the event loop
 * shares with this thread stays in memory until both have collected it.
 */
export function collectArrays(grownBytes: number): void {
  // The arrays are measured directly, because the reported heap size lags behind their actual
  // size.
  const bytes = arrayBytes();
  leastArrayBytes = Math.min(leastArrayBytes, bytes);
  if (bytes - leastArrayBytes < grownBytes) return;
  collectAll();
  leastArrayBytes = arrayBytes();
}

/** Collects all garbage of this thread, and returns all freed memory to the system. */
export function collectAll(): void {
  Bun.gc(true);
}
