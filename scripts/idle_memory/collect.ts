/**
 * Preloaded into the server that is measured: on SIGUSR2 it collects its garbage, so that what is
 * measured is what is held, and says how many objects of which kind there are.
 */
import { heapStats } from "bun:jsc";

process.on("SIGUSR2", () => {
  Bun.gc(true);
  const { heapSize, objectTypeCounts, heapCapacity, extraMemorySize } = heapStats();
  process.stderr.write(
    JSON.stringify({ heapSize, heapCapacity, extraMemorySize, rss: process.memoryUsage.rss() }) +
      "\n",
  );
  process.stdout.write(`collected ${JSON.stringify({ heapSize, objectTypeCounts })}\n`);
});
