/**
 * Work in threads of its own: those that write segments, and what any thread needs to be told to
 * stop and to say why it failed.
 */
export { type MessageThread, startThread, type ThreadEvents } from "./message_thread.ts";
export { SegmentThreads } from "./segment_threads.ts";
export { type CancelFlag, isRaised, watchedFlag } from "./thread_cancel.ts";
export { errorFromFailure, failureFrom, type ThreadFailure } from "./thread_failure.ts";
