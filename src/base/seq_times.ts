/**
 * Maps seqs to wall-clock times where the milliseconds in a seq do not match the clock.
 *
 * Ids never go back, but the clock may: once it has been ahead, even for a moment, ids run ahead
 * of it from then on. They advance with the clock at a constant distance. Whenever this distance
 * changes, a new era begins:
 *
 *     first era: ids match the clock ──► era: ids from `fromSeq` on are `aheadMs` ahead of it ──► …
 *
 * There is one era per jump of the clock, so the list stays short. The list is stored and copied
 * together with the definitions, so that rows do not have to store their times.
 *
 * A single bound on the seq determines which rows have expired, even if the clock goes back. A row
 * committed before an era began is at least as old as the era, because the clock does not jump
 * within an era. A row dated in the future therefore expires together with the rows after it, and
 * no row expires early because the clock was behind for a while. An expired row stays expired even
 * if the clock is set back later.
 */
import { seqFromUnixMs, unixMsFromSeq } from "./seq_layout.ts";

export interface SeqEra {
  readonly fromSeq: number;
  /** The number of milliseconds by which ids are ahead of the clock in this era. */
  readonly aheadMs: number;
  /** The latest time that the clock reached in the previous era, in Unix milliseconds. */
  readonly seenMs: number;
}

export interface SeqTimesOptions {
  /** The eras in ascending order of their first seq. Each begins where the clock jumped. */
  readonly eras: readonly SeqEra[];
  /**
   * Durably saves the eras. Absent if no era will begin.
   *
   * @throws {DatabaseError} @throws {DiskError}
   */
  readonly save?: (eras: readonly SeqEra[]) => void;
}

/**
 * The maximum number of eras. When there are more, the oldest one is dropped, and its seqs get the
 * times that the preceding era implies.
 */
const ERAS_MAX = 1000;

const BASE: SeqEra = { fromSeq: 0, aheadMs: 0, seenMs: 0 };

export class SeqTimes {
  /** The eras, including the initial one, with which every data directory begins. */
  #eras: readonly SeqEra[];
  #isSaved = true;
  readonly #save: (eras: readonly SeqEra[]) => void;

  constructor({ eras, save = () => {} }: SeqTimesOptions) {
    this.#eras = [BASE, ...eras];
    this.#save = save;
  }

  /** All eras except the initial one. */
  get eras(): readonly SeqEra[] {
    return this.#eras.slice(1);
  }

  /** The number of milliseconds by which new ids are ahead of the clock. */
  get aheadMs(): number {
    return this.#newest.aheadMs;
  }

  /**
   * Begins an era in memory only. {@linkcode save} must be called before the first commit in the
   * era.
   */
  begin(era: SeqEra): void {
    const eras = [...this.#eras.slice(1).map((known) => endedBy(known, era)), era];
    this.#eras = [BASE, ...eras.slice(-ERAS_MAX)];
    this.#isSaved = false;
  }

  /**
   * Durably saves the eras that have begun since the last save.
   *
   * @throws {DatabaseError} @throws {DiskError}
   */
  save(): void {
    if (this.#isSaved) return;
    this.#save(this.#eras.slice(1));
    this.#isSaved = true;
  }

  /** Returns the clock's time at which a seq was issued, in Unix milliseconds. */
  msOf(seq: number): number {
    const { aheadMs } = this.#eras.findLast(({ fromSeq }) => fromSeq <= seq) ?? BASE;
    return unixMsFromSeq(seq) - aheadMs;
  }

  /**
   * Returns the last seq issued at or before `unixMs`. If several eras contain such a seq, the
   * newest era counts.
   */
  lastSeqUpTo(unixMs: number): number {
    const index = this.#eras.findLastIndex((era) => this.#startMsOf(era) <= unixMs);
    return this.#boundIn(Math.max(index, 0), unixMs);
  }

  /**
   * Returns the newest seq for which it and all earlier seqs are at least `ageMs` old; 0 if there
   * is none.
   */
  agedSeq(ageMs: number, nowMs: number): number {
    let bound = 0;
    for (const [index, era] of this.#eras.entries()) {
      // The latest clock time in this era, within which the clock does not jump.
      const endMs = this.#eras[index + 1]?.seenMs ?? nowMs;
      const isPrefix = bound >= era.fromSeq - 1;
      if (isPrefix)
        bound = Math.max(bound, this.#boundIn(index, this.#latestMs(index, nowMs) - ageMs));
      else if (endMs - ageMs >= this.#startMsOf(era)) bound = this.#boundIn(index, endMs - ageMs);
    }
    return bound;
  }

  /**
   * Returns the latest time that the clock has reached since an era began. Rows that had expired
   * at that time stay expired.
   */
  #latestMs(index: number, nowMs: number): number {
    let latestMs = nowMs;
    for (const { seenMs } of this.#eras.slice(index + 1)) latestMs = Math.max(latestMs, seenMs);
    return latestMs;
  }

  /** Returns the last seq in an era that was issued at or before a time. */
  #boundIn(index: number, unixMs: number): number {
    const { aheadMs } = this.#eras[index] ?? BASE;
    const endSeq = this.#eras[index + 1]?.fromSeq ?? Infinity;
    return Math.min(endSeq, seqFromUnixMs(unixMs + aheadMs + 1)) - 1;
  }

  #startMsOf({ aheadMs, fromSeq }: SeqEra): number {
    return fromSeq === 0 ? 0 : unixMsFromSeq(fromSeq) - aheadMs;
  }

  get #newest(): SeqEra {
    return this.#eras.at(-1) ?? BASE;
  }
}

/**
 * Moves the start of an era that has issued no ids to the first id of the next era. Only the era's
 * times are still needed, to decide when older rows expire.
 */
function endedBy(known: SeqEra, { fromSeq }: SeqEra): SeqEra {
  if (known.fromSeq <= fromSeq) return known;
  const earlierMs = unixMsFromSeq(known.fromSeq) - unixMsFromSeq(fromSeq);
  return { ...known, fromSeq, aheadMs: known.aheadMs - earlierMs };
}
