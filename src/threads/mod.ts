/**
 * Exports the threads that write segments, and helpers for any thread to have its work cancelled
 * and to report its failures.
 */
export { type MessageThread, startThread, type ThreadEvents } from "./message_thread.ts";
export { serveSegmentJobs } from "./segment_jobs.ts";
export { type SegmentThreadOptions, SegmentThreads } from "./segment_threads.ts";
export { type CancelFlag, isRaised, watchedFlag } from "./thread_cancel.ts";
export { errorFromFailure, failureFrom, type ThreadFailure } from "./thread_failure.ts";
