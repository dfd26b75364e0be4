/**
 * Reads this process's number of open file descriptors, and its limit, from Linux's `/proc`.
 */
import type { Disk } from "./disk.ts";
import { DiskError, hasNoDescriptor } from "./errors.ts";

const OPEN = "/proc/self/fd";
const LIMITS = "/proc/self/limits";

export interface Descriptors {
  readonly open: number;
  readonly max: number;
}

/**
 * Creates a function that counts the open descriptors; undefined if the system does not report
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
    // One of the entries is the descriptor used to list the directory.
    return disk.list(OPEN).length - 1;
  } catch (error) {
    // Returning 0 is safe: counting requires a descriptor, so this failure means that none is
    // free.
    if (error instanceof DiskError && hasNoDescriptor(error.code)) return max;
    throw error;
  }
}
