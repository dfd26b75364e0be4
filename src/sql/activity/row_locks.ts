/**
 * Manages the rows that open transactions have locked with SELECT … FOR UPDATE and similar
 * statements.
 *
 * A lock never makes a statement wait. If two transactions try to lock the same row in conflicting
 * strengths, the second one fails or skips the row, even if neither of them writes to the row.
 *
 * - A lock identifies its row by the seq of the row version, so it ends when the row is changed.
 * - After its transaction has committed, a lock still applies to transactions with an older
 *   snapshot, because they do not see the changes of that transaction. Such a lock is discarded
 *   once no transaction can have an older snapshot.
 * - If there are too many such locks, the oldest ones are discarded. Transactions with older
 *   snapshots can then no longer lock rows.
 */
import type { Clock } from "../../base/clock.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { LockStrength } from "../parse/ast/ast.ts";

/** How many locks of committed transactions are kept. */
const PAST_MAX = 100_000;

/** For each lock strength, the strengths that conflict with it, as in PostgreSQL. */
const EXCLUDES: Readonly<Record<LockStrength, readonly LockStrength[]>> = {
  update: ["update", "no key update", "share", "key share"],
  "no key update": ["update", "no key update", "share"],
  share: ["update", "no key update"],
  "key share": ["update"],
};

/** A transaction that has locked rows. */
export interface LockHolder {
  readonly snapshotSeq: Seq;
}

interface PastLock {
  readonly seq: number;
  readonly tableId: number;
  readonly strength: LockStrength;
  readonly committedSeq: Seq;
  readonly atMs: number;
}

interface RowLock {
  readonly tableId: number;
  readonly holders: Map<LockHolder, LockStrength>;
}

export class RowLocks {
  readonly #clock: Clock;
  /** The maximum age of any transaction's snapshot. */
  readonly #snapshotMsMax: number;
  readonly #open = new Map<number, RowLock>();
  readonly #seqsOf = new Map<LockHolder, Set<number>>();
  /** The locks of committed transactions, keyed by seq, oldest first. */
  readonly #past = new Map<number, PastLock>();
  /**
   * Locks of transactions that committed at or before this seq may already have been discarded.
   */
  #forgottenSeq: Seq = SEQ_ZERO;

  constructor(clock: Clock, snapshotMsMax: number) {
    this.#clock = clock;
    this.#snapshotMsMax = snapshotMsMax;
  }

  /** Returns the rows of a table that `holder` cannot lock in the given strength. */
  excluding(
    tableId: number,
    strength: LockStrength,
    holder: LockHolder | undefined,
  ): readonly number[] {
    const seqs = new Set<number>();
    for (const [seq, lock] of this.#open) {
      if (lock.tableId === tableId && isExcluded(lock, strength, holder)) seqs.add(seq);
    }
    for (const past of this.#past.values()) {
      if (past.tableId === tableId && isExcludedBy(past, strength, holder)) seqs.add(past.seq);
    }
    return [...seqs];
  }

  /** Whether another transaction prevents `holder` from locking a row in the given strength. */
  isExcluded(seq: number, strength: LockStrength, holder: LockHolder | undefined): boolean {
    if (holder !== undefined && holder.snapshotSeq < this.#forgottenSeq) return true;
    const lock = this.#open.get(seq);
    if (lock !== undefined && isExcluded(lock, strength, holder)) return true;
    const past = this.#past.get(seq);
    return past !== undefined && isExcludedBy(past, strength, holder);
  }

  /** Returns the strongest lock that a transaction has on a row; undefined if it has none. */
  strengthOf(seq: number, holder: LockHolder): LockStrength | undefined {
    return this.#open.get(seq)?.holders.get(holder);
  }

  /**
   * Restores the lock that a transaction had on a row.
   *
   * @param before The strength of the lock to restore; undefined if the row was not locked.
   */
  restore(seq: number, before: LockStrength | undefined, holder: LockHolder): void {
    const lock = this.#open.get(seq);
    if (lock === undefined) return;
    if (before !== undefined) {
      lock.holders.set(holder, before);
      return;
    }
    lock.holders.delete(holder);
    if (lock.holders.size === 0) this.#open.delete(seq);
    this.#seqsOf.get(holder)?.delete(seq);
  }

  /**
   * Locks a row for a transaction. The caller has checked that no other transaction holds a
   * conflicting lock on it.
   */
  take(
    { seq, tableId }: { seq: number; tableId: number },
    strength: LockStrength,
    holder: LockHolder,
  ): void {
    let lock = this.#open.get(seq);
    if (lock === undefined) {
      lock = { tableId, holders: new Map() };
      this.#open.set(seq, lock);
    }
    const before = lock.holders.get(holder);
    const isStronger = before === undefined || EXCLUDES[strength].length > EXCLUDES[before].length;
    if (isStronger) lock.holders.set(holder, strength);
    const seqs = this.#seqsOf.get(holder);
    if (seqs === undefined) this.#seqsOf.set(holder, new Set([seq]));
    else seqs.add(seq);
  }

  /**
   * Releases all locks of a transaction that has ended.
   *
   * @param committedSeq The newest seq after its commit; absent if it was rolled back.
   */
  release(holder: LockHolder, committedSeq?: Seq): void {
    const seqs = this.#seqsOf.get(holder);
    if (seqs === undefined) return;
    this.#seqsOf.delete(holder);
    const atMs = this.#clock.monotonicMs();
    for (const seq of seqs) {
      const lock = this.#open.get(seq);
      const strength = lock?.holders.get(holder);
      if (lock === undefined || strength === undefined) continue;
      lock.holders.delete(holder);
      if (lock.holders.size === 0) this.#open.delete(seq);
      if (committedSeq === undefined) continue;
      const { tableId } = lock;
      const past = this.#past.get(seq)?.strength ?? strength;
      const stronger = EXCLUDES[past].length > EXCLUDES[strength].length ? past : strength;
      // The entry is deleted first, so that it moves to the end of the map, because the lock now
      // applies for longer.
      this.#past.delete(seq);
      this.#past.set(seq, { seq, tableId, strength: stronger, committedSeq, atMs });
    }
    this.#forgetOld(atMs);
  }

  #forgetOld(nowMs: number): void {
    for (const [seq, { atMs, committedSeq }] of this.#past) {
      const isOld = nowMs - atMs > this.#snapshotMsMax;
      if (!isOld && this.#past.size <= PAST_MAX) return;
      this.#past.delete(seq);
      if (!isOld) this.#forgottenSeq = committedSeq;
    }
  }
}

function isExcluded(
  { holders }: RowLock,
  strength: LockStrength,
  holder: LockHolder | undefined,
): boolean {
  for (const [other, held] of holders) {
    if (other !== holder && EXCLUDES[strength].includes(held)) return true;
  }
  return false;
}

/**
 * Whether a committed transaction's lock prevents another transaction from locking the row. It
 * does if the other transaction cannot see the changes of the committed transaction.
 */
function isExcludedBy(
  { committedSeq, strength: held }: PastLock,
  strength: LockStrength,
  holder: LockHolder | undefined,
): boolean {
  if (holder === undefined || holder.snapshotSeq >= committedSeq) return false;
  return EXCLUDES[strength].includes(held);
}
