/**
 * Lists the commits of a round with the tables that they changed.
 *
 * A query has the same rows after two commits if neither the later commit nor a commit between
 * them changed a table that it reads. So the SELECT after one commit also judges the states up to
 * the next commit that changed such a table.
 *
 * A killed server may have committed without a response, and a changed definition may write rows.
 * The commits of such a burst are not known.
 */
import type { Schema } from "./tables.ts";

/** A commit, and the tables that it may have changed. */
export interface Commit {
  readonly seq: number;
  readonly tables: ReadonlySet<string>;
}

/** The table that row policies look up. */
const GUESTS = "guests";

export class CommitLedger {
  /** The known commits in the order of their seqs; undefined if some of them are not known. */
  #commits: Commit[] | undefined;
  /** The seq after which all commits are known. */
  #startSeq = 0;
  /**
   * For each set of tables that a query reads, the seqs of the commits that changed one of these
   * tables.
   */
  readonly #seqs = new Map<ReadonlySet<string>, number[]>();

  /** Whether all commits since the last burst are known. */
  get isComplete(): boolean {
    return this.#commits !== undefined;
  }

  /** Begins a new list that contains the commits after a seq. */
  begin(seq: number): void {
    this.#commits = [];
    this.#startSeq = seq;
    this.#seqs.clear();
  }

  /** Adds the commits of a burst. */
  add(commits: readonly Commit[]): void {
    this.#commits?.push(...commits.toSorted((left, right) => left.seq - right.seq));
    this.#seqs.clear();
  }

  /** Forgets all commits, because some commits are not known. */
  lose(): void {
    this.#commits = undefined;
    this.#seqs.clear();
  }

  /**
   * Returns the seq of the last commit at or below `seq` that changed one of the tables, or the
   * seq with which the list begins. If some commits are not known, returns `seq`.
   */
  lastChange(tables: ReadonlySet<string>, seq: number): number {
    if (this.#commits === undefined || seq < this.#startSeq) return seq;
    let seqs = this.#seqs.get(tables);
    if (seqs === undefined) {
      const changing = this.#commits.filter((commit) => !commit.tables.isDisjointFrom(tables));
      seqs = changing.map((commit) => commit.seq);
      this.#seqs.set(tables, seqs);
    }
    return seqs.findLast((each) => each <= seq) ?? this.#startSeq;
  }
}

/**
 * Returns the tables that a commit of a user may change. The rows of each user in a USER table
 * count as a table of their own.
 */
export function changedTables(sql: string, user: string): ReadonlySet<string> {
  const targets = sql.matchAll(/\b(?:INSERT INTO|UPDATE|DELETE FROM|MERGE INTO)\s+(\w+)/g);
  return new Set(Array.from(targets, ([, name = ""]) => nameFor(name, user)));
}

/**
 * Returns the tables that a user's query reads, including the tables of its views and policies.
 */
export function readTables(sql: string, user: string, { views }: Schema): ReadonlySet<string> {
  let text = sql;
  for (const { name, query } of views.toReversed()) {
    if (new RegExp(`\\b${name}\\b`).test(text)) text += ` ${query}`;
  }
  const names = Array.from(text.matchAll(/\b(?:shared|own|ruled)\d/g), ([name]) => name);
  if (names.some((name) => name.startsWith("ruled"))) names.push(GUESTS);
  return new Set(names.map((name) => nameFor(name, user)));
}

function nameFor(table: string, user: string): string {
  return table.startsWith("own") ? `${table} of ${user}` : table;
}
