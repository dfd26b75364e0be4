/**
 * Issues the ids that SNOWFLAKE_ID() returns. These ids are laid out like a seq but come from a
 * separate generator, so they never advance the seqs of commits. They run as far ahead of the
 * clock as seqs do, so the time of an id is computed the same way.
 *
 * A small file, synced in place, reserves the ids of the next few seconds. The file is written
 * about once in that period, and only while ids are requested. After a restart, ids continue above
 * the reservation, so no id is issued twice, whether or not the row that used it was committed.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import { type Seq, SeqGenerator, seqFromUnixMs } from "../base/seq.ts";
import type { SeqTimes } from "../base/seq_times.ts";
import { diskFull } from "./directory/space.ts";
import type { HighWaterFile } from "./local_wal/high_water.ts";

/** The number of ids reserved at a time, which is enough for five seconds. */
const RESERVED_IDS: number = 5000 * 4096;

/**
 * Returns the highest id that can have been issued before a given time, provided that ids did not
 * run ahead of the clock.
 */
export function reservationAt(unixMs: number): number {
  return seqFromUnixMs(unixMs) + RESERVED_IDS;
}

export interface SnowflakeIdsOptions {
  readonly clock: Clock;
  readonly nodeId: number;
  readonly nodeBits: number;
  readonly file: HighWaterFile;
  /** The highest id that may have been issued. New ids are above it. */
  readonly last: Seq;
  /** Provides how far seqs are ahead of the clock. */
  readonly times: Pick<SeqTimes, "aheadMs">;
}

export class SnowflakeIds {
  readonly #clock: Clock;
  readonly #file: HighWaterFile;
  readonly #generator: SeqGenerator;
  readonly #last: Seq;
  readonly #times: SnowflakeIdsOptions["times"];
  #reservedUpTo = 0;

  constructor({ clock, nodeId, nodeBits, file, last, times }: SnowflakeIdsOptions) {
    this.#clock = clock;
    this.#file = file;
    this.#last = last;
    this.#times = times;
    this.#generator = new SeqGenerator({ clock, nodeId, nodeBits, last });
  }

  /** The highest reserved id. No process has issued a higher id so far. */
  get reservedUpTo(): number {
    return Math.max(this.#reservedUpTo, this.#last);
  }

  /**
   * Issues an id.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE if ids cannot be reserved.
   */
  next(): number {
    const id = this.#generator.next(this.#clock.nowMs() + this.#times.aheadMs);
    if (id > this.#reservedUpTo) this.#reserve(id);
    return id;
  }

  close(): void {
    this.#file.close();
  }

  #reserve(id: number): void {
    const wanted = Math.max(id + RESERVED_IDS, reservationAt(this.#clock.nowMs()));
    const upTo = Math.min(wanted, Number.MAX_SAFE_INTEGER);
    try {
      this.#file.write(upTo);
      this.#file.syncNow();
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      if (error.code === "ENOSPC") throw diskFull(error);
      throw new DatabaseError(
        "STORAGE_UNAVAILABLE",
        `Cannot reserve ids in ${error.path}: the disk failed with ${error.code}`,
        { hint: "check the disk; the server tries again when it needs the next id", cause: error },
      );
    }
    this.#reservedUpTo = upTo;
  }
}
