/** Counts this process's open file descriptors, and reads their limit, from Linux's `/proc`. */
import type { Disk } from "./disk.ts";
import { DiskError, hasNoDescriptor } from "./errors.ts";

const OPEN = "/proc/self/fd";
const LIMITS = "/proc/self/limits";

export interface Descriptors {
  readonly open: number;
  readonly max: number;
}

/**
 * Returns a function that counts the open descriptors; undefined if the system does not report
 * them or sets no limit. The limit is read immediately, because reading it requires a free
 * descriptor.
 */
export function descriptorGauge(
  disk: Pick<Disk, "exists" | "list" | "readFile">,
): (() => Descriptors) | undefined {
  if (!disk.exists(OPEN) || !disk.exists(LIMITS)) return undefined;
  const text = new TextDecoder().decode(disk.readFile(LIMITS));
  const max = Number(/^Max open files\s+(\d+)/m.exec(text)?.[1]);
  if (!Number.isFinite(max)) return undefined;
  return () => ({ open: openCount(disk, max), max });
}

function openCount(disk: Pick<Disk, "list">, max: number): number {
  try {
    // The count includes the descriptor with which the directory is listed.
    return disk.list(OPEN).length - 1;
  } catch (error) {
    // Counting requires a descriptor. If it fails, no descriptor is free, so the limit has been
    // reached.
    if (error instanceof DiskError && hasNoDescriptor(error.code)) return max;
    throw error;
  }
}
