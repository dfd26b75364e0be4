/**
 * Rolls a copy of a backup forward in a separate thread, so that the server stays responsive. It
 * takes a long time to read, replay and truncate the log, and to compute the checksum of every
 * file.
 */
import { hasDescriptorsForThreads } from "../base/bun_disk.ts";
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import { threadModule } from "../base/sources.ts";
import type { BackupList } from "../storage/files.ts";
import { errorFromFailure, watchedFlag } from "../threads/mod.ts";
import type { PointWork } from "./restore_point.ts";
import type { PointAnswer, PointMessage } from "./restore_worker.ts";

/**
 * Rolls a copy of a backup forward in a separate thread.
 * @throws Any error that the work in the thread throws.
 * @param entry The module that the thread runs: `restore_worker.ts`, or a replacement.
 */
export async function bringInThread(
  clock: Clock,
  { listener, ...work }: PointWork,
  entry: URL = threadModule("restore_worker", import.meta.url),
): Promise<BackupList> {
  if (!hasDescriptorsForThreads(1)) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot restore from ${work.request.source}: the thread that rolls the backup forward ` +
        "cannot open files, because the server has reached its limit on open files",
      { hint: "raise the server's limit on open files, and try again" },
    );
  }
  const ended = Promise.withResolvers<BackupList>();
  const thread = new Worker(entry.href);
  thread.addEventListener("message", ({ data }: MessageEvent<PointAnswer>) => {
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
        ended.reject(errorFromFailure(data.failure));
    }
  });
  const fail = (reason: string): void => {
    ended.reject(
      new DatabaseError(
        "STORAGE_UNAVAILABLE",
        `Cannot restore from ${work.request.source}: the thread that rolls the backup forward ` +
          `failed: ${reason}`,
        {
          hint: "try again, or stop the server and run `tidemark restore`",
        },
      ),
    );
  };
  thread.addEventListener("error", ({ message }) => fail(message));
  thread.addEventListener("close", () => fail("it ended"));
  const cancel = watchedFlag(clock, () => listener.isCancelled());
  const message: PointMessage = { ...work, cancelled: cancel.flag };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  thread.postMessage(message);
  try {
    return await ended.promise;
  } finally {
    cancel.stop();
    thread.terminate();
  }
}
