/**
 * The groups of a feed that have followers: the columns that are read for them, and which of them a
 * change may concern.
 *
 * Invariant: each finds its columns in the batches of the feed by its `sources`.
 */
import type { LiveEquality } from "../sql/mod.ts";
import type { ChangeBatch } from "../storage/mod.ts";
import { FeedColumns } from "./feed_columns.ts";
import type { Group, GroupMember } from "./groups.ts";
import { type DueRows, PredicateIndex } from "./predicate_index.ts";

export class FollowedGroups<Member extends GroupMember> {
  readonly #index = new PredicateIndex<Group<Member>>();
  readonly #columns = new FeedColumns();
  #only: Group<Member> | undefined;

  /** What is read for all of them. */
  get columnIds(): readonly number[] {
    return this.#columns.ids;
  }

  /** The group that follows, while no other does and every change concerns it. */
  get only(): Group<Member> | undefined {
    return this.#only;
  }

  /** How many have no condition that finds them: every change concerns these. */
  get unindexedCount(): number {
    return this.#index.always.size;
  }

  /** How many a condition finds. */
  countOf(equality: LiveEquality | undefined): number {
    return this.#index.countOf(equality);
  }

  add(group: Group<Member>): void {
    this.#columns.add(group.program.storedColumnIds);
    group.sources = group.program.sourcesIn(this.#columns.ids);
    this.#index.add(group);
    this.#noteOnly();
  }

  remove(group: Group<Member>): void {
    this.#index.remove(group);
    this.#noteOnly();
    this.#columns.remove(group.program.storedColumnIds);
  }

  /** The groups that a batch may concern, and which rows of it; undefined for all. */
  *due(batch: ChangeBatch): Generator<readonly [Group<Member>, DueRows | undefined]> {
    for (const group of this.#index.always) yield [group, undefined];
    if (this.#index.hasConditions) yield* this.#index.candidates(batch, this.#columns.ids);
  }

  /** Drops columns that nobody needs, not while a batch is read. @param groups All of them. */
  compactColumns(groups: () => readonly Group<Member>[]): void {
    if (!this.#columns.compact()) return;
    for (const group of groups()) group.sources = group.program.sourcesIn(this.#columns.ids);
  }

  #noteOnly(): void {
    const { always, hasConditions } = this.#index;
    this.#only = always.size === 1 && !hasConditions ? [...always][0] : undefined;
  }
}
