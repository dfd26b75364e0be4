/**
 * The feeds of all partitions: of each one that reads for all its queries, and one for each query
 * that was too slow for that. Without those, a hundred filters of one user that take 2 ms a row
 * hold a change of 200 rows back from everybody else for 20 s.
 *
 * Invariant: a feed is here while it has groups.
 */

/** The rows of one table that belong to one owner. */
export interface Partition {
  readonly tableId: number;
  readonly owner: number;
}

type ByPartition<Entry> = Map<number, Map<number, Entry>>;

export class Feeds<Feed extends Partition> {
  readonly #shared: ByPartition<Feed> = new Map();
  /** Of a partition by the fingerprints of their queries. */
  readonly #slow: ByPartition<Map<string, Feed>> = new Map();

  get isEmpty(): boolean {
    return this.#shared.size === 0 && this.#slow.size === 0;
  }

  /** The feed that the queries of a partition share. */
  shared({ tableId, owner }: Partition): Feed | undefined {
    return this.#shared.get(tableId)?.get(owner);
  }

  /** Those of its slow queries. */
  slow({ tableId, owner }: Partition): Iterable<Feed> {
    // Asked with every commit, and most servers have none.
    if (this.#slow.size === 0) return [];
    return this.#slow.get(tableId)?.get(owner)?.values() ?? [];
  }

  /** The feed of one query, if that is slow. */
  ofSlow({ tableId, owner }: Partition, fingerprint: string): Feed | undefined {
    return this.#slow.get(tableId)?.get(owner)?.get(fingerprint);
  }

  ofPartition(partition: Partition): Feed[] {
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
    // Who subscribed while a changed definition was looked at is in a group of its own.
    let key = fingerprint;
    while (known.has(key)) key += " again";
    known.set(key, feed);
  }

  /** @param feed One that is here. */
  remove(feed: Partition): void {
    if (this.shared(feed) === feed) {
      forgetOwner(this.#shared, feed);
      return;
    }
    const slow = this.#slow.get(feed.tableId)?.get(feed.owner);
    for (const [fingerprint, known] of slow ?? []) if (known === feed) slow?.delete(fingerprint);
    if (slow?.size === 0) forgetOwner(this.#slow, feed);
  }
}

function ownersOf<Entry>(byTable: ByPartition<Entry>, { tableId }: Partition): Map<number, Entry> {
  const known = byTable.get(tableId);
  if (known !== undefined) return known;
  const made = new Map<number, Entry>();
  byTable.set(tableId, made);
  return made;
}

function forgetOwner<Entry>(byTable: ByPartition<Entry>, { owner, tableId }: Partition): void {
  const byOwner = byTable.get(tableId);
  byOwner?.delete(owner);
  if (byOwner?.size === 0) byTable.delete(tableId);
}
