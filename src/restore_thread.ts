/**
 * Brings a copy of a backup to a later moment in a thread of its own, so that a server goes on
 * answering: the log is read, replayed and cut there, and every file is read for its checksum.
 */
import type { CancelTimer, Clock } from "./base/clock.ts";
import type { StageListener } from "./restore.ts";
import type { PointRequest } from "./restore_point.ts";
import type { AdvanceAnswer, AdvanceMessage } from "./restore_worker.ts";
import type { BackupList, DataPaths } from "./storage/mod.ts";
import { errorOf } from "./thread_failure.ts";

/** How often it is asked whether the work should go on. */
const CANCEL_CHECK_MS = 50;

/**
 * @throws What the work in the thread threw.
 * @param entry What the thread runs: `restore_worker.ts`, or a stand-in.
 */
export async function advanceInThread(
  clock: Clock,
  work: { request: PointRequest; draft: DataPaths; list: BackupList; listener: StageListener },
  entry: URL = new URL("./restore_worker.ts", import.meta.url),
): Promise<BackupList> {
  const { listener, ...rest } = work;
  const cancelled = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const ended = Promise.withResolvers<BackupList>();
  const thread = new Worker(entry.href);
  thread.addEventListener("message", ({ data }: MessageEvent<AdvanceAnswer>) => {
    switch (data.kind) {
      case "copied":
        listener.onCopied(data.copied, data.total);
        break;
      case "step":
        listener.onStep(data.what);
        break;
      case "missing":
        listener.onMissing(data.paths);
        break;
      case "done":
        ended.resolve(data.list);
        break;
      case "failed":
        ended.reject(errorOf(data.failure));
    }
  });
  const fail = (reason: string): void => {
    ended.reject(errorOf({ kind: "refusal", ...refusal(work.request, reason) }));
  };
  thread.addEventListener("error", ({ message }) => fail(message));
  thread.addEventListener("close", () => fail("it ended"));
  let stopWatching: CancelTimer | undefined;
  const look = (): void => {
    if (listener.isCancelled()) Atomics.store(cancelled, 0, 1);
    stopWatching = clock.after(CANCEL_CHECK_MS, look);
  };
  look();
  const message: AdvanceMessage = { ...rest, cancelled };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
  thread.postMessage(message);
  try {
    return await ended.promise;
  } finally {
    stopWatching?.();
    thread.terminate();
  }
}

function refusal(
  { source }: PointRequest,
  reason: string,
): { condition: "STORAGE_UNAVAILABLE"; text: string; hint: undefined } {
  const text = `Cannot restore from ${source}: the thread that does it failed: ${reason}`;
  return { condition: "STORAGE_UNAVAILABLE", text, hint: undefined };
}
