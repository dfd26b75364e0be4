/**
 * Room that is kept on the disk for a bad day: a file of zeros that is removed when the disk is
 * full, so that the catalog can still be written and DROP and DELETE can make room.
 *
 *     none ──there is room──► taking ──► held ──disk full──► none
 *                               └──disk full, or closed──► none
 *
 * An attempt that was given up ends at its next step, when another one may have begun: it leaves
 * the state and the file to that one.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

/** Written at a time, between other work. */
const PIECE_BYTES = 1 << 20;

export interface BallastOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly path: string;
  /** 0 keeps no room. */
  readonly bytes: number;
}

export class Ballast {
  readonly #options: BallastOptions;
  #state: "none" | "taking" | "held";
  /** Number of the attempt that was begun last. */
  #attempt = 0;

  constructor(options: BallastOptions) {
    const { bytes, disk, path } = options;
    this.#options = options;
    this.#state = bytes > 0 && disk.sizeOf(path) === bytes ? "held" : "none";
  }

  /** Bytes that it would still have to take. */
  get missingBytes(): number {
    return this.#state === "none" ? this.#options.bytes : 0;
  }

  /** Takes the room, between other work. Where there is not enough it takes none. */
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
        // Only what is on the disk is room that nobody else gets.
        if (this.#isTaking(attempt)) await file.sync();
      } finally {
        file.close();
      }
      if (this.#isTaking(attempt)) this.#state = "held";
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: of one that was given up nothing is left.
      if (!this.#isTaking(attempt)) return;
      log.warn("cannot keep room for a full disk", { path, bytes, code: error.code });
      this.release();
    }
  }

  /** Gives the room back. Returns whether there was any. */
  release(): boolean {
    if (this.#state === "none") return false;
    this.#state = "none";
    this.#remove();
    return true;
  }

  /** Stops taking; what is held stays for the next start. */
  close(): void {
    if (this.#state === "taking") this.release();
  }

  /** Asked anew after each wait. */
  #isTaking(attempt: number): boolean {
    return this.#state === "taking" && this.#attempt === attempt;
  }

  #remove(): void {
    const { disk, log, path } = this.#options;
    try {
      if (disk.exists(path)) disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: who takes the room again writes into what is left of it.
      log.warn("cannot give back the room for a full disk", { path, code: error.code });
    }
  }
}
