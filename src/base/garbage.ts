/**
 * When to collect garbage: an operator that has just moved what it held to disk knows that most of
 * the heap is dead, which the collector would find out only once the heap has doubled. A sort of
 * 5 M rows within 64 MiB takes 85 MB of memory with this, and 270 without.
 *
 * What was moved may be little, though, as one of thousands of small partitions is, and a
 * collection walks through the whole heap. So there is none before the heap has grown by what is
 * worth it: with one for each partition, a DISTINCT of 12,000 rows within 1 MiB spent nine tenths
 * of its time here. The same is true of what large statements leave, of which a client may send any
 * number.
 */
import type { Clock } from "./clock.ts";

/**
 * Of so many objects a collection takes some 20 ms, which nobody notices. It does not walk through
 * what lies in typed arrays, but gives it back to the system at once: 25 ms at most for so much,
 * where giving 1.5 GB back took 200.
 */
const OBJECT_BYTES_MAX = 96 * 2 ** 20;
const RETURNED_BYTES_MAX = 256 * 2 ** 20;

/** What the heap must have grown by since it was last collected here. */
const GROWN_BYTES_MIN = 8 * 2 ** 20;

/** Bytes of the heap after the last collection, as far as it was seen. */
let leastBytes = 0;

/**
 * Says that much was let go. Of a heap of many objects the collector is only asked to begin beside
 * the work.
 */
export function collectSoon(): void {
  const usage = process.memoryUsage();
  // The collector has its own turns, too.
  leastBytes = Math.min(leastBytes, usage.heapUsed);
  if (usage.heapUsed - leastBytes < GROWN_BYTES_MIN) return;
  Bun.gc(usage.heapTotal <= OBJECT_BYTES_MAX && usage.heapUsed <= RETURNED_BYTES_MAX);
  leastBytes = process.memoryUsage().heapUsed;
}

/** Statements that end in one turn share a collection. */
let isCollectionDue = false;

/**
 * Says that a large statement has ended: what it held is garbage a turn later, when nothing under
 * way names it any more. A change of a million rows that was refused left 230 MB in typed arrays,
 * which were still there when the next statement took as much again.
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
