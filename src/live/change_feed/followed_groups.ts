/**
 * Holds the groups of a feed that have followers. It determines which columns to read for these
 * groups, and which groups a change may concern.
 *
 * Invariant: each group locates its columns in the feed's batches through its `sources`.
 */
import { assert } from "../../base/assert.ts";
import type { LiveEquality } from "../../sql/mod.ts";
import type { ChangeBatch } from "../../storage/mod.ts";
import type { GroupMember, SubscriptionGroup } from "../delivery/groups.ts";
import { type DueRows, PredicateIndex } from "./predicate_index.ts";

export class FollowedGroups<Member extends GroupMember> {
  readonly #index = new PredicateIndex<SubscriptionGroup<Member>>();
  readonly #columns = new FeedColumns();
  #only: SubscriptionGroup<Member> | undefined;

  /** The table columns that the change feed reads for all of its groups. */
  get columnIds(): readonly number[] {
    return this.#columns.ids;
  }

  /**
   * The only group with followers, provided that every change concerns it; otherwise undefined.
   */
  get only(): SubscriptionGroup<Member> | undefined {
    return this.#only;
  }

  /** The number of groups without an indexed condition. Every change concerns them. */
  get unindexedCount(): number {
    return this.#index.always.size;
  }

  /** Returns the number of groups indexed by the given condition. */
  countOf(equality: LiveEquality | undefined): number {
    return this.#index.countOf(equality);
  }

  add(group: SubscriptionGroup<Member>): void {
    this.#columns.add(group.program.storedColumnIds);
    group.sources = group.program.sourcesIn(this.#columns.ids);
    this.#index.add(group);
    this.#noteOnly();
  }

  remove(group: SubscriptionGroup<Member>): void {
    this.#index.remove(group);
    this.#noteOnly();
    this.#columns.remove(group.program.storedColumnIds);
  }

  /**
   * Yields each group that a batch may concern, with the rows that may concern the group, or with
   * undefined for all rows.
   */
  *due(batch: ChangeBatch): Generator<readonly [SubscriptionGroup<Member>, DueRows | undefined]> {
    for (const group of this.#index.always) yield [group, undefined];
    if (this.#index.hasConditions) yield* this.#index.candidates(batch, this.#columns.ids);
  }

  /**
   * Removes columns that no group needs. Must not be called while a batch is being read.
   *
   * @param groups Returns all groups of the feed.
   */
  compactColumns(groups: () => readonly SubscriptionGroup<Member>[]): void {
    if (!this.#columns.compact()) return;
    for (const group of groups()) group.sources = group.program.sourcesIn(this.#columns.ids);
  }

  #noteOnly(): void {
    const { always, hasConditions } = this.#index;
    this.#only = always.size === 1 && !hasConditions ? [...always][0] : undefined;
  }
}

/**
 * The columns that a feed reads: the union of the columns of its groups with followers.
 *
 * Invariant: a column that a group reads keeps its position until `compact` reports that positions
 * have changed, because groups address columns by position.
 */
export class FeedColumns {
  #ids: number[] = [];
  /** For each column, the number of groups with followers that read it. */
  readonly #uses = new Map<number, number>();

  /**
   * The ids of the columns, in the order in which batches contain them. Some of these columns may
   * no longer be in use.
   */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** Adds the columns of a group that has gained its first follower. */
  add(columnIds: readonly number[]): void {
    for (const columnId of columnIds) {
      const uses = this.#uses.get(columnId) ?? 0;
      this.#uses.set(columnId, uses + 1);
      if (uses === 0 && !this.#ids.includes(columnId)) this.#ids.push(columnId);
    }
  }

  /** Removes the columns of a group that has lost its last follower. */
  remove(columnIds: readonly number[]): void {
    for (const columnId of columnIds) {
      const uses = this.#uses.get(columnId) ?? 0;
      assert(uses > 0, "change feed: released column has no remaining uses");
      if (uses > 1) this.#uses.set(columnId, uses - 1);
      else this.#uses.delete(columnId);
    }
  }

  /**
   * Removes the unused columns once they are more than half of all columns. After a removal, every
   * group has to look up its columns again.
   *
   * @returns Whether columns have moved.
   */
  compact(): boolean {
    if (this.#ids.length <= 2 * this.#uses.size) return false;
    this.#ids = [...this.#uses.keys()];
    return true;
  }
}
