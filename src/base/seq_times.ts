/**
 * Which time of the wall clock a seq is of, where its milliseconds do not say it.
 *
 * Ids never go back, and the clock may: once it was ahead, for a moment even, ids run ahead of it.
 * They then advance as the clock does, by a distance that stays, and each change of that distance
 * begins an era:
 *
 *     base ids of a time ──► era: ids from `fromSeq` on are of `aheadMs` before what they say ──► …
 *
 * There are as many eras as jumps, so that they are a short list, which is kept beside the
 * definitions and copied with them: no row holds a time of its own.
 *
 * Expiry is one bound on seq, also where the clock went back. What was committed before an era
 * began is at least as old as the era is long, by a clock that ran in it without a jump; so a row
 * that was dated ahead goes with those that came after it, and none goes before its time because
 * the clock was behind for a while. What has expired stays so, whatever the clock says later.
 */
import { seqFromUnixMs, unixMsFromSeq } from "./seq_layout.ts";

export interface SeqEra {
  readonly fromSeq: number;
  /** How far ids are ahead of the clock. */
  readonly aheadMs: number;
  /** The latest time, in Unix milliseconds, that the clock said in the era before. */
  readonly seenMs: number;
}

export interface SeqTimesOptions {
  /** Ascending by seq. */
  readonly eras: readonly SeqEra[];
  /** Keeps them durably. @throws {DatabaseError} @throws {DiskError} */
  readonly save: (eras: readonly SeqEra[]) => void;
}

/** Above this the oldest goes, and what it was of is dated as the one before. */
const ERAS_MAX = 1000;

const BASE: SeqEra = { fromSeq: 0, aheadMs: 0, seenMs: 0 };

export class SeqTimes {
  /** With the one that every directory begins with. */
  #eras: readonly SeqEra[];
  #isSaved = true;
  readonly #save: SeqTimesOptions["save"];

  constructor({ eras, save }: SeqTimesOptions) {
    this.#eras = [BASE, ...eras];
    this.#save = save;
  }

  /** How far new ids are ahead of the clock. */
  get aheadMs(): number {
    return this.#newest.aheadMs;
  }

  /** Begins an era, in memory; {@linkcode save} comes before a commit in it. */
  begin(era: SeqEra): void {
    const eras = [...this.#eras.slice(1).map((known) => endedBy(known, era)), era];
    this.#eras = [BASE, ...eras.slice(-ERAS_MAX)];
    this.#isSaved = false;
  }

  /** Keeps durably what has begun. @throws {DatabaseError} @throws {DiskError} */
  save(): void {
    if (this.#isSaved) return;
    this.#save(this.#eras.slice(1));
    this.#isSaved = true;
  }

  /** The wall clock, in Unix milliseconds, when a seq was issued. */
  msOf(seq: number): number {
    const { aheadMs } = this.#eras.findLast(({ fromSeq }) => fromSeq <= seq) ?? BASE;
    return unixMsFromSeq(seq) - aheadMs;
  }

  /** The last seq that is of a Unix millisecond, or of one before it; of the newest era that is. */
  lastSeqUpTo(unixMs: number): number {
    const index = this.#eras.findLastIndex((era) => this.#startMsOf(era) <= unixMs);
    return this.#boundIn(Math.max(index, 0), unixMs);
  }

  /** The newest seq that is so old, as everything before it is; 0 for none. */
  agedSeq(ageMs: number, nowMs: number): number {
    let bound = 0;
    for (const [index, era] of this.#eras.entries()) {
      // The latest that the clock said while it ran without a jump.
      const endMs = this.#eras[index + 1]?.seenMs ?? nowMs;
      const isPrefix = bound >= era.fromSeq - 1;
      if (isPrefix)
        bound = Math.max(bound, this.#boundIn(index, this.#latestMs(index, nowMs) - ageMs));
      else if (endMs - ageMs >= this.#startMsOf(era)) bound = this.#boundIn(index, endMs - ageMs);
    }
    return bound;
  }

  /** The latest that the clock said since an era began: what has expired by then stays so. */
  #latestMs(index: number, nowMs: number): number {
    let latestMs = nowMs;
    for (const { seenMs } of this.#eras.slice(index + 1)) latestMs = Math.max(latestMs, seenMs);
    return latestMs;
  }

  /** The last seq of an era that is of a time, or of one before it. */
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

/** Of an era in which no id was issued only its times are left, which let older ids expire. */
function endedBy(known: SeqEra, { fromSeq }: SeqEra): SeqEra {
  if (known.fromSeq <= fromSeq) return known;
  const earlierMs = unixMsFromSeq(known.fromSeq) - unixMsFromSeq(fromSeq);
  return { ...known, fromSeq, aheadMs: known.aheadMs - earlierMs };
}
