/**
 * Decides when to collect garbage while long-lived objects arrive among many short-lived ones, for
 * example while many clients connect and log in. Left to itself, the collector waits until the
 * heap has doubled. By then, each page of the heap contains a few long-lived objects. Objects are
 * never moved, so no page can be returned to the system. With a collection every few hundred
 * arrivals, later objects fill the gaps between earlier ones: 5,000 idle subscriptions take 0.5 to
 * 0.8 KB each instead of 2.0.
 *
 * A collection takes about a millisecond per megabyte, mostly in parallel with the program. The
 * larger the heap, the more arrivals it takes to trigger a collection: each arrival accounts for
 * about 25 µs of collection.
 */
import { memoryUsage } from "./memory_usage.ts";

/** The number of arrivals after which a heap of ARRIVALS_HEAP_BYTES is collected. */
const ARRIVALS_PER_COLLECTION = 500;
const ARRIVALS_HEAP_BYTES = 16 * 2 ** 20;

/** Counts arrivals of long-lived objects, and collects garbage when enough have arrived. */
export class Arrivals {
  #count = 0;
  /** The number of arrivals since the heap size was last read. */
  #newCount = 0;

  /**
   * Counts an arrival, and collects garbage if a collection is due.
   *
   * @param weight The amount of garbage that the arrival leaves. A login counts as 1.
   */
  add(weight: number): void {
    this.#count += weight;
    this.#newCount += weight;
    if (this.#newCount < ARRIVALS_PER_COLLECTION) return;
    this.#newCount = 0;
    // `heapTotal` does not include the contents of typed arrays, which the collector does not
    // scan.
    const heaps = memoryUsage().heapTotal / ARRIVALS_HEAP_BYTES;
    if (this.#count < heaps * ARRIVALS_PER_COLLECTION) return;
    this.#count = 0;
    Bun.gc(false);
  }
}
