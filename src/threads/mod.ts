/**
 * Exports the threads that write segments, and helpers for cancelling the work of any thread and
 * reporting its failures.
 */
export { type MessageThread, startThread, type ThreadEvents } from "./message_thread.ts";
export { serveSegmentJobs } from "./segment_jobs.ts";
export { type SegmentThreadOptions, SegmentThreads } from "./segment_threads.ts";
export { type CancelFlag, isRaised, watchedFlag } from "./thread_cancel.ts";
export { errorFromFailure, failureFrom, type ThreadFailure } from "./thread_failure.ts";
