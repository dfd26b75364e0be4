/**
 * When to collect garbage: an operator that has just moved what it held to disk knows that most of
 * the heap is dead, which the collector would find out only once the heap has doubled. A sort of
 * 5 M rows within 64 MiB takes 85 MB of memory with this, and 270 without.
 */
import type { Clock } from "./clock.ts";

/** Of a heap as small as this a collection takes some 15 ms, which nobody notices. */
const HEAP_BYTES_MAX = 96 * 2 ** 20;

/** Says that much was let go. Of a large heap the collector is only asked to begin beside the work. */
export function collectSoon(): void {
  Bun.gc(process.memoryUsage().heapUsed <= HEAP_BYTES_MAX);
}

/**
 * The same without what lies in typed arrays, which a collection does not walk through, and with
 * that, which goes back to the system at once: 25 ms at most, where giving 1.5 GB back took 200.
 */
const OBJECT_BYTES_MAX = 64 * 2 ** 20;
const RETURNED_BYTES_MAX = 256 * 2 ** 20;

/**
 * Says that a large statement has ended: what it held is garbage a turn later, when nothing under
 * way names it any more. A change of a million rows that was refused left 230 MB in typed arrays,
 * which were still there when the next statement took as much again.
 */
export function collectAfterTurn(clock: Clock): void {
  void clock.yield().then(collectNow);
}

function collectNow(): void {
  const { heapTotal, heapUsed } = process.memoryUsage();
  Bun.gc(heapTotal <= OBJECT_BYTES_MAX && heapUsed <= RETURNED_BYTES_MAX);
}
