/**
 * Preloaded into the server being measured. On SIGUSR2 it collects its garbage, so that only live
 * objects are measured, and prints how many objects of each kind there are.
 */
import { heapStats } from "bun:jsc";

process.on("SIGUSR2", () => {
  Bun.gc(true);
  const { heapSize, objectTypeCounts } = heapStats();
  process.stdout.write(`collected ${JSON.stringify({ heapSize, objectTypeCounts })}\n`);
});
