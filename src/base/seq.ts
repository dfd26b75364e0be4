/**
 * Issues sequence ids, which put all commits, definitions and ids into a single order.
 *
 * A seq has 53 bits, so that a JavaScript number and a JSON number represent it exactly:
 *
 *     ┌──────────────────────────────────────────┬─────────────┬──────────────────┐
 *     │ ms since 2026-01-01T00:00:00Z (41 bits)  │ node (b)    │ counter (12 − b) │
 *     └──────────────────────────────────────────┴─────────────┴──────────────────┘
 *
 * The generator is a hybrid logical clock: it follows the clock forward and never goes back; when
 * the counter of the current millisecond is exhausted, it uses ids of the next millisecond. If the
 * clock is set back, ids therefore continue from the newest one. With `SeqTimes`, ids then run
 * ahead of the clock by a recorded distance. Without it, they advance by one millisecond per 4096
 * ids until the clock has caught up.
 */
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { DatabaseError } from "./errors.ts";
import {
  LOW_SPAN,
  MS_MAX,
  SEQ_EPOCH_MS,
  type Seq,
  seqFromUnixMs,
  unixMsFromSeq,
} from "./seq_layout.ts";
import type { SeqTimes } from "./seq_times.ts";

export {
  SEQ_EPOCH_MS,
  SEQ_ZERO,
  type Seq,
  seqFromNumber,
  seqFromUnixMs,
  unixMsFromSeq,
} from "./seq_layout.ts";

/**
 * The smallest backward step of the clock that begins a new era. Smaller steps come from time
 * servers, and from bursts of ids that borrow milliseconds from the future.
 */
const JITTER_MS = 1000;

/**
 * The smallest difference between the advances of the wall clock and the monotonic clock that
 * counts as a jump, in milliseconds. A smaller difference is drift or a correction.
 */
const JUMP_MS_MIN = 1000;

/** A jump of the wall clock by `ms`, detected at `atMs` on the monotonic clock. */
interface ClockJump {
  readonly ms: number;
  readonly atMs: number;
}

export interface SeqGeneratorOptions {
  clock: Clock;
  /** The number of this server in its cluster, less than 2 ** `nodeBits`. */
  nodeId: number;
  /** The number of the low 12 bits that contain the node id, from 0 to 6. */
  nodeBits: number;
  /** The highest id ever issued. New ids are higher, so that ids never repeat after a restart. */
  last: Seq;
  /** Maps ids to clock times; absent if the times of ids are not needed. */
  times?: SeqTimes;
  /** Called if the wall clock has been set back by more than a small correction. */
  onSetBack?: (times: { readonly fromMs: number; readonly toMs: number }) => void;
}

/**
 * Issues strictly ascending sequence ids.
 *
 *     #ms        highest time so far: of the newest id and, without `SeqTimes`, of the clock
 *     #counter   number of ids already used up in that millisecond
 *     #highMs    latest time of the clock since it was last set back
 */
export class SeqGenerator {
  readonly #clock: Clock;
  readonly #nodePart: number;
  readonly #counterSpan: number;
  readonly #times: SeqTimes | undefined;
  readonly #onSetBack: SeqGeneratorOptions["onSetBack"];
  #ms: number;
  #counter: number;
  #last: Seq;
  #highMs: number;
  /** The last reading of the clock, and the millisecond that the ids had reached by then. */
  #seenMs = -Infinity;
  #idMs = 0;
  /** The last readings of both clocks, and the recent forward jumps of the wall clock. */
  #wallMs: number;
  #monotonicMs: number;
  #jumps: readonly ClockJump[] = [];

  constructor({ clock, nodeId, nodeBits, last, onSetBack, times }: SeqGeneratorOptions) {
    assert(nodeId < 2 ** nodeBits, "seq generator: node id does not fit in its bits");
    this.#clock = clock;
    this.#wallMs = clock.nowMs();
    this.#monotonicMs = clock.monotonicMs();
    this.#times = times;
    this.#onSetBack = onSetBack;
    this.#highMs = times === undefined || last === 0 ? -Infinity : times.msOf(last) - SEQ_EPOCH_MS;
    this.#counterSpan = LOW_SPAN / 2 ** nodeBits;
    this.#nodePart = nodeId * this.#counterSpan;
    this.#ms = Math.floor(last / LOW_SPAN);
    // The rest of the last millisecond is skipped, because another node may have issued ids within
    // it.
    this.#counter = last === 0 ? 0 : this.#counterSpan;
    this.#last = last;
  }

  /** The highest seq issued so far. */
  get last(): Seq {
    return this.#last;
  }

  /** Returns the clock's time, to be passed to {@linkcode next}. */
  clockMs(): number {
    return this.#clock.nowMs();
  }

  /**
   * Issues the next id.
   *
   * @param nowMs The clock's time, for callers that issue many ids in one tick and read the clock
   *   only once.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the id would exceed 53 bits; nothing changes.
   */
  next(nowMs: number = this.#clock.nowMs()): Seq {
    const idMs = this.#idMsAt(nowMs - SEQ_EPOCH_MS);
    if (idMs > this.#ms) {
      requireIds(idMs);
      this.#ms = idMs;
      this.#counter = 0;
    } else if (this.#counter >= this.#counterSpan) {
      requireIds(this.#ms + 1);
      this.#ms += 1;
      this.#counter = 0;
    }
    const seq = (this.#ms * LOW_SPAN + this.#nodePart + this.#counter) as Seq;
    this.#counter += 1;
    assert(seq > this.#last, "seq generator: new seq is not greater than the last one");
    this.#last = seq;
    return seq;
  }

  /**
   * Issues a block of `count` ids. The id at index `i` is the first id plus `offsetOf(i)`.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if an id would exceed 53 bits; none is issued.
   */
  block(count: number): Seq {
    assert(count >= 1, "seq generator: cannot issue an empty block of ids");
    const nowMs = this.#clock.nowMs();
    const lastOffset = this.offsetOf(count - 1);
    requireIds(
      Math.max(this.#idMsAt(nowMs - SEQ_EPOCH_MS), this.#ms + 1) +
        Math.floor(lastOffset / LOW_SPAN),
    );
    // A block begins in a new millisecond, so that its offsets are known in advance.
    if (this.#counter > 0) this.#counter = this.#counterSpan;
    const first = this.next(nowMs);
    this.#last = (first + lastOffset) as Seq;
    this.#ms = Math.floor(this.#last / LOW_SPAN);
    this.#counter = ((count - 1) % this.#counterSpan) + 1;
    return first;
  }

  /** Returns the difference between an id of a block and the first id of the block. */
  offsetOf(index: number): number {
    const span = this.#counterSpan;
    return Math.floor(index / span) * LOW_SPAN + (index % span);
  }

  /**
   * Reads the clock and durably saves the state needed for the next ids. Must be called before ids
   * are issued for a commit.
   *
   * @throws {DatabaseError} @throws {DiskError}
   */
  settle(): void {
    if (this.#times === undefined) return;
    this.nowMs();
    this.#times.save();
  }

  /**
   * Returns the clock's time, with small corrections smoothed out. No later id has an earlier
   * time.
   */
  nowMs(): number {
    const wallMs = this.#clock.nowMs();
    this.#noteJump(wallMs);
    const clockMs = wallMs - SEQ_EPOCH_MS;
    if (this.#times === undefined) {
      // A time outside the range of ids is ignored here. Issuing an id will fail.
      if (clockMs > this.#ms && clockMs <= MS_MAX) {
        this.#ms = clockMs;
        this.#counter = 0;
      }
      return this.#ms + SEQ_EPOCH_MS;
    }
    this.#idMsAt(clockMs);
    return Math.max(this.#highMs, 0) + SEQ_EPOCH_MS;
  }

  /**
   * Returns the newest seq for which it and all earlier seqs are at least `ageMs` old; 0 if there
   * is none.
   */
  agedSeq(ageMs: number): number {
    const nowMs = this.nowMs();
    if (this.#times !== undefined) return this.#times.agedSeq(ageMs, nowMs);
    return Math.max(0, seqFromUnixMs(nowMs - ageMs + 1) - 1);
  }

  /**
   * Returns how far the clock has jumped forward within the last `ageMs` of real time, in
   * milliseconds. Ids issued before such a jump appear older than they are by that amount.
   */
  jumpedMs(ageMs: number): number {
    this.#noteJump(this.#clock.nowMs());
    const afterMs = this.#clock.monotonicMs() - ageMs;
    this.#jumps = this.#jumps.filter(({ atMs }) => atMs > afterMs);
    return this.#jumps.reduce((sum, { ms }) => sum + ms, 0);
  }

  #noteJump(wallMs: number): void {
    const monotonicMs = this.#clock.monotonicMs();
    const ms = wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs);
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    if (ms >= JUMP_MS_MIN) this.#jumps = [...this.#jumps, { ms, atMs: monotonicMs }];
  }

  /** Returns the clock's time at which a seq was issued, in Unix milliseconds. */
  msOf(seq: number): number {
    return this.#times?.msOf(seq) ?? unixMsFromSeq(seq);
  }

  /** Returns the last seq issued at or before `unixMs`. */
  lastSeqUpTo(unixMs: number): number {
    return this.#times?.lastSeqUpTo(unixMs) ?? seqFromUnixMs(unixMs + 1) - 1;
  }

  /** Returns the lowest millisecond that an id may have at a given clock time. */
  #idMsAt(clockMs: number): number {
    // A clock time outside the range of ids is ignored.
    if (this.#times === undefined || clockMs > MS_MAX) return clockMs;
    if (clockMs === this.#seenMs) return this.#idMs;
    this.#beginEraAt(clockMs, this.#times);
    this.#highMs = Math.max(this.#highMs, clockMs);
    this.#seenMs = clockMs;
    const idMs = this.#highMs + this.#times.aheadMs;
    this.#idMs = idMs <= MS_MAX ? idMs : clockMs;
    return this.#idMs;
  }

  /**
   * Begins an era if the distance between the ids and the clock has changed because ids have
   * started or stopped running ahead.
   */
  #beginEraAt(clockMs: number, times: SeqTimes): void {
    const isSetBack = clockMs < this.#highMs - JITTER_MS;
    const isAhead = this.#ms - (clockMs + times.aheadMs) > JITTER_MS;
    const isCaughtUp = times.aheadMs > 0 && clockMs > this.#ms;
    if (!isSetBack && !isAhead && !isCaughtUp) return;
    const fromMs = this.#highMs + SEQ_EPOCH_MS;
    const toMs = clockMs + SEQ_EPOCH_MS;
    const idMs = Math.max(clockMs, this.#ms + 1);
    if (idMs > MS_MAX) return;
    const fromSeq = idMs * LOW_SPAN;
    times.begin({
      fromSeq,
      aheadMs: idMs - clockMs,
      seenMs: Number.isFinite(fromMs) ? fromMs : toMs,
    });
    this.#highMs = clockMs;
    if (isSetBack) this.#onSetBack?.({ fromMs, toMs });
  }

  /** Makes all further ids exceed an id that was issued elsewhere. */
  observe(seq: Seq): void {
    if (seq <= this.#last) return;
    this.#ms = Math.max(this.#ms, Math.floor(seq / LOW_SPAN));
    this.#counter = this.#counterSpan;
    this.#last = seq;
  }
}

/**
 * Refuses a time that ids cannot represent.
 * @param ms Milliseconds since the epoch of ids.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function requireIds(ms: number): void {
  if (ms <= MS_MAX) return;
  const lastTime = new Date(MS_MAX + SEQ_EPOCH_MS).toISOString();
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot issue a _seq for ${new Date(ms + SEQ_EPOCH_MS).toISOString()}: the latest possible ` +
      `time is ${lastTime}`,
    { hint: "correct the system clock" },
  );
}
