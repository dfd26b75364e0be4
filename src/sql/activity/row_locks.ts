/**
 * The rows that open transactions have locked by SELECT … FOR UPDATE and its kin.
 *
 * A lock delays nobody. It makes two transactions that lock the same row conflict, although
 * neither may write it: the later one fails when it locks the row, or passes it by.
 *
 * - A row is known by the seq of its version, so a lock does not outlive a change of its row.
 * - A lock of a committed transaction still counts for transactions with an older snapshot, because
 *   they do not see what that transaction has done. It is forgotten once no snapshot can be as old.
 * - If there are too many of those, the oldest are forgotten, and transactions with a snapshot as
 *   old can lock nothing any more.
 */
import type { Clock } from "../../base/clock.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { LockStrength } from "../parse/ast/ast.ts";

/** The number of locks of committed transactions that are kept. */
const PAST_MAX = 100_000;

/** The strengths that exclude each strength, as in PostgreSQL. */
const EXCLUDES: Readonly<Record<LockStrength, readonly LockStrength[]>> = {
  update: ["update", "no key update", "share", "key share"],
  "no key update": ["update", "no key update", "share"],
  share: ["update", "no key update"],
  "key share": ["update"],
};

/** A transaction that locks rows. */
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
  /** The maximum age of a snapshot. */
  readonly #snapshotMsMax: number;
  readonly #open = new Map<number, RowLock>();
  readonly #seqsOf = new Map<LockHolder, Set<number>>();
  /** Locks of committed transactions by seq, oldest first. */
  readonly #past = new Map<number, PastLock>();
  /** Locks up to this seq of their commit may be forgotten. */
  #forgottenSeq: Seq = SEQ_ZERO;

  constructor(clock: Clock, snapshotMsMax: number) {
    this.#clock = clock;
    this.#snapshotMsMax = snapshotMsMax;
  }

  /** Returns the rows of a table that exclude a lock of this strength by `holder`. */
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

  /** Whether a lock of this strength on a row is excluded. */
  isExcluded(seq: number, strength: LockStrength, holder: LockHolder | undefined): boolean {
    if (holder !== undefined && holder.snapshotSeq < this.#forgottenSeq) return true;
    const lock = this.#open.get(seq);
    if (lock !== undefined && isExcluded(lock, strength, holder)) return true;
    const past = this.#past.get(seq);
    return past !== undefined && isExcludedBy(past, strength, holder);
  }

  /** Returns how strongly a transaction holds a row; undefined if not at all. */
  strengthOf(seq: number, holder: LockHolder): LockStrength | undefined {
    return this.#open.get(seq)?.holders.get(holder);
  }

  /** Restores what a transaction held of a row. @param before Undefined if it held nothing. */
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

  /** Locks a row that no lock of another transaction excludes. */
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
      // Moved to the end, because it counts for longer now.
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

/** Whether a transaction cannot see the changes of the transaction that had a past lock. */
function isExcludedBy(
  { committedSeq, strength: held }: PastLock,
  strength: LockStrength,
  holder: LockHolder | undefined,
): boolean {
  if (holder === undefined || holder.snapshotSeq >= committedSeq) return false;
  return EXCLUDES[strength].includes(held);
}
