/**
 * Keeps the feeds of all partitions. Each partition has one feed for most of its queries, and a
 * separate feed for each query too slow to share one. Without separate feeds, if one user had a
 * hundred filters that take 2 ms per row, they would delay a change of 200 rows by 20 s for all
 * other queries.
 *
 * Invariant: a feed is listed here exactly while it has groups.
 */

/** The rows of one table that belong to one owner. */
export interface PartitionKey {
  readonly tableId: number;
  readonly owner: number;
}

type ByPartition<Entry> = Map<number, Map<number, Entry>>;

export class ChangeFeeds<Feed extends PartitionKey> {
  readonly #shared: ByPartition<Feed> = new Map();
  /** The slow feeds of each partition, keyed by the fingerprint of their query. */
  readonly #slow: ByPartition<Map<string, Feed>> = new Map();

  get isEmpty(): boolean {
    return this.#shared.size === 0 && this.#slow.size === 0;
  }

  /** Returns the feed shared by the queries of a partition; undefined if there is none. */
  shared({ tableId, owner }: PartitionKey): Feed | undefined {
    return this.#shared.get(tableId)?.get(owner);
  }

  /** Returns the feeds of the partition's slow queries. */
  slow({ tableId, owner }: PartitionKey): Iterable<Feed> {
    // This check is a fast path: the method runs on every commit, and most servers have no slow
    // queries.
    if (this.#slow.size === 0) return [];
    return this.#slow.get(tableId)?.get(owner)?.values() ?? [];
  }

  /** Returns the separate feed of a slow query; undefined if the query has no separate feed. */
  ofSlow({ tableId, owner }: PartitionKey, fingerprint: string): Feed | undefined {
    return this.#slow.get(tableId)?.get(owner)?.get(fingerprint);
  }

  ofPartition(partition: PartitionKey): Feed[] {
    const shared = this.shared(partition);
    return [...(shared === undefined ? [] : [shared]), ...this.slow(partition)];
  }

  ofTable(tableId: number): Feed[] {
    const feeds = [...(this.#shared.get(tableId)?.values() ?? [])];
    for (const byFingerprint of this.#slow.get(tableId)?.values() ?? []) {
      feeds.push(...byFingerprint.values());
    }
    return feeds;
  }

  all(): Feed[] {
    const tableIds = new Set([...this.#shared.keys(), ...this.#slow.keys()]);
    return [...tableIds].flatMap((tableId) => this.ofTable(tableId));
  }

  addShared(feed: Feed): void {
    ownersOf(this.#shared, feed).set(feed.owner, feed);
  }

  addSlow(feed: Feed, fingerprint: string): void {
    const byOwner = ownersOf(this.#slow, feed);
    const known = byOwner.get(feed.owner);
    if (known === undefined) {
      byOwner.set(feed.owner, new Map([[fingerprint, feed]]));
      return;
    }
    // A client that subscribed during a review may have caused a second group to be created for
    // the same query.
    let key = fingerprint;
    while (known.has(key)) key += " again";
    known.set(key, feed);
  }

  /** Removes a feed from the list. @param feed A feed listed here. */
  remove(feed: PartitionKey): void {
    if (this.shared(feed) === feed) {
      forgetOwner(this.#shared, feed);
      return;
    }
    const slow = this.#slow.get(feed.tableId)?.get(feed.owner);
    for (const [fingerprint, known] of slow ?? []) if (known === feed) slow?.delete(fingerprint);
    if (slow?.size === 0) forgetOwner(this.#slow, feed);
  }
}

function ownersOf<Entry>(
  byTable: ByPartition<Entry>,
  { tableId }: PartitionKey,
): Map<number, Entry> {
  const known = byTable.get(tableId);
  if (known !== undefined) return known;
  const made = new Map<number, Entry>();
  byTable.set(tableId, made);
  return made;
}

function forgetOwner<Entry>(byTable: ByPartition<Entry>, { owner, tableId }: PartitionKey): void {
  const byOwner = byTable.get(tableId);
  byOwner?.delete(owner);
  if (byOwner?.size === 0) byTable.delete(tableId);
}
