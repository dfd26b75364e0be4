/**
 * How far groups are that are further than the position of their feed: in a batch that did not fit
 * its turn, some have all of it, and one a part. The batch is read again for the others.
 */
import type { Seq } from "../base/seq.ts";
import type { ChangeBatch } from "../storage/mod.ts";
import { sliceChanges, takeChanges } from "./live_program.ts";

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
   * @param rows Ascending; undefined for all.
   */
  missingOf(
    group: Group,
    batch: ChangeBatch,
    rows: readonly number[] | undefined,
  ): ChangeBatch | undefined {
    const isWhole = rows === undefined || rows.length === batch.rowCount;
    const reachedSeq = this.#seqs?.get(group);
    if (reachedSeq === undefined) return isWhole ? batch : takeRows(batch, rows);
    // Asked before anything is copied: in a batch of many turns most groups have all of it.
    const isMissing = (row: number): boolean => (batch.seqs[row] ?? 0) > reachedSeq;
    if (!isMissing(batch.rowCount - 1)) return undefined;
    if (isWhole) {
      const start = batch.seqs.findIndex((seq) => seq > reachedSeq);
      return sliceChanges(batch, start, batch.rowCount);
    }
    const missing = rows.filter(isMissing);
    return missing.length === 0 ? undefined : takeRows(batch, missing);
  }
}

function takeRows(batch: ChangeBatch, rows: readonly number[]): ChangeBatch {
  return takeChanges(batch, { rows: Uint32Array.from(rows), count: rows.length });
}
