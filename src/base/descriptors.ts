/**
 * How many files and sockets this process has open, of those that it may have: Linux says it.
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
 * What a process of this limit looks at its descriptors with; undefined where the system does not
 * say, or sets no limit. The limit is looked up now, when there are descriptors to look with.
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
    // One of them is that of the list itself.
    return disk.list(OPEN).length - 1;
  } catch (error) {
    // Safe: it takes a descriptor to count them, so that none is left is known as well.
    if (error instanceof DiskError && hasNoDescriptor(error.code)) return max;
    throw error;
  }
}
