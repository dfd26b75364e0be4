/**
 * Decides whether there is enough free space for writes. If free space falls below the reserve, or
 * the disk has reported that it is full, only deletes and drops are accepted until there is enough
 * space again. The ballast, a file that reserves space, is freed at that point, and must be
 * reserved again before writes resume. It is reserved only if the minimum free space remains
 * available.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError, DiskError, hasNoDescriptor } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { Ballast } from "./ballast.ts";
import { NO_DESCRIPTOR_HINT } from "./readable.ts";

/**
 * The share of the disk below which free space causes a warning. The warning is repeated only
 * after `AMPLE_SHARE` was free in the meantime.
 */
const SCARCE_SHARE = 0.1;
const AMPLE_SHARE = 0.12;

/**
 * The number of commits between two checks of free space. A check costs about as much as a commit.
 */
const COMMITS_PER_LOOK = 256;

export interface SpaceOptions {
  readonly disk: Disk;
  readonly path: string;
  /** The minimum free space in bytes, below which the server is read-only. */
  readonly minFreeBytes: number;
  readonly ballast: Ballast;
  readonly clock: Clock;
  readonly log: Log;
}

export class SpaceGuard {
  readonly #options: SpaceOptions;
  #isFull = false;
  /**
   * Whether the disk itself is full, as opposed to merely having less free space than the reserve.
   */
  #isDiskFull = false;
  #commitCount = 0;
  #isScarce = false;
  #isWithoutBallast = false;
  readonly #seldomLog: SeldomLog;

  constructor(options: SpaceOptions) {
    this.#options = options;
    this.#seldomLog = new SeldomLog(options.log, options.clock);
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** The current free space; undefined if the disk does not report it. */
  get freeBytes(): number | undefined {
    const { disk, path } = this.#options;
    try {
      return disk.freeBytes(path);
    } catch (error) {
      // Ignoring the error is safe: displays omit this figure, and writers run their own check.
      if (!(error instanceof DiskError)) throw error;
      return undefined;
    }
  }

  /**
   * Checks that there is enough free space for an operation.
   *
   * @throws {DatabaseError} DISK_FULL while only operations that use the reserve are accepted.
   */
  admit({ usesReserve }: { usesReserve: boolean }): void {
    this.#commitCount += 1;
    if (this.#isFull || this.#commitCount % COMMITS_PER_LOOK === 0) this.tryToLook();
    if (this.#isFull && !usesReserve) throw this.#isDiskFull ? diskFull() : belowReserve();
  }

  /** Checks the free space. Never throws a disk error. */
  tryToLook(): void {
    try {
      this.look();
    } catch (error) {
      // Ignoring the error is safe: the periodic check reports it, and a write that finds no space
      // is refused.
      if (!(error instanceof DiskError)) throw error;
    }
  }

  /**
   * Checks the free space and updates the state. @throws {DiskError} If the disk does not report
   * it.
   */
  look(): void {
    const { ballast, disk, path, minFreeBytes, log } = this.#options;
    const freeBytes = disk.freeBytes(path);
    this.#warnIfScarce(freeBytes);
    const isFull = freeBytes < minFreeBytes + (this.#isFull ? ballast.missingBytes : 0);
    // The ballast must not take space from the reserve, since writes would then stay blocked.
    const hasSpaceForBallast = freeBytes >= minFreeBytes + ballast.missingBytes;
    if (hasSpaceForBallast && ballast.missingBytes > 0) void ballast.take();
    this.#warnWithoutBallast(!isFull && !hasSpaceForBallast);
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (isFull) {
      const what =
        "free disk space is below storage.min_free_bytes, so only deletes and drops are accepted";
      log.error(what, { path, freeBytes, minFreeBytes });
      ballast.release();
    } else {
      this.#isDiskFull = false;
      log.info("the disk has enough free space again", { path, freeBytes });
    }
  }

  #warnWithoutBallast(isWithout: boolean): void {
    const wasWithout = this.#isWithoutBallast;
    this.#isWithoutBallast = isWithout;
    if (!isWithout || wasWithout) return;
    const { log, path } = this.#options;
    const what =
      "there is too little free disk space for storage.ballast_bytes and " +
      "storage.min_free_bytes together; if the disk becomes full, even DROP may be refused";
    log.warn(what, { path });
  }

  #warnIfScarce(freeBytes: number): void {
    const { disk, log, path } = this.#options;
    const totalBytes = disk.totalBytes(path);
    const wasScarce = this.#isScarce;
    this.#isScarce = freeBytes < totalBytes * (wasScarce ? AMPLE_SHARE : SCARCE_SHARE);
    if (!this.#isScarce || wasScarce) return;
    log.warn("less than a tenth of the disk is free", { path, freeBytes, totalBytes });
  }

  /** Called after the log has rejected commits. Returns the error for their writers. */
  noteRefused(cause: unknown): DatabaseError {
    if (cause instanceof DiskError && hasNoDescriptor(cause.code)) {
      const error = cause.message;
      this.#seldomLog.error(
        "the log needs another file, but the server cannot open any more files",
        { error },
      );
      return noFileLeft(cause);
    }
    this.noteFull();
    return diskFull(cause);
  }

  /**
   * Called after the disk has refused a write because it is full. Returns whether the call freed
   * the reserved space.
   */
  noteFull(): boolean {
    const { ballast, log, path } = this.#options;
    if (!this.#isFull) log.error("the disk is full", { path });
    this.#isFull = true;
    this.#isDiskFull = true;
    return ballast.release();
  }
}

function belowReserve(): DatabaseError {
  return new DatabaseError(
    "DISK_FULL",
    "Cannot write: free disk space is below storage.min_free_bytes, so only DELETE and DROP " +
      "are possible until more space is freed",
    { hint: "free up disk space, or lower storage.min_free_bytes" },
  );
}

function noFileLeft(cause: DiskError): DatabaseError {
  return new DatabaseError(
    "STORAGE_UNAVAILABLE",
    "Cannot write: the log needs another file, but the server cannot open any more files",
    { hint: NO_DESCRIPTOR_HINT, cause },
  );
}

export function diskFull(cause?: unknown): DatabaseError {
  return new DatabaseError(
    "DISK_FULL",
    "Cannot write: the disk is full, so only DELETE and DROP are possible until space is freed",
    { hint: "free up disk space", cause },
  );
}
