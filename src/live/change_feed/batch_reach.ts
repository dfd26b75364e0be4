/**
 * Records which groups are ahead of their feed's position. When a batch does not fit into one
 * tick, some groups have received all of it and one group may have received part of it. A later
 * tick then reads the batch again for the remaining groups.
 */
import type { Seq } from "../../base/seq.ts";
import type { ChangeBatch } from "../../storage/mod.ts";
import { sliceChanges } from "../program/live_program.ts";
import type { DueRows } from "./predicate_index.ts";

export class BatchReach<Group> {
  /**
   * The position of each group that is ahead of the feed. The map is created when the first group
   * gets ahead.
   */
  #seqs: Map<Group, Seq> | undefined;

  of(group: Group): Seq | undefined {
    return this.#seqs?.get(group);
  }

  note(group: Group, seq: Seq): void {
    this.#seqs ??= new Map();
    this.#seqs.set(group, seq);
  }

  /**
   * Records that a group has received everything up to `seq`, unless it has already received more.
   */
  noteAtLeast(group: Group, seq: Seq): void {
    if ((this.#seqs?.get(group) ?? 0) < seq) this.note(group, seq);
  }

  forget(group: Group): void {
    this.#seqs?.delete(group);
  }

  /** Forgets the groups that are no longer ahead, because the feed has reached `seq`. */
  passed(seq: Seq): void {
    if (this.#seqs === undefined) return;
    for (const [group, reached] of this.#seqs) if (reached <= seq) this.#seqs.delete(group);
    if (this.#seqs.size === 0) this.#seqs = undefined;
  }

  clear(): void {
    this.#seqs = undefined;
  }

  /**
   * Returns the rows of a batch that the group has not received yet; undefined if it has received
   * them all.
   *
   * @param due The rows that may concern the group; undefined if all rows of the batch may.
   */
  missingOf(group: Group, batch: ChangeBatch, due: DueRows | undefined): ChangeBatch | undefined {
    const isWhole = due === undefined || due.areAll;
    const reachedSeq = this.#seqs?.get(group);
    if (reachedSeq === undefined) return isWhole ? batch : due.taken(0);
    // The rows are tested before any are copied: when a batch takes many ticks, most groups have
    // already received all of it.
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
