/**
 * Ids for SNOWFLAKE_ID(): the layout of a seq, from a generator of its own, so that they never move
 * the commit clock. They run ahead of the clock by the same distance as seqs, so the time of an id
 * is found as that of a seq is.
 *
 * Ids are reserved a few seconds ahead in a small file that is synced in place, about once in so
 * many seconds in which ids are asked for. A restart goes on above the reservation, so no id is
 * handed out twice, whether the row that took it was committed or not.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import { type Seq, SeqGenerator, seqFromUnixMs } from "../base/seq.ts";
import type { SeqTimes } from "../base/seq_times.ts";
import { diskFull } from "./directory/space.ts";
import type { HighWaterFile } from "./local_wal/high_water.ts";

/** Ids of five seconds. */
const RESERVED_IDS: number = 5000 * 4096;

/** No id above this was handed out up to a time, unless ids ran ahead of the clock. */
export function reservationAt(unixMs: number): number {
  return seqFromUnixMs(unixMs) + RESERVED_IDS;
}

export interface SnowflakeIdsOptions {
  readonly clock: Clock;
  readonly nodeId: number;
  readonly nodeBits: number;
  readonly file: HighWaterFile;
  /** No id up to here may be handed out again. */
  readonly last: Seq;
  /** Tells how far seqs are ahead of the clock. */
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

  /** No id above this was handed out, by this process or one before it. */
  get reservedUpTo(): number {
    return Math.max(this.#reservedUpTo, this.#last);
  }

  /** @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE if ids cannot be reserved. */
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
        `Cannot reserve ids in ${error.path}: the disk failed by ${error.code}`,
        { hint: "see to the disk; the next id tries again", cause: error },
      );
    }
    this.#reservedUpTo = upTo;
  }
}
