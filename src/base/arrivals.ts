/**
 * When to collect garbage while much arrives that will stay for long, made among much that will
 * not, as connections are while their clients log in. Left alone, the collector waits until the
 * heap has doubled; each page of it then holds a few objects that stay, so none goes back to the
 * system, and nobody moves them. Collected every few hundred arrivals, later ones fill the gaps of
 * earlier ones: 5,000 idle subscriptions take 0.5 to 0.8 KB each instead of 2.0.
 *
 * A collection takes about a millisecond for each megabyte, most of it beside the work, so the more
 * the heap holds the more must arrive: an arrival pays for about 25 µs of collecting.
 */

/** How many arrivals are worth a collection of a heap of so many bytes. */
const ARRIVALS_PER_COLLECTION = 500;
const ARRIVALS_HEAP_BYTES = 16 * 2 ** 20;

/** Counts what has come to stay. */
export class Arrivals {
  #count = 0;

  /** One more has come to stay. */
  add(): void {
    this.#count += 1;
    if (this.#count % ARRIVALS_PER_COLLECTION !== 0) return;
    // What lies in typed arrays is not walked through, and not in this figure.
    const heaps = process.memoryUsage().heapTotal / ARRIVALS_HEAP_BYTES;
    if (this.#count < heaps * ARRIVALS_PER_COLLECTION) return;
    this.#count = 0;
    Bun.gc(false);
  }
}
