/**
 * Preloaded into the server that is measured: on SIGUSR2 it collects its garbage, so that what is
 * measured is what is held, and says how many objects of which kind there are.
 */
import { heapStats } from "bun:jsc";

process.on("SIGUSR2", () => {
  Bun.gc(true);
  const { heapSize, objectTypeCounts } = heapStats();
  process.stdout.write(`collected ${JSON.stringify({ heapSize, objectTypeCounts })}\n`);
});
