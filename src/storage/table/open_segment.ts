/**
 * A live segment: its manifest entry, its file, opened at first touch, and which of its rows newer
 * versions have replaced.
 *
 * - The deletion vector in memory is ahead of the one on disk, also by replacements that may yet be
 *   taken back: what is written holds only those up to the flushed seq.
 * - A reader pins the segment; when it is dropped, its files go with the last pin.
 * - A damaged segment is quarantined for good. One that the disk would not read is unreadable now:
 *   quarantined in this process, and not in the manifest, as the next start may find it whole.
 * - What recovery could not note in one that is unreadable now is kept until the flush that would
 *   make the log forget it: by then it is noted, or the segment is quarantined for good.
 */
import { assert } from "../../base/assert.ts";
import { CorruptionError, DatabaseError, UnreadableError } from "../../base/errors.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { DeletionVector } from "../deletions/deletion_vector.ts";
import type { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import { ReplacementLog } from "../deletions/replacement_log.ts";
import { ColumnOrders } from "../segment/column_orders.ts";
import type { SegmentReader } from "../segment/reader.ts";

/** A version of an owner, and the seq of the one that replaced it. */
export interface MissedReplacement {
  readonly owner: number;
  readonly seq: number;
  readonly replacedBy: number;
}

const UNREADABLE_HINT = "look at the disk, then restart the server: it tries again";
const DAMAGED_HINT = "rows of other tables can be read; put back a backup, or drop the table";

/** What a statement answers that met damage: the same as those that come after it. */
export function refusalFor(damage: CorruptionError): DatabaseError {
  const hint = damage instanceof UnreadableError ? UNREADABLE_HINT : DAMAGED_HINT;
  return new DatabaseError("DATA_DAMAGED", damage.message, { hint, cause: damage });
}

/** What opens the files of a segment, and hears of damage. */
export interface SegmentFiles {
  openReader(entry: SegmentEntry): SegmentReader;
  readDeletions(entry: SegmentEntry): DeletionVector;
  segmentPath(entry: SegmentEntry): string;
  /** Removes the segment's files. */
  remove(entry: SegmentEntry): void;
  /** A read of the segment met damaged bytes. */
  onDamage(segment: OpenSegment, damage: CorruptionError): void;
}

export class OpenSegment {
  entry: SegmentEntry;
  readonly #files: SegmentFiles;
  #isUnreadableNow = false;
  /** Of recovery, in the order of the log. */
  #missed: MissedReplacement[] = [];
  #reader: SegmentReader | undefined;
  #orders: ColumnOrders | undefined;
  #deletions: DeletionVector | undefined;
  #pinCount = 0;
  #isDropped = false;
  /** Of the deletion vector that was begun last, whether or not it was published. */
  #generation = 0;
  /** Lowest and highest replacing seqs that the deletion vector on disk does not have. */
  #dirtySince = Infinity;
  #dirtyUpTo = 0;
  /** While the segment is merged: replacements since, and 0 for one that was taken back. */
  #replacementLog: ReplacementLog | undefined;

  constructor(entry: SegmentEntry, files: SegmentFiles) {
    this.entry = entry;
    this.#files = files;
  }

  /** Gives the segment the replacements that its memtable had collected. */
  adoptDeletions(deletions: DeletionVector): void {
    assert(this.#deletions === undefined, "replacements are adopted before any is added");
    this.#deletions = deletions;
  }

  pin(): void {
    this.#pinCount += 1;
  }

  unpin(): void {
    assert(this.#pinCount > 0, "a pin is given back once");
    this.#pinCount -= 1;
    if (this.#isDropped && this.#pinCount === 0) this.#remove();
  }

  /** The segment is in no manifest any more, and its files may be gone. */
  get isDropped(): boolean {
    return this.#isDropped;
  }

  /** The segment is in no manifest any more. */
  drop(): void {
    this.#isDropped = true;
    if (this.#pinCount === 0) this.#remove();
  }

  /** Lets go of the file; it opens again at the next touch. */
  close(): void {
    this.#orders?.release();
    this.#orders = undefined;
    this.#reader?.close();
    this.#reader = undefined;
  }

  get deletions(): DeletionVector {
    this.#deletions ??= this.#readDeletions();
    return this.#deletions;
  }

  /** Reads its deletion vector, unless that is known. @throws As `deletions` does. */
  requireDeletions(): void {
    this.#deletions ??= this.#readDeletions();
  }

  /** @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined. */
  get reader(): SegmentReader {
    this.requireReadable();
    this.#reader ??= this.#openReader();
    return this.#reader;
  }

  /** @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined. */
  get orders(): ColumnOrders {
    this.#orders ??= new ColumnOrders(this.reader);
    return this.#orders;
  }

  /** @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined. */
  requireReadable(): void {
    if (this.entry.quarantined) throw this.#refusal();
  }

  /** Reads, and reports damage that this meets. @throws {CorruptionError} */
  guard<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** Nobody reads it any more in this process. */
  quarantine({ isForGood }: { isForGood: boolean }): void {
    this.entry = { ...this.entry, quarantined: true };
    this.#isUnreadableNow = !isForGood;
    if (isForGood) this.#missed = [];
  }

  /** What is noted of it no longer holds: should it be noted on disk, the quarantine is, too. */
  noteUntrue(): void {
    this.#isUnreadableNow = false;
  }

  /** Recovery could not note a replacement, as the disk would not read the segment. */
  noteMissed(replacement: MissedReplacement): void {
    // What is quarantined for good has no use for it.
    if (this.#isUnreadableNow) this.#missed.push(replacement);
  }

  get missedCount(): number {
    return this.#missed.length;
  }

  /**
   * Notes some of what recovery missed, the newest first. The segment stays quarantined.
   *
   * @throws {CorruptionError} If it still cannot be read.
   */
  noteSomeMissed(countMax: number): void {
    this.#reader ??= this.#files.openReader(this.entry);
    this.#deletions ??= this.#files.readDeletions(this.entry);
    for (let count = 0; count < countMax; count += 1) {
      const missed = this.#missed.at(-1);
      if (missed === undefined) return;
      const { owner, replacedBy, seq } = missed;
      const row = this.#reader.rowOfSeq(owner, seq);
      // A merge has left it out.
      if (row !== -1) this.replace(row, replacedBy);
      this.#missed.pop();
    }
  }

  /** The entry as the manifest should have it. */
  get listedEntry(): SegmentEntry {
    return this.#isUnreadableNow ? { ...this.entry, quarantined: false } : this.entry;
  }

  // Apart from their getters, which are called for every value: a function would cost them a scope.

  #refusal(): DatabaseError {
    const { segmentId, tableId } = this.entry;
    const what = `Cannot read ${this.#files.segmentPath(this.entry)}: segment ${segmentId} of table ${tableId}`;
    return this.#isUnreadableNow
      ? new DatabaseError("DATA_DAMAGED", `${what} could not be read, and is quarantined`, {
          hint: UNREADABLE_HINT,
        })
      : new DatabaseError("DATA_DAMAGED", `${what} is damaged and quarantined`, {
          hint: DAMAGED_HINT,
        });
  }

  #openReader(): SegmentReader {
    return this.guard(() => this.#files.openReader(this.entry));
  }

  #readDeletions(): DeletionVector {
    return this.guard(() => this.#files.readDeletions(this.entry));
  }

  /** An error that a read met, after it was reported if it is damage. */
  #noted(error: unknown): unknown {
    if (error instanceof CorruptionError) this.#report(error);
    return error;
  }

  /** Reports an error that a read of several segments met, if it is damage in this one. */
  noteIfDamaged(error: unknown): void {
    if (!(error instanceof CorruptionError)) return;
    if (error.path !== this.#files.segmentPath(this.entry)) return;
    this.#report(error);
  }

  /** What no manifest names cannot be quarantined there. */
  #report(damage: CorruptionError): void {
    if (!this.#isDropped) this.#files.onDamage(this, damage);
  }

  seqAt(row: number): number {
    try {
      return this.reader.seqAt(row);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  prevAt(row: number): number {
    try {
      return this.reader.prevAt(row);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  isDeletedAt(row: number): boolean {
    try {
      return this.reader.isTombstone(row);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  valueAt(columnId: number, row: number): Value | undefined {
    try {
      return this.reader.valueAt(columnId, row);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** The type that a column has in the file, or undefined when it is not there. */
  columnType(columnId: number): DataType | undefined {
    return this.reader.columnType(columnId);
  }

  /** The newest row of a key, or -1. */
  findKey(owner: number, key: Row): number {
    try {
      return this.reader.findKey(owner, key);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** As {@linkcode SegmentReader.highestKey}. */
  get highestKey(): number {
    return this.guard(() => this.reader.highestKey);
  }

  rowOfSeq(owner: number, seq: number): number {
    if (seq < this.entry.minSeq || seq > this.entry.maxSeq) return -1;
    try {
      return this.reader.rowOfSeq(owner, seq);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  replace(row: number, seq: number): void {
    this.deletions.replace(row, seq);
    this.#replacementLog?.note(row, seq);
    this.#noteDirty({ least: seq, most: seq });
  }

  /** Notes many replacements at once, whose seqs are known by now; takes them over. */
  replaceAll(prepared: PreparedReplacements): void {
    const noted = this.#replacementLog;
    if (noted !== undefined) prepared.visit((row, seq) => noted.note(row, seq));
    this.deletions.replaceAll(prepared);
    this.#noteDirty(prepared.seqs);
  }

  /** The deletion vector on disk has no replacement above a seq, of which there may be some. */
  noteDirtyAbove(seq: number): void {
    const { highestSeq } = this.deletions;
    if (highestSeq > seq) this.#noteDirty({ least: seq + 1, most: highestSeq });
  }

  /** Replacements that the deletion vector on disk does not have. */
  #noteDirty({ least, most }: { readonly least: number; readonly most: number }): void {
    this.#dirtySince = Math.min(this.#dirtySince, least);
    this.#dirtyUpTo = Math.max(this.#dirtyUpTo, most);
  }

  /** Whether the deletion vector on disk may lack a replacement at or below a seq. */
  isDirtyUpTo(seq: number): boolean {
    return this.#dirtySince <= seq;
  }

  /** The deletion vector on disk is damaged, and the one in memory is whole: it is written anew. */
  noteVectorDamaged(): void {
    if (this.#deletions !== undefined) this.#dirtySince = 0;
  }

  /**
   * The generation of another deletion vector. No two attempts share one: files of a failed attempt
   * may be removed late, while the next one is published already.
   */
  nextGeneration(): number {
    this.#generation = Math.max(this.#generation, this.entry.deletionGeneration) + 1;
    return this.#generation;
  }

  /** The deletion vector on disk has every replacement up to a seq. */
  noteWritten(seq: number): void {
    this.#dirtySince = this.#dirtyUpTo > seq ? seq + 1 : Infinity;
  }

  /** The replacements up to a seq, as a deletion vector of their own. */
  deletionsUpTo(upTo: number): DeletionVector {
    return this.deletions.upTo(upTo);
  }

  /** How much was noted and not taken yet. */
  get notedCount(): number {
    return this.#replacementLog?.count ?? 0;
  }

  /** Notes replacements from now on, for who copies the segment meanwhile. */
  beginReplacementLog(): void {
    this.#replacementLog = new ReplacementLog();
  }

  /** What was noted so far, in order; noting goes on. */
  takeReplacementLog(): ReplacementLog {
    const noted = this.endReplacementLog();
    this.beginReplacementLog();
    return noted;
  }

  /** What was noted, in order; noting ends. */
  endReplacementLog(): ReplacementLog {
    const noted = this.#replacementLog ?? new ReplacementLog();
    this.#replacementLog = undefined;
    return noted;
  }

  revert(row: number): void {
    this.deletions.revert(row);
    this.#replacementLog?.note(row, 0);
  }

  #remove(): void {
    this.close();
    this.#files.remove(this.entry);
  }
}
