/**
 * Reserves disk space for emergencies with a file of zeros, the ballast. The file is removed when
 * the disk is full, so that the catalog can still be written, and DROP and DELETE can free space.
 *
 *     none ──there is room──► taking ──► held ──disk full──► none
 *                               └──disk full, or closed──► none
 *
 * An abandoned attempt to reserve space ends at its next step. By then, another attempt may have
 * begun, so the abandoned attempt does not touch the state or the file.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

/** The number of zero bytes written at a time. Other work can run between two writes. */
const PIECE_BYTES = 1 << 20;

export interface BallastOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly path: string;
  /** The size of the reserved space in bytes; 0 reserves none. */
  readonly bytes: number;
}

export class Ballast {
  readonly #options: BallastOptions;
  #state: "none" | "taking" | "held";
  /** The number of the latest attempt to allocate the ballast. */
  #attempt = 0;

  constructor(options: BallastOptions) {
    const { bytes, disk, path } = options;
    this.#options = options;
    this.#state = bytes > 0 && disk.sizeOf(path) === bytes ? "held" : "none";
  }

  /** The number of bytes still to be reserved. */
  get missingBytes(): number {
    return this.#state === "none" ? this.#options.bytes : 0;
  }

  /**
   * Reserves the space in steps, so that other work can run in between. If there is not enough
   * free space, nothing is reserved.
   */
  async take(): Promise<void> {
    const { bytes, clock, disk, log, path } = this.#options;
    if (bytes === 0 || this.#state !== "none") return;
    this.#state = "taking";
    this.#attempt += 1;
    const attempt = this.#attempt;
    try {
      const file = disk.open(path, { create: true });
      try {
        const zeros = new Uint8Array(Math.min(PIECE_BYTES, bytes));
        for (let offset = 0; offset < bytes && this.#isTaking(attempt); offset += zeros.length) {
          file.write(zeros.subarray(0, Math.min(zeros.length, bytes - offset)), offset);
          await clock.yield();
        }
        // Once the bytes are on the disk, no other program can take the space.
        if (this.#isTaking(attempt)) await file.sync();
      } finally {
        file.close();
      }
      if (this.#isTaking(attempt)) this.#state = "held";
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: an attempt that has been stopped leaves no file behind.
      if (!this.#isTaking(attempt)) return;
      log.warn("cannot reserve disk space to be freed when the disk is full", {
        path,
        bytes,
        code: error.code,
      });
      this.release();
    }
  }

  /** Frees the reserved space. Returns false if none was reserved. */
  release(): boolean {
    if (this.#state === "none") return false;
    this.#state = "none";
    this.#remove();
    return true;
  }

  /**
   * Stops an attempt to reserve space. Space already reserved stays reserved for the next run of
   * the server.
   */
  close(): void {
    if (this.#state === "taking") this.release();
  }

  /**
   * Whether an attempt to reserve space is still the current attempt. Must be checked again after
   * each await.
   */
  #isTaking(attempt: number): boolean {
    return this.#state === "taking" && this.#attempt === attempt;
  }

  #remove(): void {
    const { disk, log, path } = this.#options;
    try {
      if (disk.exists(path)) disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: the next attempt overwrites the rest of the file.
      log.warn("cannot free the reserved disk space", { path, code: error.code });
    }
  }
}
