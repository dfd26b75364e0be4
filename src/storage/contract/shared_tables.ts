/**
 * Tables as a reader in another thread takes them: plain data, most of it in shared memory.
 *
 * - A share fits one bound on `_seq`. Nothing that is at or below the bound changes later, so the
 *   reader needs no lock.
 * - What a reader has already is not sent again: pages of deletion vectors, and values that lie in
 *   no shared memory.
 */
import type { DataType, Vector } from "../../types/mod.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { TableDefinition } from "./store.ts";

export interface SharedTable {
  readonly definition: TableDefinition;
  /** Row versions at or below this have vanished by their time to live; 0 without one. */
  readonly expiredSeq: number;
  readonly segments: readonly SharedSegment[];
  /** Oldest first. */
  readonly memtables: readonly SharedMemtable[];
}

export interface SharedSegment {
  readonly entry: SegmentEntry;
  readonly path: string;
  /** The pages of its deletion vector that changed since the last share. */
  readonly pages: readonly SharedPage[];
}

/** Replacements of the rows of one page of a segment. */
export interface SharedPage {
  readonly index: number;
  /** The seq that replaced each row, 0 for none; in shared memory. */
  readonly seqByRow?: Float64Array | undefined;
  /** Without `seqByRow`: replaced rows within the page, ascending, and their seqs. */
  readonly rows: readonly number[];
  readonly seqs: readonly number[];
}

export interface SharedMemtable {
  /** Names the memtable to this reader, for ever. */
  readonly id: number;
  /** Rows at or below the bound, or more; never fewer than the reader has. */
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
  /** The values from row `from` on; `from` is 0 for all that lie in shared memory. */
  readonly vector: Vector;
  readonly from: number;
}

/** Segments and memtables that a reader may let go of, because no table has them any more. */
export interface DroppedShares {
  readonly segmentIds: readonly number[];
  readonly memtableIds: readonly number[];
}

/** Tables that are shared with one reader, which pin their files until they are released. */
export interface TableShares {
  readonly tables: readonly SharedTable[];
  /** Notes damage that the reader met in one of the segments. */
  noteDamage(error: unknown): void;
  release(): void;
}
