/**
 * Subscriptions that ask the same of the same rows. A change is evaluated once for the group, and
 * made into one message for each distinct subscription id, because clients of one program tend to
 * choose the same ids.
 *
 * Members are all its subscriptions; followers are those that have everything up to the position
 * of their feed, and so take each change as it comes.
 */
import type { Seq } from "../base/seq.ts";
import type { SubscriptionSpec } from "../protocol/mod.ts";
import type { SharedMessage } from "./live.ts";
import type { LiveChange, LiveQuery, Sources } from "./live_query.ts";
import { changeMessage, draftFrom, shared } from "./messages.ts";
import type { Equality } from "./predicate_index.ts";

/** What a group knows of a subscription. */
export interface Follower {
  readonly id: string;
  /**
   * Takes a message of changes.
   *
   * @param reach `lastSeq` is the seq of its last change; everything up to `before` was sent
   * earlier, or does not match.
   */
  take(message: SharedMessage, reach: { lastSeq: Seq; before: Seq; count: number }): void;
  /** Ends it because of what went wrong. */
  fail(error: unknown): void;
}

/** The part of a specification that makes the group. */
export type Asked = Omit<SubscriptionSpec, "id" | "options">;

export class Group<Member extends Follower> {
  query: LiveQuery;
  /** What all members ask, each under its own id and with its own options. */
  readonly asked: Asked;
  /** Where the plan's columns are in the batches of the feed; set while there are followers. */
  sources: Sources;
  readonly members: Set<Member> = new Set();
  /** By id. Most ids have one follower, which needs no set of its own. */
  readonly #followers = new Map<string, Member | Set<Member>>();
  #followerCount = 0;

  constructor(query: LiveQuery, asked: Asked) {
    this.query = query;
    this.asked = asked;
    this.sources = query.ownSources;
  }

  get equality(): Equality | undefined {
    const { equality } = this.query.plan;
    if (equality === undefined) return undefined;
    return this.query.storedColumnIds.includes(equality.columnId) ? equality : undefined;
  }

  get followerCount(): number {
    return this.#followerCount;
  }

  follow(member: Member): void {
    const sameId = this.#followers.get(member.id);
    if (sameId === undefined) this.#followers.set(member.id, member);
    else if (sameId instanceof Set) sameId.add(member);
    else this.#followers.set(member.id, new Set([sameId, member]));
    this.#followerCount += 1;
  }

  unfollow(member: Member): void {
    const sameId = this.#followers.get(member.id);
    if (sameId instanceof Set) {
      if (!sameId.delete(member)) return;
      if (sameId.size === 0) this.#followers.delete(member.id);
    } else {
      if (sameId !== member) return;
      this.#followers.delete(member.id);
    }
    this.#followerCount -= 1;
  }

  followers(): Member[] {
    const all: Member[] = [];
    for (const sameId of this.#followers.values()) {
      if (sameId instanceof Set) all.push(...sameId);
      else all.push(sameId);
    }
    return all;
  }

  /**
   * Sends changes to the followers, in order.
   *
   * @param after Position of the feed before the changes.
   * @returns How many messages were sent.
   */
  deliver(changes: readonly LiveChange[], after: Seq, frameBytesMax: number): number {
    let sentCount = 0;
    let before = after;
    for (let start = 0; start < changes.length; ) {
      const draft = draftFrom(changes, start, { countMax: changes.length, frameBytesMax });
      const reach = { lastSeq: draft.lastSeq, before, count: draft.count };
      for (const [id, sameId] of this.#followers) {
        const message = shared(changeMessage(draft, id));
        if (sameId instanceof Set) {
          sentCount += sameId.size;
          for (const follower of sameId) follower.take(message, reach);
        } else {
          sentCount += 1;
          sameId.take(message, reach);
        }
      }
      before = draft.lastSeq;
      start += draft.count;
    }
    return sentCount;
  }
}
