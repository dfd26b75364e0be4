/**
 * The ledger of the rows actually written: every version acknowledged by a statement, in the order
 * of sequence ids. Nothing in the ledger comes from a subscription.
 *
 * A version may be delivered before its writer has the response, so the ledger also records the
 * seq up to which it is complete: a pending statement gets ids above everything acknowledged
 * before it was sent.
 */

/** A row of `live.items` or `live.board`. */
export interface Row {
  readonly id: number;
  readonly room: string | null;
  readonly n: number | null;
  readonly body: string | null;
}

export interface Version {
  readonly seq: number;
  readonly isDeleted: boolean;
  /** The new values of a row; for a delete, its last values. */
  readonly row: Row;
  /** The version of the row that this version replaced. */
  readonly before: Version | undefined;
}

/** The rows written by a statement, as reported by its RETURNING clause. */
export interface Written {
  readonly seq: number;
  readonly isDeleted: boolean;
  readonly row: Row;
}

/** The rows of one table that belong to one owner. */
export class Partition {
  readonly name: string;
  /** The versions in ascending order of seq, complete up to the ledger's `completeSeq`. */
  readonly versions: Version[] = [];
  readonly #newest = new Map<number, Version>();
  #unsorted: Written[] = [];

  constructor(name: string) {
    this.name = name;
  }

  add(written: Written): void {
    this.#unsorted.push(written);
  }

  /** Returns the seq of the newest version of each key, whether or not the version is settled. */
  newestSeqs(): Map<number, number> {
    const seqs = new Map([...this.#newest].map(([id, { seq }]) => [id, seq]));
    for (const { row, seq } of this.#unsorted) {
      seqs.set(row.id, Math.max(seqs.get(row.id) ?? 0, seq));
    }
    return seqs;
  }

  /** Returns the rows that are live at a seq, in ascending order of their own seqs. */
  settle(completeSeq: number): void {
    const ready = this.#unsorted.filter(({ seq }) => seq <= completeSeq);
    if (ready.length === 0) return;
    this.#unsorted = this.#unsorted.filter(({ seq }) => seq > completeSeq);
    for (const { seq, isDeleted, row } of ready.toSorted((left, right) => left.seq - right.seq)) {
      const last = this.versions.at(-1)?.seq ?? 0;
      if (seq <= last) throw new Error(`${this.name}: _seq ${seq} was issued after ${last}`);
      const version = { seq, isDeleted, row, before: this.#newest.get(row.id) };
      this.#newest.set(row.id, version);
      this.versions.push(version);
    }
  }

  /** Returns the live rows at a seq, ascending by seq. */
  rowsAt(seq: number): Version[] {
    const rows = new Map<number, Version>();
    for (const version of this.versions) {
      if (version.seq > seq) break;
      // The entry of a replaced row is deleted first, so that the row moves to the end.
      rows.delete(version.row.id);
      if (!version.isDeleted) rows.set(version.row.id, version);
    }
    return [...rows.values()];
  }

  /** Returns the index of the first version above a seq. */
  indexAfter(seq: number): number {
    let low = 0;
    let high = this.versions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.versions[middle]?.seq ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class Ledger {
  readonly #partitions = new Map<string, Partition>();
  /**
   * For each statement in progress, the highest seq that had been acknowledged when the statement
   * was sent.
   */
  readonly #underWay = new Map<symbol, number>();
  #acknowledgedSeq = 0;
  #isClosed = false;
  #versionCount = 0;

  get versionCount(): number {
    return this.#versionCount;
  }

  get acknowledgedSeq(): number {
    return this.#acknowledgedSeq;
  }

  /** The seq up to which the ledger is complete. */
  get completeSeq(): number {
    if (this.#isClosed) return Infinity;
    return Math.min(this.#acknowledgedSeq, ...this.#underWay.values());
  }

  partition(name: string): Partition {
    let partition = this.#partitions.get(name);
    if (partition === undefined) {
      partition = new Partition(name);
      this.#partitions.set(name, partition);
    }
    return partition;
  }

  /** Returns the seq of the newest known version of each key of a partition. */
  newestSeqs(partitionName: string): ReadonlyMap<number, number> {
    return this.partition(partitionName).newestSeqs();
  }

  /**
   * Registers a statement that is being sent. The caller must call the returned function with the
   * rows that the statement wrote.
   */
  begin(partitionName: string): (written: readonly Written[]) => void {
    const statement = Symbol(partitionName);
    this.#underWay.set(statement, this.#acknowledgedSeq);
    return (written) => {
      this.#underWay.delete(statement);
      const partition = this.partition(partitionName);
      for (const each of written) {
        partition.add(each);
        this.#versionCount += 1;
        this.#acknowledgedSeq = Math.max(this.#acknowledgedSeq, each.seq);
      }
    };
  }

  /** Marks the ledger as complete, because the writers have finished. */
  close(): void {
    this.#isClosed = true;
  }

  settle(): number {
    const completeSeq = this.completeSeq;
    for (const partition of this.#partitions.values()) partition.settle(completeSeq);
    return completeSeq;
  }
}
