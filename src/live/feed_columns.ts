/**
 * The columns that a feed reads: the union of what its following groups do.
 *
 * Invariant: a column that a group reads keeps its place, since groups know their columns by it,
 * until `compact` says that places have changed.
 */
import { assert } from "../base/assert.ts";

export class FeedColumns {
  #ids: number[] = [];
  /** How many following groups read each column. */
  readonly #uses = new Map<number, number>();

  /** In the order of a batch; some of them nobody may read any more. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** A group reads these from now on. */
  add(columnIds: readonly number[]): void {
    for (const columnId of columnIds) {
      const uses = this.#uses.get(columnId) ?? 0;
      this.#uses.set(columnId, uses + 1);
      if (uses === 0 && !this.#ids.includes(columnId)) this.#ids.push(columnId);
    }
  }

  /** A group reads these no longer. */
  remove(columnIds: readonly number[]): void {
    for (const columnId of columnIds) {
      const uses = this.#uses.get(columnId) ?? 0;
      assert(uses > 0, "a column that is let go was read");
      if (uses > 1) this.#uses.set(columnId, uses - 1);
      else this.#uses.delete(columnId);
    }
  }

  /**
   * Leaves out what nobody reads, once that is more than half: every group has to find its columns
   * again.
   *
   * @returns Whether columns have other places now.
   */
  compact(): boolean {
    if (this.#ids.length <= 2 * this.#uses.size) return false;
    this.#ids = [...this.#uses.keys()];
    return true;
  }
}
