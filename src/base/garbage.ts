/**
 * Decides when to collect garbage. An operator that has just moved its data to disk knows that most
 * of the heap is dead, which the collector would notice only once the heap has doubled. A sort of 5
 * M rows within 64 MiB takes 85 MB of memory with such collections, and 270 MB without.
 *
 * The moved data may be small, though, for example one of thousands of small partitions, whereas a
 * collection scans the whole heap. There is therefore no collection until the heap has grown enough
 * to justify it: with a collection per partition, a DISTINCT of 12,000 rows within 1 MiB spent nine
 * tenths of its time on collections. The same applies to the garbage of large statements, of which
 * a client may send any number.
 */
import type { Clock } from "./clock.ts";
import { arrayBytes, memoryUsage } from "./memory_usage.ts";

/**
 * The size of the heap up to which a collection runs at once. Collecting this many bytes of objects
 * takes about 20 ms, which is not noticeable. A collection does not scan typed arrays, but returns
 * them to the system immediately, which takes at most 25 ms for this many bytes; returning 1.5 GB
 * took 200 ms.
 */
const OBJECT_BYTES_MAX = 96 * 2 ** 20;
const RETURNED_BYTES_MAX = 256 * 2 ** 20;

/** The growth of the heap since the last collection that justifies a new collection. */
const GROWN_BYTES_MIN = 8 * 2 ** 20;

/** The minimum size of the heap since the last collection. */
let leastBytes = 0;

/**
 * Records that much memory was released. If the heap has many objects, the collector is only asked
 * to start in parallel with the program.
 */
export function collectSoon(): void {
  const usage = memoryUsage();
  // The collector may also have run by itself in the meantime.
  leastBytes = Math.min(leastBytes, usage.heapUsed);
  if (usage.heapUsed - leastBytes < GROWN_BYTES_MIN) return;
  Bun.gc(usage.heapTotal <= OBJECT_BYTES_MAX && usage.heapUsed <= RETURNED_BYTES_MAX);
  leastBytes = memoryUsage().heapUsed;
}

/** Statements that end in one tick share a collection. */
let isCollectionDue = false;

/**
 * Records that a large statement has ended. The statement's data is garbage a tick later, once no
 * running code refers to it. A refused change of a million rows left 230 MB in typed arrays, which
 * still existed when the next statement took the same amount.
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

/** The time without work after which a collection delays no client. */
const IDLE_MS = 1000;

/**
 * Collects the garbage of an idle thread. The collector runs only when more memory is allocated, so
 * a thread without work keeps the garbage of its last job.
 */
export class IdleCollection {
  readonly #clock: Clock;
  readonly #collect: () => void;
  #workedAtMs = 0;
  #isTimed = false;

  /** @param collect Replaces the collector. */
  constructor(clock: Clock, collect: () => void = collectAll) {
    this.#clock = clock;
    this.#collect = collect;
  }

  /** Records that the thread has worked. */
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

/** The minimum size of this thread's arrays since `collectArrays` last collected. */
let leastArrayBytes = 0;

/**
 * Collects once a thread's arrays have grown by this many bytes, if no client waits for the thread.
 * An array that the event loop has shared stays in memory until both threads have collected it.
 */
export function collectArrays(grownBytes: number): void {
  // The reported size of the whole heap lags behind the size of the arrays.
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
