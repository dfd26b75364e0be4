/**
 * Sequence ids: the one order of everything.
 *
 * A seq has 53 bits, so that a JavaScript number and a JSON number hold it exactly:
 *
 *     ┌──────────────────────────────────────────┬─────────────┬──────────────────┐
 *     │ ms since 2026-01-01T00:00:00Z (41 bits)  │ node (b)    │ counter (12 − b) │
 *     └──────────────────────────────────────────┴─────────────┴──────────────────┘
 *
 * The generator is a hybrid logical clock: it follows the clock forward, never goes back with it,
 * and borrows from the next millisecond when the counter of the current one is used up.
 */
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { DatabaseError } from "./errors.ts";

declare const seqBrand: unique symbol;

/**
 * A sequence id. Issued by {@linkcode SeqGenerator}; from outside it comes through
 * {@linkcode seqFromNumber}. Columns hold seqs as plain numbers, and who reads one names it again.
 */
export type Seq = number & { readonly [seqBrand]: true };

/** 2026-01-01T00:00:00Z in Unix milliseconds. */
export const SEQ_EPOCH_MS = 1767225600000;

/** Ids in one millisecond. */
const LOW_SPAN = 4096;

/** How far ahead of the clock the generator may run before it refuses: one hour. */
const AHEAD_MS_MAX = 3_600_000;

/** Before every seq. */
export const SEQ_ZERO: Seq = 0 as Seq;

/** Accepts a number from outside, or returns undefined when it cannot be a sequence id. */
export function seqFromNumber(value: number): Seq | undefined {
  return Number.isSafeInteger(value) && value >= 0 ? (value as Seq) : undefined;
}

/** Unix milliseconds at which a seq was issued. */
export function unixMsFromSeq(seq: number): number {
  return Math.floor(seq / LOW_SPAN) + SEQ_EPOCH_MS;
}

/** The first seq of a Unix millisecond; 0 for times before the epoch of seqs. */
export function seqFromUnixMs(unixMs: number): Seq {
  return Math.max(0, Math.floor(unixMs - SEQ_EPOCH_MS) * LOW_SPAN) as Seq;
}

export interface SeqGeneratorOptions {
  clock: Clock;
  /** This server's number in its cluster, below 2 ** `nodeBits`. */
  nodeId: number;
  /** How many of the low 12 bits hold the node id, 0 to 6. */
  nodeBits: number;
  /** The highest id ever issued, so that a restart never goes back. */
  last: Seq;
}

/** Issues strictly ascending ids. */
export class SeqGenerator {
  readonly #clock: Clock;
  readonly #nodePart: number;
  readonly #counterSpan: number;
  #ms: number;
  #counter: number;
  #last: Seq;

  constructor({ clock, nodeId, nodeBits, last }: SeqGeneratorOptions) {
    assert(nodeId < 2 ** nodeBits, "the node id fits its bits");
    this.#clock = clock;
    this.#counterSpan = LOW_SPAN / 2 ** nodeBits;
    this.#nodePart = nodeId * this.#counterSpan;
    this.#ms = Math.floor(last / LOW_SPAN);
    // The rest of the last millisecond is given up: its ids may have been issued by another node.
    this.#counter = last === 0 ? 0 : this.#counterSpan;
    this.#last = last;
  }

  /** The highest id issued so far. */
  get last(): Seq {
    return this.#last;
  }

  /** The clock's time, for {@linkcode next}. */
  clockMs(): number {
    return this.#clock.nowMs();
  }

  /**
   * Issues the next id.
   *
   * @param nowMs What the clock says, for who takes many ids in one turn and asks it once.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if ids run over an hour ahead of the clock.
   */
  next(nowMs: number = this.#clock.nowMs()): Seq {
    const clockMs = nowMs - SEQ_EPOCH_MS;
    if (clockMs > this.#ms) {
      this.#ms = clockMs;
      this.#counter = 0;
    } else if (this.#counter >= this.#counterSpan) {
      this.#ms += 1;
      this.#counter = 0;
      if (this.#ms - clockMs > AHEAD_MS_MAX) {
        throw new DatabaseError(
          "STORAGE_UNAVAILABLE",
          "Cannot issue a sequence id: the system clock is more than an hour behind the newest id",
          { hint: "set the system clock" },
        );
      }
    }
    const seq = (this.#ms * LOW_SPAN + this.#nodePart + this.#counter) as Seq;
    this.#counter += 1;
    assert(seq > this.#last, "seqs ascend");
    this.#last = seq;
    return seq;
  }

  /**
   * Issues `count` ids at once: id `i` of them is the first one plus `offsetOf(i)`.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if ids run over an hour ahead of the clock.
   */
  block(count: number): Seq {
    assert(count >= 1, "a block has an id");
    // A block begins with a millisecond of its own, so that its offsets are known before it is.
    if (this.#counter > 0) this.#counter = this.#counterSpan;
    const first = this.next();
    this.#last = (first + this.offsetOf(count - 1)) as Seq;
    this.#ms = Math.floor(this.#last / LOW_SPAN);
    this.#counter = ((count - 1) % this.#counterSpan) + 1;
    return first;
  }

  /** How far behind the first id of a block another one is. */
  offsetOf(index: number): number {
    const span = this.#counterSpan;
    return Math.floor(index / span) * LOW_SPAN + (index % span);
  }

  /** The time that ids have: the clock's, and while that is behind, that of the newest id. */
  nowMs(): number {
    return Math.max(this.#clock.nowMs(), unixMsFromSeq(this.#last));
  }

  /** Continues above an id seen elsewhere. */
  observe(seq: Seq): void {
    if (seq <= this.#last) return;
    this.#ms = Math.floor(seq / LOW_SPAN);
    this.#counter = this.#counterSpan;
    this.#last = seq;
  }
}
