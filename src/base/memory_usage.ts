/**
 * Reads the memory use that the runtime reports for this process, even while no file descriptor is
 * free.
 *
 * The runtime opens a file in order to determine the resident memory. If no descriptor is free, it
 * throws an error without a code. In that case, the previous figures are the best available.
 */

/**
 * The total size of the mapped files that the runtime counts as typed arrays of this thread, in
 * bytes. Mapped files consist of file pages, which the system reclaims by itself. The runtime
 * counts a mapped file until its array has been collected, even if the file was unmapped before,
 * and this figure does the same.
 */
let mappedBytes = 0;

const collected = new FinalizationRegistry<number>((bytes) => {
  mappedBytes -= bytes;
});

/** Counts the size of a mapped file until its array has been collected. */
export function countMapped(array: Uint8Array): void {
  const bytes = array.byteLength;
  mappedBytes += bytes;
  collected.register(array, bytes);
}

let last: NodeJS.MemoryUsage = process.memoryUsage();

/** Returns the memory use of the process, in the form of `process.memoryUsage()`. */
export function memoryUsage(): NodeJS.MemoryUsage {
  last = readOr(() => process.memoryUsage(), last);
  return last;
}

/**
 * Returns the size of this thread's typed arrays and strings in bytes, excluding objects and
 * mapped files.
 */
export function arrayBytes(): number {
  return Math.max(0, memoryUsage().external - mappedBytes);
}

/** Returns the resident memory of the process in bytes, including file pages. */
export function residentBytes(): number {
  return readOr(() => process.memoryUsage.rss(), last.rss);
}

function readOr<T>(read: () => T, known: T): T {
  try {
    return read();
  } catch (error) {
    // The previous figure stays in use. It is merely out of date until a descriptor is free again.
    if (!(error instanceof Error) || error.name !== "SystemError") throw error;
    return known;
  }
}
