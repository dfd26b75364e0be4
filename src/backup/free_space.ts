/**
 * Checks the free space before a copy begins. A copy that filled up the disk of a running server
 * would stop all writes, so the space that the server keeps free must remain free.
 */
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";

export interface FreeSpaceRequest {
  /** The action that an error refuses. It follows "Cannot" in the error message. */
  readonly action: string;
  readonly bytes: number;
  /** The number of bytes that must remain free on the disk. */
  readonly minFreeBytes: number;
}

/**
 * Refuses a copy that would not leave enough disk space free.
 * @param path The target of the copy.
 * @throws {DatabaseError} DISK_FULL
 */
export function requireFreeSpace(
  disk: Disk,
  path: string,
  { action, bytes, minFreeBytes }: FreeSpaceRequest,
): void {
  const freeBytes = disk.freeBytes(path);
  if (freeBytes >= bytes + minFreeBytes) return;
  const reserve = minFreeBytes === 0 ? "" : `, and at least ${minFreeBytes} bytes must remain free`;
  throw new DatabaseError(
    "DISK_FULL",
    `Cannot ${action}: this needs ${bytes} bytes${reserve}, but only ${freeBytes} are free`,
  );
}
