/** What the runtime says of its heap, as a test wants it. */

export const MIB: number = 2 ** 20;

/** An answer of `process.memoryUsage`: a heap of so many bytes, all in use. */
export function heapOf(bytes: number): NodeJS.MemoryUsageFn {
  const usage = { rss: 0, heapTotal: bytes, heapUsed: bytes, external: 0, arrayBuffers: 0 };
  return Object.assign(() => usage, { rss: () => 0 });
}
