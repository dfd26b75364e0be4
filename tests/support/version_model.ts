/**
 * Predicts the results of reads of a table from a plain list of its versions. The model supports
 * columns that are added, dropped and retyped, rows that expire, and deletes from tables without a
 * key.
 */
import type { Commit, TableDefinition, TableWrite } from "../../src/storage/mod.ts";
import type { Row, Value } from "../../src/types/mod.ts";
import type { PlainChange } from "./store_fixture.ts";

export interface KnownVersion {
  readonly owner: number;
  readonly key: string;
  readonly seq: number;
  readonly commitSeq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
  readonly values: ReadonlyMap<number, Value>;
}

interface Bounds {
  readonly owner: number;
  readonly upTo: number;
  readonly after?: number;
}

export class VersionModel {
  definition: TableDefinition;
  /** The seq at or below which versions have expired. */
  expiredSeq = 0;
  readonly versions: KnownVersion[] = [];

  constructor(definition: TableDefinition) {
    this.definition = definition;
  }

  /**
   * Returns the key of a row. In a table without a key, the seq at which the row was inserted
   * serves as its key.
   */
  keyOf(row: Row, rowSeq: number): string {
    const { columns, keyColumnIds } = this.definition;
    if (keyColumnIds.length === 0) return `seq ${rowSeq}`;
    const values = keyColumnIds.map(
      (id) => row[columns.findIndex(({ columnId }) => columnId === id)],
    );
    return values.map(String).join("|");
  }

  /** Records one write of a commit. `index` is the position of its first seq within the commit. */
  note(write: TableWrite, { lastSeq, seqs }: Commit, index: number): void {
    const { operation, owner, replacedSeqs, rows } = write;
    const { columns, keyColumnIds } = this.definition;
    for (const [at, row] of rows.entries()) {
      const seq = seqs?.[index + at] ?? 0;
      const replaced = keyColumnIds.length === 0 ? replacedSeqs?.[at] : undefined;
      const key = this.keyOf(row, replaced ?? seq);
      const before = this.newest(owner, key)?.seq ?? 0;
      this.versions.push({
        owner,
        key,
        seq,
        commitSeq: lastSeq,
        // An INSERT may reuse the key of an expired row, in which case it replaces nothing.
        prev: before > this.expiredSeq ? before : 0,
        isDeleted: operation === "delete",
        values: new Map(columns.map(({ columnId }, place) => [columnId, row[place] ?? null])),
      });
    }
  }

  newest(owner: number, key: string): KnownVersion | undefined {
    return this.versions.findLast((each) => each.owner === owner && each.key === key);
  }

  /** Returns the newest unexpired version of each key at or below a seq, in seq order. */
  current({ after = 0, owner, upTo }: Bounds): KnownVersion[] {
    const newest = new Map<string, KnownVersion>();
    for (const version of this.versions) {
      if (version.owner === owner && version.seq <= upTo) newest.set(version.key, version);
    }
    const least = Math.max(after, this.expiredSeq);
    return [...newest.values()]
      .filter(({ seq }) => seq > least)
      .toSorted((left, right) => left.seq - right.seq);
  }

  live(bounds: Bounds): KnownVersion[] {
    return this.current(bounds).filter(({ isDeleted }) => !isDeleted);
  }

  rowOf({ values }: KnownVersion): Row {
    return this.definition.columns.map(({ columnId, missing }) =>
      values.has(columnId) ? (values.get(columnId) ?? null) : missing,
    );
  }

  changes({ after = 0, owner, upTo }: Bounds): PlainChange[] {
    const least = Math.max(after, this.expiredSeq);
    return this.versions
      .filter((each) => each.owner === owner && each.seq > least && each.seq <= upTo)
      .map((version) => {
        const { commitSeq, isDeleted, prev, seq } = version;
        const replaced = this.versions.find((each) => each.seq === prev);
        const isRow = replaced !== undefined && !replaced.isDeleted;
        const old = isRow ? this.rowOf(replaced) : undefined;
        return { seq, commitSeq, prev, isDeleted, row: this.rowOf(version), old };
      });
  }
}
