/**
 * Counts the open file descriptors of this process and reads their limit, from Linux's `/proc`.
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
 * Creates a function that reads the current count of descriptors; undefined if the system does not
 * report descriptors or sets no limit. The limit is read at once, while a descriptor is free for
 * reading it.
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
    // One of the entries is the descriptor that lists the directory.
    return disk.list(OPEN).length - 1;
  } catch (error) {
    // Safe: counting itself needs a descriptor, so a failure means that none is left.
    if (error instanceof DiskError && hasNoDescriptor(error.code)) return max;
    throw error;
  }
}
