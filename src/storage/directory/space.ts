/**
 * Whether there is room to write: below the reserve, or after the disk said that it is full, only
 * deletes and drops are let in, until there is room again, also for the ballast that is given up
 * meanwhile. The ballast is taken only where the reserve stays free beside it.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError, DiskError, hasNoDescriptor } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { Ballast } from "./ballast.ts";
import { NO_DESCRIPTOR_HINT } from "./readable.ts";

/**
 * The log has a warning when a smaller share of the disk is free, and again after there was more.
 */
const SCARCE_SHARE = 0.1;
const AMPLE_SHARE = 0.12;

/** Commits between two looks at the free space: a look costs about as much as a commit. */
const COMMITS_PER_LOOK = 256;

export interface SpaceOptions {
  readonly disk: Disk;
  readonly path: string;
  /** Below this the server is read-only. */
  readonly minFreeBytes: number;
  readonly ballast: Ballast;
  readonly clock: Clock;
  readonly log: Log;
}

export class SpaceGuard {
  readonly #options: SpaceOptions;
  #isFull = false;
  /** Of what keeps writers out: the disk itself, and not only the reserve. */
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

  /** As the disk says now; undefined when it does not. */
  get freeBytes(): number | undefined {
    const { disk, path } = this.#options;
    try {
      return disk.freeBytes(path);
    } catch (error) {
      // Safe: who shows it leaves it out. Who writes looks for itself.
      if (!(error instanceof DiskError)) throw error;
      return undefined;
    }
  }

  /** @throws {DatabaseError} DISK_FULL where only what uses the reserve is let in. */
  admit({ usesReserve }: { usesReserve: boolean }): void {
    this.#commitCount += 1;
    if (this.#isFull || this.#commitCount % COMMITS_PER_LOOK === 0) this.tryToLook();
    if (this.#isFull && !usesReserve) throw this.#isDiskFull ? diskFull() : belowReserve();
  }

  /** Looks at the free space, for somebody who has other work to do. */
  tryToLook(): void {
    try {
      this.look();
    } catch (error) {
      // Safe: who looks every few seconds tells of it, and a write that finds no room is refused.
      if (!(error instanceof DiskError)) throw error;
    }
  }

  /** Looks at the free space. @throws {DiskError} If the disk does not say. */
  look(): void {
    const { ballast, disk, path, minFreeBytes, log } = this.#options;
    const freeBytes = disk.freeBytes(path);
    this.#warnIfScarce(freeBytes);
    const isFull = freeBytes < minFreeBytes + (this.#isFull ? ballast.missingBytes : 0);
    // Room that the reserve needs is none for the ballast: taking it would keep writers out.
    const hasRoomForBallast = freeBytes >= minFreeBytes + ballast.missingBytes;
    if (hasRoomForBallast && ballast.missingBytes > 0) void ballast.take();
    this.#warnWithoutBallast(!isFull && !hasRoomForBallast);
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (isFull) {
      const what =
        "less is free on the disk than storage.min_free_bytes: read-only but for deletes";
      log.error(what, { path, freeBytes, minFreeBytes });
      ballast.release();
    } else {
      this.#isDiskFull = false;
      log.info("there is room on the disk again", { path, freeBytes });
    }
  }

  #warnWithoutBallast(isWithout: boolean): void {
    const wasWithout = this.#isWithoutBallast;
    this.#isWithoutBallast = isWithout;
    if (!isWithout || wasWithout) return;
    const { log, path } = this.#options;
    const what =
      "too little is free to keep storage.ballast_bytes beside storage.min_free_bytes: should the disk become full, DROP may be refused, too";
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

  /** The log could not take commits. Returns what their writers are told. */
  noteRefused(cause: unknown): DatabaseError {
    if (cause instanceof DiskError && hasNoDescriptor(cause.code)) {
      const error = cause.message;
      this.#seldomLog.error("the log needs another file, and no more can be opened", { error });
      return noFileLeft(cause);
    }
    this.noteFull();
    return diskFull(cause);
  }

  /** The disk refused a write for want of room. Returns whether the ballast made some. */
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
    "Cannot write: less is free on the disk than storage.min_free_bytes, and only DELETE and DROP are possible until there is more",
    { hint: "free some space, or lower storage.min_free_bytes" },
  );
}

function noFileLeft(cause: DiskError): DatabaseError {
  return new DatabaseError(
    "STORAGE_UNAVAILABLE",
    "Cannot write: the log needs another file, and the server may open no more",
    { hint: NO_DESCRIPTOR_HINT, cause },
  );
}

export function diskFull(cause?: unknown): DatabaseError {
  return new DatabaseError(
    "DISK_FULL",
    "Cannot write: the disk is full, and only DELETE and DROP are possible until there is room",
    { hint: "free some space", cause },
  );
}
