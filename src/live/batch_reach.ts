/**
 * How far groups are that are further than the position of their feed: in a batch that did not fit
 * its turn, some have all of it, and one a part. The batch is read again for the others.
 */
import type { Seq } from "../base/seq.ts";
import type { ChangeBatch } from "../storage/mod.ts";
import { sliceChanges } from "./live_program.ts";
import type { DueRows } from "./predicate_index.ts";

export class BatchReach<Group> {
  /** Made when there are any. */
  #seqs: Map<Group, Seq> | undefined;

  of(group: Group): Seq | undefined {
    return this.#seqs?.get(group);
  }

  note(group: Group, seq: Seq): void {
    this.#seqs ??= new Map();
    this.#seqs.set(group, seq);
  }

  /** Groups have all up to a seq: noted of those that are not further yet. */
  noteAtLeast(group: Group, seq: Seq): void {
    if ((this.#seqs?.get(group) ?? 0) < seq) this.note(group, seq);
  }

  forget(group: Group): void {
    this.#seqs?.delete(group);
  }

  /** The feed has come to a seq. */
  passed(seq: Seq): void {
    if (this.#seqs === undefined) return;
    for (const [group, reached] of this.#seqs) if (reached <= seq) this.#seqs.delete(group);
    if (this.#seqs.size === 0) this.#seqs = undefined;
  }

  clear(): void {
    this.#seqs = undefined;
  }

  /**
   * The given rows of a batch, or all, without those that the group has; undefined for none.
   *
   * @param due Undefined for all rows.
   */
  missingOf(group: Group, batch: ChangeBatch, due: DueRows | undefined): ChangeBatch | undefined {
    const isWhole = due === undefined || due.areAll;
    const reachedSeq = this.#seqs?.get(group);
    if (reachedSeq === undefined) return isWhole ? batch : due.taken(0);
    // Asked before anything is copied: in a batch of many turns most groups have all of it.
    const isMissing = (row: number): boolean => (batch.seqs[row] ?? 0) > reachedSeq;
    if (!isMissing(batch.rowCount - 1)) return undefined;
    if (isWhole) {
      const start = batch.seqs.findIndex((seq) => seq > reachedSeq);
      return sliceChanges(batch, start, batch.rowCount);
    }
    const start = due.rows.findIndex(isMissing);
    return start === -1 ? undefined : due.taken(start);
  }
}
