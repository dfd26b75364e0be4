/**
 * Groups subscriptions that run the same query over the same rows. A change is evaluated once per
 * group and turned into one message per distinct subscription id. Clients running the same program
 * tend to choose the same ids.
 *
 * All subscriptions in a group are its members. A member is a follower once it has received
 * everything up to the position of the feed; from then on it receives each change as it occurs.
 * Invariant: a member is either among the followers or among the others, never in both.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { SubscriptionSpec } from "../../protocol/mod.ts";
import type { CompiledExpression, LiveEquality } from "../../sql/mod.ts";
import type { SharedMessage } from "../contract/live.ts";
import type { LiveChange, LiveProgram, Sources } from "../program/live_program.ts";
import {
  changeMessage,
  type PendingChange,
  type PendingChangeOptions,
  pendingChangeFrom,
  shared,
} from "./messages.ts";

/** The range of seqs that a message of changes covers for a follower. */
export interface Reach {
  /** The seq of the last change in the message. */
  readonly lastSeq: Seq;
  /** The seq up to which every matching change had been sent before this message. */
  readonly before: Seq;
  /** The number of changes in the message. */
  readonly count: number;
}

/** The interface through which a group uses its subscriptions. */
export interface GroupMember {
  readonly id: string;
  /** Receives a message of changes. */
  take(message: SharedMessage, reach: Reach): void;
  /** Ends the member because of a failure. */
  fail(error: unknown): void;
}

/** The interface through which groups use their change feed. */
export interface GroupChangeFeed<Member extends GroupMember> {
  readonly tableId: number;
  readonly owner: number;
  readonly isEmpty: boolean;
  /** Returns whether the group is still waiting for its review after a definition has changed. */
  isSuspended(group: SubscriptionGroup<Member>): boolean;
  /** Returns the seq up to which every follower of the group has been sent everything. */
  positionOf(group: SubscriptionGroup<Member>): Seq;
  /** Called when a member has caught up with the feed and will receive each change from now on. */
  followed(group: SubscriptionGroup<Member>): void;
  unfollowed(group: SubscriptionGroup<Member>): void;
  /** Called when a subscription has ended. The group ends together with its last subscription. */
  left(group: SubscriptionGroup<Member>, member: Member): void;
  /**
   * Registers a member that is ahead of the feed or belongs to a suspended group, so that the feed
   * resumes it later.
   */
  addWaiting(member: Member): void;
}

/** The part of a subscription request that determines its group. */
export type QuerySpec = Omit<SubscriptionSpec, "id" | "options">;

export class SubscriptionGroup<Member extends GroupMember> {
  /** The feed that the group follows. It is replaced if the query turns out to be slow. */
  feed: GroupChangeFeed<Member>;
  /** How many times in a row the feed had to wait for this group. */
  slowVisits = 0;
  program: LiveProgram;
  /** The query shared by all members. Each member has its own id and options. */
  readonly asked: QuerySpec;
  /**
   * The indexes of the plan's columns in the feed's batches, valid only while the group has
   * followers.
   */
  sources: Sources;
  /**
   * The members that are not currently followers. The set is created for the first such member.
   */
  #others: Set<Member> | undefined;
  /**
   * The only follower, if there is exactly one. Most groups that follow a user's own rows have a
   * single follower.
   */
  #only: Member | undefined;
  /**
   * All followers, keyed by subscription id; created when a second follower is added. For an id
   * with a single follower, the map contains the follower itself rather than a set, because most
   * ids have only one.
   */
  #followers: Map<string, Member | Set<Member>> | undefined;
  #followerCount = 0;

  constructor(feed: GroupChangeFeed<Member>, program: LiveProgram, asked: QuerySpec) {
    this.feed = feed;
    this.program = program;
    this.asked = asked;
    this.sources = program.ownSources;
  }

  get equality(): LiveEquality | undefined {
    const { equality } = this.program.plan;
    if (equality === undefined) return undefined;
    return this.program.storedColumnIds.includes(equality.columnId) ? equality : undefined;
  }

  /** The part of the filter not already decided by the feed's index. */
  get filter(): CompiledExpression | undefined {
    const { equality } = this;
    return equality === undefined ? this.program.plan.filter : equality.rest;
  }

  get followerCount(): number {
    return this.#followerCount;
  }

  get memberCount(): number {
    return this.#followerCount + (this.#others?.size ?? 0);
  }

  /** Returns a copy of the current list of members. */
  members(): Member[] {
    const all = this.followers();
    for (const member of this.#others ?? []) all.push(member);
    return all;
  }

  /** Adds a new subscription. */
  join(member: Member): void {
    this.#others ??= new Set();
    this.#others.add(member);
  }

  /** Removes an ended subscription. It must no longer be a follower. */
  leave(member: Member): void {
    this.#removeOther(member);
    this.feed.left(this, member);
  }

  /** Turns a member that has received everything up to the feed's position into a follower. */
  follow(member: Member): void {
    this.#removeOther(member);
    this.#addFollower(member);
    this.feed.followed(this);
  }

  unfollow(member: Member): void {
    this.#removeFollower(member);
    this.join(member);
    this.feed.unfollowed(this);
  }

  followers(): Member[] {
    const all: Member[] = this.#only === undefined ? [] : [this.#only];
    for (const sameId of this.#followers?.values() ?? []) {
      if (sameId instanceof Set) for (const member of sameId) all.push(member);
      else all.push(sameId);
    }
    return all;
  }

  /**
   * Sends changes to the followers, in order.
   *
   * @param after The position of the group before these changes.
   * @returns The number of messages sent.
   */
  deliver(changes: readonly LiveChange[], after: Seq, options: PendingChangeOptions): number {
    let sentCount = 0;
    let before = after;
    for (let start = 0; start < changes.length; ) {
      const pending = pendingChangeFrom(changes, start, options);
      sentCount += this.#send(pending, { lastSeq: pending.lastSeq, before, count: pending.count });
      before = pending.lastSeq;
      start += pending.count;
    }
    return sentCount;
  }

  #removeOther(member: Member): void {
    const isThere = this.#others?.delete(member);
    assert(
      isThere === true,
      "subscription group: member to be moved or removed is not in the group",
    );
    if (this.#others?.size === 0) this.#others = undefined;
  }

  #addFollower(member: Member): void {
    this.#followerCount += 1;
    if (this.#followers === undefined) {
      if (this.#only === undefined) {
        this.#only = member;
        return;
      }
      this.#followers = new Map([[this.#only.id, this.#only]]);
      this.#only = undefined;
    }
    const sameId = this.#followers.get(member.id);
    if (sameId === undefined) this.#followers.set(member.id, member);
    else if (sameId instanceof Set) sameId.add(member);
    else this.#followers.set(member.id, new Set([sameId, member]));
  }

  #removeFollower(member: Member): void {
    if (this.#followers === undefined) {
      assert(this.#only === member, "subscription group: member to be removed is not a follower");
      this.#only = undefined;
    } else {
      removeFrom(this.#followers, member);
      if (this.#followers.size === 0) this.#followers = undefined;
    }
    this.#followerCount -= 1;
  }

  /** Sends a message to each follower. Returns the number of messages. */
  #send(pending: PendingChange, reach: Reach): number {
    const only = this.#only;
    if (only !== undefined) {
      only.take(shared(changeMessage(pending, only.id)), reach);
      return 1;
    }
    let sentCount = 0;
    for (const [id, sameId] of this.#followers ?? []) {
      const message = shared(changeMessage(pending, id));
      if (sameId instanceof Set) {
        sentCount += sameId.size;
        for (const follower of sameId) follower.take(message, reach);
      } else {
        sentCount += 1;
        sameId.take(message, reach);
      }
    }
    return sentCount;
  }
}

function removeFrom<Member extends GroupMember>(
  followers: Map<string, Member | Set<Member>>,
  member: Member,
): void {
  const sameId = followers.get(member.id);
  if (sameId instanceof Set) {
    const isThere = sameId.delete(member);
    assert(isThere, "subscription group: member to be removed is not a follower");
    if (sameId.size === 0) followers.delete(member.id);
  } else {
    assert(sameId === member, "subscription group: member to be removed is not a follower");
    followers.delete(member.id);
  }
}
