/**
 * Subscriptions that ask the same of the same rows. A change is evaluated once for the group, and
 * made into one message for each distinct subscription id, because clients of one program tend to
 * choose the same ids.
 *
 * Members are all its subscriptions; followers are those that have everything up to the position
 * of their feed, and so take each change as it comes. Invariant: a member is among the followers or
 * among the others, and never in both.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import type { SubscriptionSpec } from "../protocol/mod.ts";
import type { CompiledExpression, LiveEquality } from "../sql/mod.ts";
import type { SharedMessage } from "./live.ts";
import type { LiveChange, LiveProgram, Sources } from "./live_program.ts";
import {
  type ChangeDraft,
  changeMessage,
  type DraftOptions,
  draftFrom,
  shared,
} from "./messages.ts";

/** What a message of changes moves a follower to. */
export interface Reach {
  /** Of its last change. */
  readonly lastSeq: Seq;
  /** Everything up to here was sent earlier, or does not match. */
  readonly before: Seq;
  /** How many changes it holds. */
  readonly count: number;
}

/** What a group knows of a subscription. */
export interface GroupMember {
  readonly id: string;
  /** Takes a message of changes. */
  take(message: SharedMessage, reach: Reach): void;
  /** Ends it because of what went wrong. */
  fail(error: unknown): void;
}

/** What the feed of a group is to its members. */
export interface GroupFeed<Member extends GroupMember> {
  readonly tableId: number;
  readonly owner: number;
  readonly isEmpty: boolean;
  /** Whether it is not known yet what a changed definition means to the members of a group. */
  isSuspended(group: Group<Member>): boolean;
  /** Every follower of a group has been sent everything up to here. */
  positionOf(group: Group<Member>): Seq;
  /** One more member has everything up to the position, and takes each change from now on. */
  followed(group: Group<Member>): void;
  unfollowed(group: Group<Member>): void;
  /** A subscription is gone, and with the last one its group. */
  left(group: Group<Member>, member: Member): void;
  /** Remembers who is ahead of the feed, or in a group that is suspended. */
  addWaiting(member: Member): void;
}

/** The part of a specification that makes the group. */
export type Asked = Omit<SubscriptionSpec, "id" | "options">;

export class Group<Member extends GroupMember> {
  /** Another one once its query turns out to take long. */
  feed: GroupFeed<Member>;
  /** How many times in a row its feed had to wait for it. */
  slowVisits = 0;
  program: LiveProgram;
  /** What all members ask, each under its own id and with its own options. */
  readonly asked: Asked;
  /** Where the plan's columns are in the batches of the feed; set while there are followers. */
  sources: Sources;
  /** Members that do not follow yet, or not now; made when there are any. */
  #others: Set<Member> | undefined;
  /** The follower of a group that has no other, which is most groups of users' own rows. */
  #only: Member | undefined;
  /** All of them by id, once there was a second. Most ids have one, which needs no set. */
  #followers: Map<string, Member | Set<Member>> | undefined;
  #followerCount = 0;

  constructor(feed: GroupFeed<Member>, program: LiveProgram, asked: Asked) {
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

  /** The part of the filter that the index of the feed does not decide. */
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

  /** All members, as of now. */
  members(): Member[] {
    const all = this.followers();
    for (const member of this.#others ?? []) all.push(member);
    return all;
  }

  /** A subscription begins. */
  join(member: Member): void {
    this.#others ??= new Set();
    this.#others.add(member);
  }

  /** A subscription, which does not follow any more, is over. */
  leave(member: Member): void {
    this.#removeOther(member);
    this.feed.left(this, member);
  }

  /** A member that has everything up to the position of the feed takes each change from now on. */
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
   * @param after Position of the group before the changes.
   * @returns How many messages were sent.
   */
  deliver(changes: readonly LiveChange[], after: Seq, options: DraftOptions): number {
    let sentCount = 0;
    let before = after;
    for (let start = 0; start < changes.length; ) {
      const draft = draftFrom(changes, start, { ...options, countMax: changes.length });
      sentCount += this.#send(draft, { lastSeq: draft.lastSeq, before, count: draft.count });
      before = draft.lastSeq;
      start += draft.count;
    }
    return sentCount;
  }

  #removeOther(member: Member): void {
    const isThere = this.#others?.delete(member);
    assert(isThere === true, "who leaves or follows a group is its member and does not follow yet");
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
      assert(this.#only === member, "who stops following a group follows it");
      this.#only = undefined;
    } else {
      removeFrom(this.#followers, member);
      if (this.#followers.size === 0) this.#followers = undefined;
    }
    this.#followerCount -= 1;
  }

  /** Sends one message to each follower. Returns how many that were. */
  #send(draft: ChangeDraft, reach: Reach): number {
    const only = this.#only;
    if (only !== undefined) {
      only.take(shared(changeMessage(draft, only.id)), reach);
      return 1;
    }
    let sentCount = 0;
    for (const [id, sameId] of this.#followers ?? []) {
      const message = shared(changeMessage(draft, id));
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
    assert(isThere, "who stops following a group follows it");
    if (sameId.size === 0) followers.delete(member.id);
  } else {
    assert(sameId === member, "who stops following a group follows it");
    followers.delete(member.id);
  }
}
