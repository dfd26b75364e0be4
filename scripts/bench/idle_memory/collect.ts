/**
 * A module that is preloaded into the server being measured. On SIGUSR2, it collects the server's
 * garbage, so that only live objects are measured, and prints the number of objects of each kind.
 */
import { heapStats } from "bun:jsc";

process.on("SIGUSR2", () => {
  Bun.gc(true);
  const { heapSize, objectTypeCounts } = heapStats();
  process.stdout.write(`collected ${JSON.stringify({ heapSize, objectTypeCounts })}\n`);
});
