/**
 * Ids for SNOWFLAKE_ID(): the layout of a seq, from a generator of its own, so that they never move
 * the commit clock.
 *
 * Ids are reserved in the log a few seconds ahead, and a restart goes on above the reservation. The
 * reservation lies in the log before every commit that could hold one of its ids.
 */
import type { Clock } from "../base/clock.ts";
import { type Seq, SeqGenerator, seqFromUnixMs } from "../base/seq.ts";
import type { CommitLog } from "./commit_log.ts";

/** Ids of five seconds: small beside the hour that a generator may run ahead of the clock. */
const RESERVED_IDS: number = 5000 * 4096;

export interface SnowflakeIdsOptions {
  readonly clock: Clock;
  readonly nodeId: number;
  readonly nodeBits: number;
  readonly log: CommitLog;
  /** No id up to here may be handed out again. */
  readonly last: Seq;
}

export class SnowflakeIds {
  readonly #clock: Clock;
  readonly #log: CommitLog;
  readonly #generator: SeqGenerator;
  #reservedUpTo = 0;

  constructor({ clock, nodeId, nodeBits, log, last }: SnowflakeIdsOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#generator = new SeqGenerator({ clock, nodeId, nodeBits, last });
  }

  get last(): number {
    return this.#generator.last;
  }

  next(): number {
    const id = this.#generator.next();
    if (id > this.#reservedUpTo - RESERVED_IDS / 2) {
      this.#reservedUpTo = Math.max(id, seqFromUnixMs(this.#clock.nowMs())) + RESERVED_IDS;
      this.#log.reserveIds(this.#reservedUpTo);
    }
    return id;
  }

  /** The log took the reservation back. */
  forgetReservation(): void {
    this.#reservedUpTo = 0;
  }
}
