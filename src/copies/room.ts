/**
 * Room for a copy, asked before its first byte: who fills the disk that a server writes on stops
 * its writers, so what that server keeps free stays free.
 */
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";

export interface RoomRequest {
  /** What it is for, behind "Cannot". */
  readonly action: string;
  readonly bytes: number;
  /** What stays free besides. */
  readonly minFreeBytes: number;
}

/** @param path Where the bytes go. @throws {DatabaseError} DISK_FULL */
export function requireRoom(
  disk: Disk,
  path: string,
  { action, bytes, minFreeBytes }: RoomRequest,
): void {
  const freeBytes = disk.freeBytes(path);
  if (freeBytes >= bytes + minFreeBytes) return;
  const reserve = minFreeBytes === 0 ? "" : `, ${minFreeBytes} must stay free`;
  throw new DatabaseError(
    "DISK_FULL",
    `Cannot ${action}: it needs ${bytes} bytes${reserve}, and ${freeBytes} are free`,
  );
}
