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
 * and borrows from the next millisecond when the counter of the current one is used up. So a clock
 * that is set back stops nothing: ids go on from the newest one, a millisecond for each 4096 of
 * them, until the clock is there again.
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

/** The last millisecond that has ids. */
const MS_MAX = 2 ** 41 - 1;

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

/**
 * Issues strictly ascending ids.
 *
 *     #ms        highest time there was: the clock's when it was asked, and that of the newest id
 *     #counter   ids of that millisecond which are used up
 */
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
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if it would be none of 53 bits; nothing is changed.
   */
  next(nowMs: number = this.#clock.nowMs()): Seq {
    const clockMs = nowMs - SEQ_EPOCH_MS;
    if (clockMs > this.#ms) {
      requireIds(clockMs);
      this.#ms = clockMs;
      this.#counter = 0;
    } else if (this.#counter >= this.#counterSpan) {
      requireIds(this.#ms + 1);
      this.#ms += 1;
      this.#counter = 0;
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
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if one would be none of 53 bits; none is issued.
   */
  block(count: number): Seq {
    assert(count >= 1, "a block has an id");
    const clockMs = this.#clock.nowMs() - SEQ_EPOCH_MS;
    const lastOffset = this.offsetOf(count - 1);
    requireIds(Math.max(clockMs, this.#ms + 1) + Math.floor(lastOffset / LOW_SPAN));
    // A block begins with a millisecond of its own, so that its offsets are known before it is.
    if (this.#counter > 0) this.#counter = this.#counterSpan;
    const first = this.next(clockMs + SEQ_EPOCH_MS);
    this.#last = (first + lastOffset) as Seq;
    this.#ms = Math.floor(this.#last / LOW_SPAN);
    this.#counter = ((count - 1) % this.#counterSpan) + 1;
    return first;
  }

  /** How far behind the first id of a block another one is. */
  offsetOf(index: number): number {
    const span = this.#counterSpan;
    return Math.floor(index / span) * LOW_SPAN + (index % span);
  }

  /**
   * The time that ids have, which never goes back: the highest that the clock ever said here, and
   * while that is behind, that of the newest id. Every id from now on is of this time or later.
   */
  nowMs(): number {
    const clockMs = this.#clock.nowMs() - SEQ_EPOCH_MS;
    // A time that has no ids is none to wait for: who takes an id then is refused.
    if (clockMs > this.#ms && clockMs <= MS_MAX) {
      this.#ms = clockMs;
      this.#counter = 0;
    }
    return this.#ms + SEQ_EPOCH_MS;
  }

  /** Continues above an id seen elsewhere. */
  observe(seq: Seq): void {
    if (seq <= this.#last) return;
    this.#ms = Math.max(this.#ms, Math.floor(seq / LOW_SPAN));
    this.#counter = this.#counterSpan;
    this.#last = seq;
  }
}

/** @throws {DatabaseError} STORAGE_UNAVAILABLE if a millisecond, counted as in ids, has none. */
function requireIds(ms: number): void {
  if (ms <= MS_MAX) return;
  const lastTime = new Date(MS_MAX + SEQ_EPOCH_MS).toISOString();
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot issue a sequence id of ${new Date(ms + SEQ_EPOCH_MS).toISOString()}: the last ids are of ${lastTime}`,
    { hint: "set the system clock" },
  );
}
