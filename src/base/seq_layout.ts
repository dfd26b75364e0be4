/**
 * Defines the bit layout of a seq, and extracts the milliseconds from it. `seq.ts` draws the layout
 * and issues seqs.
 */

declare const seqBrand: unique symbol;

/**
 * A sequence id. {@linkcode SeqGenerator} issues seqs, and {@linkcode seqFromNumber} converts
 * numbers from outside. Columns store seqs as plain numbers, which must be converted when they are
 * read.
 */
export type Seq = number & { readonly [seqBrand]: true };

/** The epoch of seqs, 2026-01-01T00:00:00Z, in Unix milliseconds. */
export const SEQ_EPOCH_MS = 1767225600000;

/** The number of seqs that can be issued per millisecond. */
export const LOW_SPAN = 4096;

/** The last millisecond that a seq can represent, counted from the epoch of seqs. */
export const MS_MAX: number = 2 ** 41 - 1;

/** A seq that is lower than every issued seq. */
export const SEQ_ZERO: Seq = 0 as Seq;

/** Converts a number from outside this program to a seq. Returns undefined if it cannot be one. */
export function seqFromNumber(value: number): Seq | undefined {
  return Number.isSafeInteger(value) && value >= 0 ? (value as Seq) : undefined;
}

/** Returns the time encoded in a seq, in Unix milliseconds. */
export function unixMsFromSeq(seq: number): number {
  return Math.floor(seq / LOW_SPAN) + SEQ_EPOCH_MS;
}

/** Returns the first seq of a Unix millisecond; 0 for times before the epoch of seqs. */
export function seqFromUnixMs(unixMs: number): Seq {
  return Math.max(0, Math.floor(unixMs - SEQ_EPOCH_MS) * LOW_SPAN) as Seq;
}
