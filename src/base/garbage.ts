/**
 * When to collect garbage: an operator that has just moved what it held to disk knows that most of
 * the heap is dead, which the collector would find out only once the heap has doubled. A sort of
 * 5 M rows within 64 MiB takes 85 MB of memory with this, and 270 without.
 *
 * What was moved may be little, though, as one of thousands of small partitions is, and a collection
 * walks through the whole heap. So there is none before the heap has grown by what is worth it:
 * with one for each partition, a DISTINCT of 12,000 rows within 1 MiB spent nine tenths of its time
 * here.
 */

/** Of a heap as small as this a collection takes some 15 ms, which nobody notices. */
const HEAP_BYTES_MAX = 96 * 2 ** 20;

/** What the heap must have grown by since it was last collected here. */
const GROWN_BYTES_MIN = 8 * 2 ** 20;

/** Bytes of the heap after the last collection, as far as it was seen. */
let leastBytes = 0;

/** Says that much was let go. Of a large heap the collector is only asked to begin beside the work. */
export function collectSoon(): void {
  const { heapUsed } = process.memoryUsage();
  // The collector has its own turns, too.
  leastBytes = Math.min(leastBytes, heapUsed);
  if (heapUsed - leastBytes < GROWN_BYTES_MIN) return;
  Bun.gc(heapUsed <= HEAP_BYTES_MAX);
  leastBytes = process.memoryUsage().heapUsed;
}
