/**
 * Describes tables as a reader in another thread receives them: plain data, mostly in shared
 * memory.
 *
 * - The description of a table, its share, is valid for one bound on `_seq`. The state at or below
 *   that bound never changes, so the reader needs no lock.
 * - Pages of deletion vectors and values outside shared memory are not sent again to a reader that
 *   already has them.
 */
import type { Seq } from "../../base/seq.ts";
import type { DataType, Vector } from "../../types/mod.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { TableDefinition } from "./table_definition.ts";

export interface SharedTable {
  readonly definition: TableDefinition;
  /** The seq up to which row versions have expired; 0 if the table has no TTL. */
  readonly expiredSeq: number;
  readonly segments: readonly SharedSegment[];
  /**
   * The history segments with rows within the statement's bounds or, if the reader needs
   * tombstones, all history segments.
   */
  readonly history: readonly SharedSegment[];
  /** The memtables shared with readers, oldest first. */
  readonly memtables: readonly SharedMemtable[];
}

export interface SharedSegment {
  readonly entry: SegmentEntry;
  readonly path: string;
  /**
   * The pages of the segment's deletion vector that have changed since the last share. A history
   * segment has none.
   */
  readonly pages: readonly SharedPage[];
}

/** The replacements of the rows in one page of a segment. */
export interface SharedPage {
  readonly index: number;
  /** For each row, the seq that replaced it, or 0. The array is in shared memory. */
  readonly seqByRow?: Float64Array | undefined;
  /**
   * Used if `seqByRow` is undefined: the replaced rows within the page in ascending order. `seqs`
   * has the seqs that replaced them.
   */
  readonly rows: readonly number[];
  readonly seqs: readonly number[];
  /**
   * The number of replaced rows in the page. `highest` is an upper bound on the seqs that replaced
   * them.
   */
  readonly count: number;
  readonly highest: number;
}

export interface SharedMemtable {
  /** The id by which this reader knows the memtable. */
  readonly id: number;
  /**
   * The number of the memtable's rows to read. It includes all rows at or below the bound on
   * `_seq`, and never falls below the number that the reader already has.
   */
  readonly rowCount: number;
  readonly hiddenCount: number;
  readonly owners: Float64Array;
  readonly seqs: Float64Array;
  readonly prevs: Float64Array;
  readonly commitSeqs: Float64Array;
  readonly replacedBy: Float64Array;
  readonly deleted: Uint8Array;
  readonly columns: readonly SharedColumn[];
}

export interface SharedColumn {
  readonly columnId: number;
  readonly type: DataType;
  /**
   * The values of the rows from row `from` onwards. For a column in shared memory, `from` is 0.
   */
  readonly vector: Vector;
  readonly from: number;
}

/** Segments and memtables that a reader may drop, because no table uses them any more. */
export interface DroppedShares {
  readonly segmentIds: readonly number[];
  readonly memtableIds: readonly number[];
}

/** The seqs up to which a statement reads its shared tables. */
export interface ShareBounds {
  /**
   * The inclusive upper bound on seqs. It is at most the visible seq, since rows above the visible
   * seq may still be rolled back.
   */
  readonly upTo: Seq;
  /** Earlier seqs at which the statement also reads tables. */
  readonly pastSeqs: readonly Seq[];
  /** Whether the statement may read deleted rows as well as live rows. */
  readonly withTombstones: boolean;
}

/** Tables shared with one reader. A share pins its tables' files until it is released. */
export interface TableShares {
  readonly tables: readonly SharedTable[];
  /** Records damage that the reader has found in one of the segments of the shared tables. */
  noteDamage(error: unknown): void;
  release(): void;
}
