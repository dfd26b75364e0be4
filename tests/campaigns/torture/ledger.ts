/**
 * Keeps the rows that a server must have, derived only from acknowledged changes.
 *
 * A change that was sent but not answered is pending: after a crash, either all of it or none of
 * it is present. Each writer has at most one change in progress, and no two writers touch the same
 * key, so pending changes never overlap.
 */

/** The new text for each touched key, where undefined deletes the key. */
export type Changes = ReadonlyMap<number, string | undefined>;

export interface ObservedRow {
  readonly text: string;
  readonly seq: number;
}

export interface Verdict {
  /** How many keys lack their acknowledged state. */
  lost: number;
  /**
   * The number of keys with a value that no writer wrote, plus the number of keys that reappeared
   * after an acknowledged deletion.
   */
  invented: number;
  /** How many pending changes are only partly present. */
  torn: number;
  /** Descriptions of the first few findings. */
  findings: string[];
}

const FINDINGS_MAX = 10;

/** The expected rows of a table, as one user sees them. */
export class Ledger {
  readonly #texts = new Map<number, string>();
  readonly #pending = new Map<number, Changes>();

  /** The keys that exist according to the acknowledgements. */
  get keys(): readonly number[] {
    return [...this.#texts.keys()];
  }

  has(key: number): boolean {
    return this.#texts.has(key);
  }

  /** Records that a writer is about to send changes. */
  begin(writer: number, changes: Changes): void {
    if (this.#pending.has(writer))
      throw new Error(`Cannot begin a change: writer ${writer} has one in progress`);
    this.#pending.set(writer, changes);
  }

  /** Records that the server reported the changes as durable. */
  acknowledge(writer: number): void {
    this.#apply(this.#pending.get(writer) ?? new Map());
    this.#pending.delete(writer);
  }

  /** Records that the server reported the changes as not made. */
  refuse(writer: number): void {
    this.#pending.delete(writer);
  }

  /**
   * Compares the ledger with the rows after a restart, and adopts the outcome of pending changes.
   */
  judge(observed: ReadonlyMap<number, ObservedRow>): Verdict {
    const verdict: Verdict = { lost: 0, invented: 0, torn: 0, findings: [] };
    const note = (finding: string): void => {
      if (verdict.findings.length < FINDINGS_MAX) verdict.findings.push(finding);
    };
    for (const [writer, changes] of this.#pending) {
      const done = [...changes].filter(([key, text]) => observed.get(key)?.text === text);
      this.#apply(done);
      if (done.length > 0 && done.length < changes.size) {
        verdict.torn += 1;
        note(
          `of ${changes.size} rows that writer ${writer} sent at once, ${done.length} are there`,
        );
      }
    }
    this.#pending.clear();
    for (const [key, text] of this.#texts) {
      const found = observed.get(key)?.text;
      if (found === text) continue;
      verdict.lost += 1;
      note(
        `key ${key} should hold "${text}" and ${found === undefined ? "is not there" : `holds "${found}"`}`,
      );
    }
    for (const [key, { text }] of observed) {
      if (this.#texts.has(key)) continue;
      verdict.invented += 1;
      note(`key ${key} holds "${text}" and should not be there`);
    }
    return verdict;
  }

  #apply(changes: Iterable<readonly [key: number, text: string | undefined]>): void {
    for (const [key, text] of changes) {
      if (text === undefined) this.#texts.delete(key);
      else this.#texts.set(key, text);
    }
  }
}

/** Checks that a seq, once assigned to a version, never identifies any other version. */
export class SeqWatch {
  readonly #versionBySeq = new Map<number, string>();
  readonly #acknowledged = new Set<number>();
  #highest = 0;
  #floor = 0;
  #reusedCount = 0;

  /** The number of seqs that were assigned again, or that were below an older seq. */
  get reusedCount(): number {
    return this.#reusedCount;
  }

  /**
   * From now on, requires every new seq to be above all seqs seen so far. Called when the server
   * has been restarted.
   */
  raiseFloor(): void {
    this.#floor = this.#highest;
  }

  /** Records the highest seq of a commit, taken from its response. */
  acknowledged(seq: number): void {
    if (seq <= this.#floor || this.#acknowledged.has(seq)) this.#reusedCount += 1;
    this.#acknowledged.add(seq);
    this.#highest = Math.max(this.#highest, seq);
  }

  /**
   * Records a seq read from a row.
   * @param version The row version that the seq identifies.
   */
  seen(seq: number, version: string): void {
    const before = this.#versionBySeq.get(seq);
    if (before === undefined ? seq <= this.#floor : before !== version) this.#reusedCount += 1;
    this.#versionBySeq.set(seq, version);
    this.#highest = Math.max(this.#highest, seq);
  }
}
