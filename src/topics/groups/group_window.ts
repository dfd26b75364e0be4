/**
 * Tracks the messages of one partition as a group sees them: the state machine behind claims,
 * acknowledgements and redelivery. It performs no I/O, and callers tell it the time.
 *
 *     event \ state    (new)        waiting           claimed                     acknowledged
 *     deliver          claimed      claimed, if due   –                           –
 *     deliver, but     waiting      –                 –                           –
 *     its key is held
 *     its row is gone  acknowledged acknowledged      acknowledged                –
 *     nack             refused      unchanged         waiting, due after a delay  unchanged
 *     deadline over    –            –                 waiting, due at once        –
 *     consumer ends    –            –                 waiting, due at once        –
 *     ack              refused      acknowledged      acknowledged                unchanged
 *
 *          committed                                end
 *     ─────────┼─────────────────────────────────────┼────────► offsets
 *       acked  │ acked, claimed and waiting: a ring  │ new
 *
 * - All messages below `committed` are acknowledged. The one at `committed` is not, unless
 *   `committed` equals `end`.
 * - At most {@linkcode WINDOW_MAX} messages are between `committed` and `end`, so a message that
 *   is never acknowledged stops its group once that many later messages have been delivered.
 */
import { assert } from "../../base/assert.ts";

/**
 * The maximum number of messages from the committed offset to the end of the delivered messages.
 */
export const WINDOW_MAX = 10_000;

const CAPACITY_MIN = 16;

/** The highest delivery count that can be stored. */
const DELIVERIES_MAX = 0xffff;

const WAITING = 0;
const CLAIMED = 1;
const ACKED = 2;

/**
 * The messages to acknowledge: either all up to an offset (inclusive), or an ascending list of
 * offsets.
 */
export interface AckedOffsets {
  readonly upTo?: number | undefined;
  readonly offsets?: readonly number[] | undefined;
}

/** The form in which a window is stored. */
export interface WindowState {
  readonly committed: number;
  readonly end: number;
  /**
   * The acknowledged ranges of offsets above `committed`, from `from` (inclusive) to `to`
   * (exclusive).
   */
  readonly acked: readonly (readonly [from: number, to: number])[];
  /** The delivery counts of unacknowledged messages. Counts of 1 are left out. */
  readonly deliveries: readonly (readonly [offset: number, count: number])[];
}

/** The effect that an acknowledgement would have on a window. */
export interface PlannedAck {
  /** The number of messages that would be newly acknowledged. */
  readonly count: number;
  readonly state: WindowState;
}

export class GroupWindow {
  /** The number of redeliveries since this window was created. */
  redeliveries = 0;
  #committed: number;
  #end: number;
  #capacity = CAPACITY_MIN;
  #states: Uint8Array = new Uint8Array(CAPACITY_MIN);
  #deliveries: Uint16Array = new Uint16Array(CAPACITY_MIN);
  /**
   * For a claimed message, its deadline. For a waiting message, the time from which it may be
   * delivered.
   */
  #times: Float64Array = new Float64Array(CAPACITY_MIN);
  #consumers: Uint32Array = new Uint32Array(CAPACITY_MIN);
  #keys: (string | undefined)[] = [];
  #claimCount = 0;
  #waitingCount = 0;
  /** A lower bound on the deadlines of all claims. */
  #firstDeadlineMs = Infinity;
  /**
   * For each row key, its unacknowledged offsets in ascending order. Undefined until the first
   * ordered delivery.
   */
  #byKey: Map<string, number[]> | undefined;

  constructor(state: WindowState) {
    this.#committed = state.committed;
    this.#end = state.committed;
    for (let offset = state.committed; offset < state.end; offset += 1) {
      this.push(undefined);
      this.#deliveries[this.#slot(offset)] = 1;
    }
    for (const [offset, count] of state.deliveries) this.#deliveries[this.#slot(offset)] = count;
    for (const [from, to] of state.acked) {
      for (let offset = from; offset < to; offset += 1) this.#ackOne(offset);
    }
    this.#advance();
  }

  /** The committed offset: every message below it has been acknowledged. */
  get committed(): number {
    return this.#committed;
  }

  /** The offset of the first message not yet in the window. */
  get end(): number {
    return this.#end;
  }

  get claimCount(): number {
    return this.#claimCount;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** How many new messages still fit into the window. */
  get freeCount(): number {
    return WINDOW_MAX - (this.#end - this.#committed);
  }

  /** Whether unacknowledged messages may hold back later messages for the same rows. */
  get hasKeys(): boolean {
    return this.#byKey !== undefined;
  }

  isAcked(offset: number): boolean {
    if (offset < this.#committed) return true;
    return offset < this.#end && this.#states[this.#slot(offset)] === ACKED;
  }

  isClaimed(offset: number): boolean {
    return this.#isWithin(offset) && this.#states[this.#slot(offset)] === CLAIMED;
  }

  isWaiting(offset: number): boolean {
    return this.#isWithin(offset) && this.#states[this.#slot(offset)] === WAITING;
  }

  deliveriesOf(offset: number): number {
    return this.#isWithin(offset) ? (this.#deliveries[this.#slot(offset)] ?? 0) : 0;
  }

  /**
   * Adds the next new message to the window, in the waiting state.
   *
   * @param key Identifies the message's row; undefined if the order of messages does not matter.
   */
  push(key: string | undefined): void {
    const offset = this.#end;
    this.#reserve(offset + 1 - this.#committed);
    this.#end += 1;
    const slot = this.#slot(offset);
    this.#states[slot] = WAITING;
    this.#deliveries[slot] = 0;
    this.#times[slot] = 0;
    this.#keys[slot] = key;
    this.#waitingCount += 1;
    if (this.#byKey !== undefined) noteKey(this.#byKey, key, offset);
  }

  /** Sets the row key of a message loaded from the groups table. */
  setKey(offset: number, key: string | undefined): void {
    const slot = this.#slot(offset);
    if (this.#keys[slot] !== undefined || this.#states[slot] === ACKED) return;
    this.#keys[slot] = key;
    if (this.#byKey === undefined || key === undefined) return;
    const offsets = this.#byKey.get(key);
    if (offsets === undefined) this.#byKey.set(key, [offset]);
    else {
      offsets.push(offset);
      offsets.sort((left, right) => left - right);
    }
  }

  /** Returns the offsets of waiting messages that may be delivered now, in ascending order. */
  due(nowMs: number, limit: number): number[] {
    this.expire(nowMs);
    const found: number[] = [];
    if (this.#waitingCount === 0) return found;
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const slot = this.#slot(offset);
      if (this.#states[slot] !== WAITING || (this.#times[slot] ?? 0) > nowMs) continue;
      found.push(offset);
      if (found.length >= limit) break;
    }
    return found;
  }

  /** Whether an earlier message for the same row is still unacknowledged. */
  isHeldByKey(offset: number): boolean {
    const key = this.#keys[this.#slot(offset)];
    if (key === undefined) return false;
    this.#byKey ??= this.#keysNow();
    const first = this.#byKey.get(key)?.[0];
    return first !== undefined && first < offset;
  }

  /**
   * Claims a waiting message for a consumer. Returns the number of its deliveries, including this
   * one.
   */
  claim(
    offset: number,
    { consumer, deadlineMs }: { consumer: number; deadlineMs: number },
  ): number {
    assert(this.isWaiting(offset), "consumer group: claimed message is not waiting");
    const slot = this.#slot(offset);
    const deliveries = Math.min(DELIVERIES_MAX, (this.#deliveries[slot] ?? 0) + 1);
    this.#deliveries[slot] = deliveries;
    this.#states[slot] = CLAIMED;
    this.#times[slot] = deadlineMs;
    this.#consumers[slot] = consumer;
    this.#firstDeadlineMs = Math.min(this.#firstDeadlineMs, deadlineMs);
    this.#claimCount += 1;
    this.#waitingCount -= 1;
    if (deliveries > 1) this.redeliveries += 1;
    return deliveries;
  }

  /**
   * Returns a claimed message to the waiting state until `dueMs`. @returns Whether the message was
   * claimed.
   */
  release(offset: number, dueMs: number): boolean {
    if (!this.isClaimed(offset)) return false;
    const slot = this.#slot(offset);
    this.#states[slot] = WAITING;
    this.#times[slot] = dueMs;
    this.#claimCount -= 1;
    this.#waitingCount += 1;
    return true;
  }

  /**
   * Undoes a claim on a message that did not reach its consumer, as if the claim had never been
   * made.
   */
  unclaim(offset: number): void {
    if (!this.release(offset, 0)) return;
    const slot = this.#slot(offset);
    this.#deliveries[slot] = Math.max(0, (this.#deliveries[slot] ?? 0) - 1);
  }

  /** Releases all messages of a consumer that is ending. Returns the number of these messages. */
  releaseAllOf(consumer: number): number {
    let count = 0;
    if (this.#claimCount === 0) return count;
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      if (this.#consumers[this.#slot(offset)] === consumer && this.release(offset, 0)) count += 1;
    }
    return count;
  }

  /** Releases messages whose claims have expired. */
  expire(nowMs: number): void {
    if (nowMs < this.#firstDeadlineMs) return;
    this.#firstDeadlineMs = Infinity;
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const slot = this.#slot(offset);
      if (this.#states[slot] !== CLAIMED) continue;
      const deadlineMs = this.#times[slot] ?? 0;
      // The deadline becomes the due time, so it can still be reported to waiting consumers.
      if (deadlineMs <= nowMs) this.release(offset, deadlineMs);
      else this.#firstDeadlineMs = Math.min(this.#firstDeadlineMs, deadlineMs);
    }
  }

  /**
   * Returns the first time after `afterMs` at which a claim or a delay expires; Infinity if none
   * will.
   */
  nextDueMs(afterMs: number): number {
    let next = Infinity;
    if (this.#claimCount + this.#waitingCount === 0) return next;
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const slot = this.#slot(offset);
      const timeMs = this.#times[slot] ?? 0;
      if (this.#states[slot] !== ACKED && timeMs > afterMs) next = Math.min(next, timeMs);
    }
    return next;
  }

  /** Returns how many claims each consumer has. */
  claimsByConsumer(): ReadonlyMap<number, number> {
    const claims = new Map<number, number>();
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const slot = this.#slot(offset);
      if (this.#states[slot] !== CLAIMED) continue;
      const consumer = this.#consumers[slot] ?? 0;
      claims.set(consumer, (claims.get(consumer) ?? 0) + 1);
    }
    return claims;
  }

  /** Computes the effect of an acknowledgement without changing the window. */
  plan(request: AckedOffsets): PlannedAck {
    const { offsets = [], upTo = -1 } = request;
    const end = Math.max(this.#end, upTo + 1, (offsets.at(-1) ?? -1) + 1);
    let committed: number | undefined;
    let count = 0;
    let at = 0;
    let from = -1;
    const acked: [number, number][] = [];
    const deliveries: [number, number][] = [];
    for (let offset = this.#committed; offset < end; offset += 1) {
      while ((offsets[at] ?? Infinity) < offset) at += 1;
      const isAsked = offset <= upTo || offsets[at] === offset;
      const wasAcked = this.isAcked(offset);
      if (isAsked && !wasAcked) count += 1;
      if (isAsked || wasAcked) {
        if (committed !== undefined && from === -1) from = offset;
        continue;
      }
      committed ??= offset;
      if (from !== -1) acked.push([from, offset]);
      from = -1;
      const delivered = this.deliveriesOf(offset);
      if (delivered !== 1) deliveries.push([offset, delivered]);
    }
    if (from !== -1) acked.push([from, end]);
    return { count, state: { committed: committed ?? end, end, acked, deliveries } };
  }

  /** The window's current state, in its stored form. */
  get state(): WindowState {
    return this.plan({}).state;
  }

  /** Acknowledges messages. */
  ack({ offsets = [], upTo = -1 }: AckedOffsets): void {
    if (upTo >= this.#end) this.#forgetUpTo(upTo + 1);
    for (let offset = this.#committed; offset <= upTo; offset += 1) this.#ackOne(offset);
    for (const offset of offsets) {
      while (offset >= this.#end) this.push(undefined);
      if (offset >= this.#committed) this.#ackOne(offset);
    }
    this.#advance();
  }

  /** Advances the window to the oldest message still kept. */
  forwardTo(offset: number): void {
    if (offset > this.#committed) this.ack({ upTo: offset - 1 });
  }

  /** Empties the window and moves it to `offset`, which must be at or after its end. */
  #forgetUpTo(offset: number): void {
    this.#committed = offset;
    this.#end = offset;
    this.#claimCount = 0;
    this.#waitingCount = 0;
    this.#firstDeadlineMs = Infinity;
    this.#keys = [];
    if (this.#byKey !== undefined) this.#byKey = new Map();
  }

  #ackOne(offset: number): void {
    const slot = this.#slot(offset);
    const state = this.#states[slot];
    if (state === ACKED) return;
    if (state === CLAIMED) this.#claimCount -= 1;
    else this.#waitingCount -= 1;
    this.#states[slot] = ACKED;
    const key = this.#keys[slot];
    this.#keys[slot] = undefined;
    if (this.#byKey === undefined || key === undefined) return;
    const offsets = this.#byKey.get(key) ?? [];
    offsets.splice(offsets.indexOf(offset), 1);
    if (offsets.length === 0) this.#byKey.delete(key);
  }

  #advance(): void {
    while (this.#committed < this.#end && this.isAcked(this.#committed)) this.#committed += 1;
  }

  #keysNow(): Map<string, number[]> {
    const byKey = new Map<string, number[]>();
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const slot = this.#slot(offset);
      if (this.#states[slot] !== ACKED) noteKey(byKey, this.#keys[slot], offset);
    }
    return byKey;
  }

  #isWithin(offset: number): boolean {
    return offset >= this.#committed && offset < this.#end;
  }

  #slot(offset: number): number {
    return offset % this.#capacity;
  }

  #reserve(count: number): void {
    if (count <= this.#capacity) return;
    const states = this.#states;
    const deliveries = this.#deliveries;
    const times = this.#times;
    const consumers = this.#consumers;
    const keys = this.#keys;
    const oldRoom = this.#capacity;
    const room = 2 * oldRoom;
    this.#capacity = room;
    this.#states = new Uint8Array(room);
    this.#deliveries = new Uint16Array(room);
    this.#times = new Float64Array(room);
    this.#consumers = new Uint32Array(room);
    this.#keys = [];
    for (let offset = this.#committed; offset < this.#end; offset += 1) {
      const from = offset % oldRoom;
      const to = offset % room;
      this.#states[to] = states[from] ?? 0;
      this.#deliveries[to] = deliveries[from] ?? 0;
      this.#times[to] = times[from] ?? 0;
      this.#consumers[to] = consumers[from] ?? 0;
      this.#keys[to] = keys[from];
    }
  }
}

function noteKey(byKey: Map<string, number[]>, key: string | undefined, offset: number): void {
  if (key === undefined) return;
  const offsets = byKey.get(key);
  if (offsets === undefined) byKey.set(key, [offset]);
  else offsets.push(offset);
}
