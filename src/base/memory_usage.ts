/**
 * Reads the memory that the runtime reports for this process, even while no file descriptor is
 * free.
 *
 * The runtime opens a file to determine the resident memory. Without a free descriptor it throws an
 * error that has no code, and the last figures are the best available.
 */

/**
 * The bytes of mapped files that the runtime counts among the arrays of this thread. Mapped files
 * are file pages, which the system reclaims by itself. The runtime counts a mapped file until it
 * has collected the array, even after the file was unmapped, and so does this figure.
 */
let mappedBytes = 0;

const collected = new FinalizationRegistry<number>((bytes) => {
  mappedBytes -= bytes;
});

/** Counts a mapped file until its array is collected. */
export function countMapped(array: Uint8Array): void {
  const bytes = array.byteLength;
  mappedBytes += bytes;
  collected.register(array, bytes);
}

let last: NodeJS.MemoryUsage = process.memoryUsage();

/** Returns sizes in bytes, as `process.memoryUsage()` does. */
export function memoryUsage(): NodeJS.MemoryUsage {
  last = readOr(() => process.memoryUsage(), last);
  return last;
}

/** Returns the bytes of this thread's arrays and strings, without objects and mapped files. */
export function arrayBytes(): number {
  return Math.max(0, memoryUsage().external - mappedBytes);
}

/** Returns the resident bytes of the process, including file pages. */
export function residentBytes(): number {
  return readOr(() => process.memoryUsage.rss(), last.rss);
}

function readOr<T>(read: () => T, known: T): T {
  try {
    return read();
  } catch (error) {
    // Safe: the figure is merely out of date until a descriptor is free again.
    if (!(error instanceof Error) || error.name !== "SystemError") throw error;
    return known;
  }
}
