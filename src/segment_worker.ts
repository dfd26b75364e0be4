/** The entry point of the threads that write segments. */
import { serveSegmentJobs } from "./threads/mod.ts";

serveSegmentJobs(async () => {
  await import("./sql/mod.ts");
});
