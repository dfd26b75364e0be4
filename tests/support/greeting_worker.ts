/** A thread that only reports that it has started. */
declare const self: Worker;

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
self.postMessage("started");
