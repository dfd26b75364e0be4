/**
 * The entry point of the thread that `restore_thread.ts` starts. It rolls a copy of a backup
 * forward to a later point in time. It handles a single request, reports progress, and sends the
 * outcome.
 */
import { bunDisk } from "../base/bun_disk.ts";
import { systemClock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import type { BackupList, DataPaths } from "../storage/files.ts";
import { type CancelFlag, failureFrom, isRaised, type ThreadFailure } from "../threads/mod.ts";
import { bringTo } from "./restore_point.ts";
import type { PointRequest } from "./restore_sources.ts";

export interface PointMessage {
  readonly request: PointRequest;
  readonly pending: DataPaths;
  readonly list: BackupList;
  readonly cancelled: CancelFlag;
}

export type PointAnswer =
  | { readonly kind: "copied"; readonly copied: number; readonly total: number }
  | { readonly kind: "step"; readonly what: string }
  | { readonly kind: "missing"; readonly paths: readonly string[] }
  | { readonly kind: "done"; readonly list: BackupList }
  | { readonly kind: "failed"; readonly failure: ThreadFailure };

declare const self: Worker;

self.addEventListener("message", ({ data }: MessageEvent<PointMessage>) => {
  void bring(data);
});

async function bring({ cancelled, pending, list, request }: PointMessage): Promise<void> {
  const listener = {
    isCancelled: () => isRaised(cancelled),
    onCopied: (copied: number, total: number) => tell({ kind: "copied", copied, total }),
    onStep: (what: string) => tell({ kind: "step", what }),
    onMissing: (paths: readonly string[]) => tell({ kind: "missing", paths }),
  };
  const parts = { disk: bunDisk, clock: systemClock, random: systemRandom, listener };
  try {
    tell({ kind: "done", list: await bringTo({ ...request, ...parts }, pending, list) });
  } catch (error) {
    tell({ kind: "failed", failure: failureFrom(error) });
  }
}

function tell(answer: PointAnswer): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  self.postMessage(answer);
}
