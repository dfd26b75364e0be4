/**
 * Runs a thread that communicates through messages. Its failures are reported through an event
 * rather than an exception.
 */
import { hasDescriptorsForThreads } from "../base/bun_disk.ts";

export interface MessageThread<ToThread> {
  /**
   * Sends a message to the thread.
   * @param moved Objects to transfer to the thread. The sender can no longer use them.
   */
  post(message: ToThread, moved?: readonly Bun.Transferable[]): void;
  /** Ends the thread immediately, even in the middle of its work. */
  close(): void;
}

export interface ThreadEvents<FromThread> {
  readonly onMessage: (message: FromThread) => void;
  /** Called once, when the thread has ended or has hit an unexpected error. */
  readonly onFailure: (reason: string) => void;
}

/** The number of threads that have been created but have not yet opened their descriptors. */
let startingCount = 0;

/**
 * Starts a thread.
 *
 * @returns undefined if the process cannot open the files that a thread needs, or cannot start
 *   another thread.
 */
export function startThread<ToThread, FromThread>(
  entry: URL,
  { onFailure, onMessage }: ThreadEvents<FromThread>,
): MessageThread<ToThread> | undefined {
  const worker = hasDescriptorsForThreads(startingCount + 1) ? newWorker(entry) : undefined;
  if (worker === undefined) return undefined;
  let isOpen = true;
  let isStarting = true;
  startingCount += 1;
  const noteStarted = (): void => {
    if (isStarting) startingCount -= 1;
    isStarting = false;
  };
  const close = (): void => {
    isOpen = false;
    worker.terminate();
  };
  const fail = (reason: string): void => {
    if (!isOpen) return;
    // Stops the thread, which may still be running after it has reported an error.
    close();
    onFailure(reason);
  };
  worker.addEventListener("message", (event: MessageEvent<FromThread>) => {
    if (isOpen) onMessage(event.data);
  });
  worker.addEventListener("open", noteStarted);
  worker.addEventListener("error", ({ message: reason }) => fail(reason));
  worker.addEventListener("messageerror", () => fail("a message could not be read"));
  worker.addEventListener("close", () => {
    noteStarted();
    fail("it ended");
  });
  worker.unref();
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    post: (message, moved = []) => worker.postMessage(message, [...moved]),
    close,
  };
}

/** Creates a worker; undefined if the system refuses another thread. */
function newWorker(entry: URL): Worker | undefined {
  try {
    return new Worker(entry.href);
  } catch (error) {
    // The system limits the number of threads and files. The caller continues without this thread.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
