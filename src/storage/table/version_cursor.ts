/**
 * Stands on one row version, wherever it lies: in a memtable or in a segment. Reused from row to
 * row, so that finding a version allocates nothing.
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
    assert(row >= 0, "a cursor stands on a row");
    this.#memtable = memtable;
    this.#segment = undefined;
    this.#row = row;
  }

  standInSegment(segment: OpenSegment, row: number): void {
    assert(row >= 0, "a cursor stands on a row");
    this.#memtable = undefined;
    this.#segment = segment;
    this.#row = row;
  }

  /** What it stands in, and the row there. */
  get place(): Memtable | OpenSegment {
    return this.#memtable ?? this.#requireSegment();
  }

  get row(): number {
    return this.#row;
  }

  /** Whether a newer version has replaced it. */
  get isReplaced(): boolean {
    if (this.#memtable !== undefined) return this.#memtable.replacedBy[this.#row] !== 0;
    return this.#requireSegment().deletions.replacedBy(this.#row) !== 0;
  }

  /** Goes to the next row of what it stands in. Returns whether there is one. */
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

  /** The type under which a column is stored, or undefined when the version lacks it. */
  typeOf(columnId: number): DataType | undefined {
    if (this.#memtable !== undefined) return this.#memtable.column(columnId)?.type;
    return this.#requireSegment().columnType(columnId);
  }

  /** The value of a column, or undefined when the version was written before the column was. */
  valueOf(columnId: number): Value | undefined {
    if (this.#memtable !== undefined) return this.#memtable.column(columnId)?.valueAt(this.#row);
    return this.#requireSegment().valueAt(columnId, this.#row);
  }

  /** Notes that the version with this seq replaces the one stood on. */
  replace(seq: number): void {
    if (this.#memtable !== undefined) this.#memtable.replace(this.#row, seq);
    else this.#requireSegment().replace(this.#row, seq);
  }

  /** Forgets the replacement: it was taken back. */
  revert(): void {
    if (this.#memtable !== undefined) this.#memtable.revert(this.#row);
    else this.#requireSegment().revert(this.#row);
  }

  #requireSegment(): OpenSegment {
    return defined(this.#segment, "a cursor stands somewhere");
  }
}
