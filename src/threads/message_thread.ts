/**
 * One thread that is spoken to by messages, and which fails by an event instead of an exception.
 */
import { hasRoomForThread } from "../base/bun_disk.ts";

export interface MessageThread<ToThread> {
  /** @param moved What the thread has from then on, and nobody here. */
  post(message: ToThread, moved?: readonly Bun.Transferable[]): void;
  /** Ends the thread at once, whatever it does. */
  close(): void;
}

export interface ThreadEvents<FromThread> {
  readonly onMessage: (message: FromThread) => void;
  /** The thread has ended, or has met an error that it did not expect. Called once. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Starts a thread.
 *
 * @returns undefined if the process may open no more files, which a thread needs, or start no more
 * threads.
 */
export function startThread<ToThread, FromThread>(
  entry: URL,
  { onFailure, onMessage }: ThreadEvents<FromThread>,
): MessageThread<ToThread> | undefined {
  const worker = hasRoomForThread() ? newWorker(entry) : undefined;
  if (worker === undefined) return undefined;
  let isOpen = true;
  const close = (): void => {
    isOpen = false;
    worker.terminate();
  };
  const fail = (reason: string): void => {
    if (!isOpen) return;
    // An error may leave it running.
    close();
    onFailure(reason);
  };
  worker.addEventListener("message", (event: MessageEvent<FromThread>) => {
    if (isOpen) onMessage(event.data);
  });
  worker.addEventListener("error", ({ message: reason }) => fail(reason));
  worker.addEventListener("messageerror", () => fail("a message could not be read"));
  worker.addEventListener("close", () => fail("it ended"));
  worker.unref();
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    post: (message, moved = []) => worker.postMessage(message, [...moved]),
    close,
  };
}

/** Returns undefined if the system refuses another thread. */
function newWorker(entry: URL): Worker | undefined {
  try {
    return new Worker(entry.href);
  } catch (error) {
    // Whoever asks goes on without it: there are limits of threads as of files.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
