/**
 * Implements a cursor on one row version in a memtable or a segment. It is reused from row to row,
 * so finding a version allocates nothing.
 */
import { assert, defined } from "../../base/assert.ts";
import type { DataType, Value } from "../../types/mod.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "./open_segment.ts";

export class VersionCursor {
  #memtable: Memtable | undefined;
  #segment: OpenSegment | undefined;
  #row = -1;

  standInMemtable(memtable: Memtable, row: number): void {
    assert(row >= 0, "version cursor: cursor is not positioned on a row");
    this.#memtable = memtable;
    this.#segment = undefined;
    this.#row = row;
  }

  standInSegment(segment: OpenSegment, row: number): void {
    assert(row >= 0, "version cursor: cursor is not positioned on a row");
    this.#memtable = undefined;
    this.#segment = segment;
    this.#row = row;
  }

  /** The memtable or segment that contains the current version. */
  get place(): Memtable | OpenSegment {
    return this.#memtable ?? this.#requireSegment();
  }

  get row(): number {
    return this.#row;
  }

  /** Whether a newer version has replaced the current one. */
  get isReplaced(): boolean {
    return this.replacedBy !== 0;
  }

  /**
   * The seq of the version that replaced the current one, or 0. In history, a tombstone may have
   * its own seq.
   */
  get replacedBy(): number {
    if (this.#memtable !== undefined) return this.#memtable.replacedBy[this.#row] ?? 0;
    return this.#requireSegment().replacedByAt(this.#row);
  }

  /** Whether the version has moved to history, which does not record later replacements. */
  get isSettled(): boolean {
    return this.#segment?.isHistory === true;
  }

  /** Moves to the next row in the same memtable or segment. Returns false if there is none. */
  advance(): boolean {
    const { rowCount } = this.#memtable ?? this.#requireSegment().reader;
    if (this.#row + 1 >= rowCount) return false;
    this.#row += 1;
    return true;
  }

  get seq(): number {
    if (this.#memtable !== undefined) return this.#memtable.seqs[this.#row] ?? 0;
    return this.#requireSegment().seqAt(this.#row);
  }

  get prev(): number {
    if (this.#memtable !== undefined) return this.#memtable.prevs[this.#row] ?? 0;
    return this.#requireSegment().prevAt(this.#row);
  }

  get isDeleted(): boolean {
    if (this.#memtable !== undefined) return this.#memtable.deleted[this.#row] === 1;
    return this.#requireSegment().isDeletedAt(this.#row);
  }

  /** Returns the stored type of a column; undefined if the version lacks the column. */
  typeOf(columnId: number): DataType | undefined {
    if (this.#memtable !== undefined) return this.#memtable.column(columnId)?.type;
    return this.#requireSegment().columnType(columnId);
  }

  /** Returns the value of a column; undefined if the version is older than the column. */
  valueOf(columnId: number): Value | undefined {
    if (this.#memtable !== undefined) return this.#memtable.column(columnId)?.valueAt(this.#row);
    return this.#requireSegment().valueAt(columnId, this.#row);
  }

  /** Records that the version with this seq replaces the current one. */
  replace(seq: number): void {
    if (this.#memtable !== undefined) this.#memtable.replace(this.#row, seq);
    else this.#requireSegment().replace(this.#row, seq);
  }

  /** Removes the replacement of the current version, because it was rolled back. */
  revert(): void {
    if (this.#memtable !== undefined) this.#memtable.revert(this.#row);
    else this.#requireSegment().revert(this.#row);
  }

  #requireSegment(): OpenSegment {
    return defined(this.#segment, "version cursor: cursor is not positioned on a row");
  }
}
