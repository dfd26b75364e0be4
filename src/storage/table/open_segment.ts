/**
 * Represents a live segment: its manifest entry, its file, which is opened when first used, and
 * the replacements of its rows by newer versions.
 *
 * - The deletion vector in memory is ahead of the deletion vector on disk, and may include
 *   replacements that will be rolled back. Only replacements up to the flushed seq are written to
 *   disk.
 * - Readers pin a segment. After a segment has been dropped, the last unpin removes its files.
 * - A damaged segment is quarantined permanently. A segment that the disk cannot read at present
 *   is called unreadable: it is quarantined in this process, but not in the manifest, since the
 *   next process may find it intact.
 * - A history segment has no deletion vector. Its rows include the seqs of their replacements, and
 *   never change.
 * - If a segment is unreadable, the replacements that recovery could not record in it are kept
 *   until the flush after which the log no longer contains them. By then, either they have been
 *   recorded or the segment has been quarantined permanently.
 */
import { assert, defined } from "../../base/assert.ts";
import { CorruptionError, DatabaseError, UnreadableError } from "../../base/errors.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { DeletionVector } from "../deletions/deletion_vector.ts";
import type { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import { ColumnOrders } from "../segment/column_orders.ts";
import { type IndexEntries, openIndexFile } from "../segment/index_file.ts";
import type { RowSpan, SegmentReader } from "../segment/reader.ts";
import { openTermFile } from "../segment/term_file.ts";
import type { TermPart } from "../segment/term_part.ts";
import { buildIndex } from "./index_builder.ts";
import { keyValueOf } from "./index_values.ts";
import type { IndexOpener } from "./listed_files.ts";
import { LivePages } from "./live_pages.ts";
import { SegmentIndex } from "./segment_index.ts";
import type { TableIndex } from "./table_index.ts";
import { allTermParts } from "./term_builder.ts";

/** An owner's version, and the seq of the version that replaced it. */
export interface MissedReplacement {
  readonly owner: number;
  readonly seq: number;
  readonly replacedBy: number;
}

const UNREADABLE_HINT = "check the disk, then restart the server, which will try again";
const DAMAGED_HINT = "rows of other tables can still be read; restore a backup, or drop the table";

/**
 * Returns the error for a statement that has found a segment damaged. Later statements get the
 * same error.
 */
export function refusalFor(damage: CorruptionError): DatabaseError {
  const hint = damage instanceof UnreadableError ? UNREADABLE_HINT : DAMAGED_HINT;
  return new DatabaseError("DATA_DAMAGED", damage.message, { hint, cause: damage });
}

/** Opens the files of a segment, and handles damage found in them. */
export interface SegmentFiles {
  openReader(entry: SegmentEntry): SegmentReader;
  readDeletions(entry: SegmentEntry): DeletionVector;
  /** Opens an index file. Returns undefined if it is missing or damaged. */
  openIndex<Entries>(
    entry: SegmentEntry,
    indexId: number,
    open: IndexOpener<Entries>,
  ): Entries | undefined;
  segmentPath(entry: SegmentEntry): string;
  /** Removes the segment's files. */
  remove(entry: SegmentEntry): void;
  /** Called when a read of the segment has found damaged bytes. */
  onDamage(segment: OpenSegment, damage: CorruptionError): void;
}

export class OpenSegment {
  entry: SegmentEntry;
  readonly #files: SegmentFiles;
  #isUnreadableNow = false;
  /** The replacements that recovery could not record in the segment, in log order. */
  #missed: MissedReplacement[] = [];
  #reader: SegmentReader | undefined;
  #orders: ColumnOrders | undefined;
  #deletions: DeletionVector | undefined;
  #livePages: LivePages | undefined;
  /** The owner for whom `rowsOf` was last called. The result of that call is cached. */
  #askedOwner: number | undefined;
  #askedRows: RowSpan | undefined;
  /** The segment's indexes opened so far, by id. */
  readonly #indexes = new Map<number, { readonly index: SegmentIndex; close(): void }>();
  /** The inverted indexes opened so far, by id. */
  readonly #terms = new Map<number, { readonly parts: readonly TermPart[]; close(): void }>();
  #pinCount = 0;
  #isDropped = false;
  /** The generation of the most recent deletion vector, whether or not it was published. */
  #generation = 0;
  #tombstoneCount: number | undefined;
  /** The lowest seq of any replacement missing from the deletion vector on disk. */
  #dirtySince = Infinity;
  #dirtyUpTo = 0;
  /** The replacements recorded since a merge of the segment began. A seq of 0 means a rollback. */
  #replacementLog: ReplacementLog | undefined;

  constructor(entry: SegmentEntry, files: SegmentFiles) {
    this.entry = entry;
    this.#files = files;
  }

  /** Adopts the replacements recorded in the memtable from which the segment was written. */
  adoptDeletions(deletions: DeletionVector): void {
    assert(
      this.#deletions === undefined,
      "open segment: deletion vector adopted after rows were replaced",
    );
    this.#deletions = deletions;
  }

  /** The approximate memory of the deletion vector and the cached live rows, in bytes. */
  get replacementBytes(): number {
    return this.#deletions?.bytes ?? 0;
  }

  pin(): void {
    this.#pinCount += 1;
  }

  unpin(): void {
    assert(this.#pinCount > 0, "open segment: pin released more often than acquired");
    this.#pinCount -= 1;
    if (this.#isDropped && this.#pinCount === 0) this.#remove();
  }

  /** Whether the manifest no longer lists the segment. Its files may then be gone. */
  get isDropped(): boolean {
    return this.#isDropped;
  }

  /** Removes the segment's files, because the manifest no longer lists them. */
  drop(): void {
    this.#isDropped = true;
    if (this.#pinCount === 0) this.#remove();
  }

  /** Closes the segment's file. It is reopened when next used. */
  close(): void {
    this.#orders?.release();
    this.#orders = undefined;
    this.#livePages?.release();
    this.#livePages = undefined;
    for (const indexId of [...this.#indexes.keys(), ...this.#terms.keys()]) {
      this.closeIndex(indexId);
    }
    this.#reader?.close();
    this.#reader = undefined;
  }

  /**
   * Whether this is a history segment: all of its versions are obsolete, and it has no deletion
   * vector.
   */
  get isHistory(): boolean {
    return this.entry.history !== undefined;
  }

  /**
   * Returns the seq of the version that replaced a row, or 0. In history, a tombstone that was
   * never replaced has its own seq.
   */
  replacedByAt(row: number): number {
    if (!this.isHistory) return this.deletions.replacedBy(row);
    try {
      return this.reader.replacingSeqAt(row);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  get deletions(): DeletionVector {
    assert(!this.isHistory, "open segment: history segment has no replacing seqs");
    this.#deletions ??= this.#readDeletions();
    return this.#deletions;
  }

  /** Reads the deletion vector unless it is in memory. @throws The errors of `deletions`. */
  requireDeletions(): void {
    this.#deletions ??= this.#readDeletions();
  }

  /**
   * The reader of the segment's file, opened when first used.
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  get reader(): SegmentReader {
    this.requireReadable();
    this.#reader ??= this.#openReader();
    return this.#reader;
  }

  /**
   * The live rows of the segment, by page.
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  get livePages(): LivePages {
    this.requireReadable();
    this.#livePages ??= new LivePages(this);
    return this.#livePages;
  }

  /**
   * The sort orders of the segment's columns.
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  get orders(): ColumnOrders {
    this.#orders ??= new ColumnOrders(this.reader);
    return this.#orders;
  }

  /**
   * Returns a secondary index. If its file is missing or damaged, the index is built from the
   * rows.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  index({ order, stored: { indexId } }: TableIndex): SegmentIndex {
    const known = this.#indexes.get(indexId);
    if (known !== undefined) return known.index;
    const { reader } = this;
    const { columns } = order;
    const file = this.#files.openIndex(this.entry, indexId, openIndexFile);
    const entries = file ?? this.guard(() => finished(buildIndex(reader, { columns })));
    const index = new SegmentIndex(entries, order, (at, row) => {
      const column = defined(columns[at], "open segment: no index column at this position");
      return this.guard(() => keyValueOf(this.reader, column, row));
    });
    this.#indexes.set(indexId, { index, close: () => file?.close() });
    return index;
  }

  /**
   * Returns the parts of an inverted index. If its file is missing or damaged, the index is built
   * from the rows.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  terms({ order: { columns }, stored: { indexId } }: TableIndex): readonly TermPart[] {
    const known = this.#terms.get(indexId);
    if (known !== undefined) return known.parts;
    const { reader } = this;
    const file = this.#files.openIndex(this.entry, indexId, openTermFile);
    const parts = file?.parts ?? this.guard(() => allTermParts(reader, columns));
    this.#terms.set(indexId, { parts, close: () => file?.close() });
    return parts;
  }

  /** Closes an index that was dropped or whose file was rewritten. */
  closeIndex(indexId: number): void {
    this.#indexes.get(indexId)?.close();
    this.#indexes.delete(indexId);
    this.#terms.get(indexId)?.close();
    this.#terms.delete(indexId);
  }

  /**
   * Checks that the segment is not quarantined.
   * @throws {DatabaseError} DATA_DAMAGED if it is.
   */
  requireReadable(): void {
    if (this.entry.quarantined) throw this.#refusal();
  }

  /**
   * Runs a read of the segment, and reports any damage that the read finds. @throws
   * {CorruptionError}
   */
  guard<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /**
   * Returns an owner's rows; undefined if there are none. The result for the last owner is cached,
   * because every new key is looked up among its owner's rows.
   *
   * @throws {DatabaseError} DATA_DAMAGED if the segment is quarantined.
   */
  rowsOf(owner: number): RowSpan | undefined {
    this.requireReadable();
    if (owner !== this.#askedOwner) {
      this.#askedRows = this.guard(() => this.reader.ownerRange(owner));
      this.#askedOwner = owner;
    }
    return this.#askedRows;
  }

  /** Takes the segment out of use in this process. */
  quarantine({ isForGood }: { isForGood: boolean }): void {
    this.entry = { ...this.entry, quarantined: true };
    this.#isUnreadableNow = !isForGood;
    if (isForGood) this.#missed = [];
  }

  /**
   * Called when a rollback could not be recorded, so the replacements in memory may be wrong. The
   * next time that replacements are written to disk, the quarantine is recorded as well.
   */
  noteUntrue(): void {
    this.#isUnreadableNow = false;
  }

  /** Keeps a replacement that recovery could not record because the segment is unreadable. */
  noteMissed(replacement: MissedReplacement): void {
    // A permanently quarantined segment no longer needs its replacements.
    if (this.#isUnreadableNow) this.#missed.push(replacement);
  }

  get missedCount(): number {
    return this.#missed.length;
  }

  /**
   * Records up to `countMax` of the replacements that recovery missed, newest first. The segment
   * stays quarantined.
   *
   * @throws {CorruptionError} If the segment still cannot be read.
   */
  noteSomeMissed(countMax: number): void {
    this.#reader ??= this.#files.openReader(this.entry);
    this.#deletions ??= this.#files.readDeletions(this.entry);
    for (let count = 0; count < countMax; count += 1) {
      const missed = this.#missed.at(-1);
      if (missed === undefined) return;
      const { owner, replacedBy, seq } = missed;
      const row = this.#reader.rowOfSeq(owner, seq);
      // If the segment has no such row, a merge has discarded the version.
      if (row !== -1) this.replace(row, replacedBy);
      this.#missed.pop();
    }
  }

  /** The segment's entry as listed in the manifest. */
  get listedEntry(): SegmentEntry {
    return this.#isUnreadableNow ? { ...this.entry, quarantined: false } : this.entry;
  }

  // The refusal has a method of its own, because the getters run for every value, and a closure in
  // them would be costly.

  #refusal(): DatabaseError {
    const { segmentId, tableId } = this.entry;
    const what = `Cannot read ${this.#files.segmentPath(this.entry)}: segment ${segmentId} of table ${tableId}`;
    return this.#isUnreadableNow
      ? new DatabaseError("DATA_DAMAGED", `${what} could not be read and is quarantined`, {
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

  /**
   * Reports a read error if it means that the segment is damaged. Returns the error in any case.
   */
  #noted(error: unknown): unknown {
    if (error instanceof CorruptionError) this.#report(error);
    return error;
  }

  /** Reports an error from a read of several segments if it means damage in this segment. */
  noteIfDamaged(error: unknown): void {
    if (!(error instanceof CorruptionError)) return;
    if (error.path !== this.#files.segmentPath(this.entry)) return;
    this.#report(error);
  }

  /**
   * Reports damage unless the segment has been dropped. A dropped segment is not in the manifest,
   * so it cannot be quarantined.
   */
  #report(damage: CorruptionError): void {
    if (!this.#isDropped) this.#files.onDamage(this, damage);
  }

  /** The number of tombstones, counted once and then cached. */
  get tombstoneCount(): number {
    this.#tombstoneCount ??= this.guard(() => tombstonesOf(this.reader));
    return this.#tombstoneCount;
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

  /** Returns the type of a column in the file; undefined if the column is not in the file. */
  columnType(columnId: number): DataType | undefined {
    return this.reader.columnType(columnId);
  }

  /** Returns the row of a key's newest version at or below `upTo`; -1 if there is none. */
  findKey(owner: number, key: Row, upTo: number = Infinity): number {
    if (upTo < this.entry.minSeq) return -1;
    try {
      return this.reader.findKey(owner, key, upTo);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** An upper bound on the segment's primary keys; see {@linkcode SegmentReader.highestKey}. */
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
    if (this.isHistory) {
      const isKnown = this.isDeletedAt(row) || this.replacedByAt(row) === seq;
      assert(isKnown, "open segment: history row replaced again by a different seq");
      return;
    }
    this.deletions.replace(row, seq);
    this.#replacementLog?.note(row, seq);
    this.#noteDirty({ least: seq, most: seq });
  }

  /** Records many replacements whose seqs are already known. Takes ownership of them. */
  replaceAll(prepared: PreparedReplacements): void {
    const noted = this.#replacementLog;
    if (noted !== undefined) prepared.visit((row, seq) => noted.note(row, seq));
    this.deletions.replaceAll(prepared);
    this.#noteDirty(prepared.seqs);
  }

  /** Records that the deletion vector on disk lacks the replacements above `seq`. */
  noteDirtyAbove(seq: number): void {
    const { highestSeq } = this.deletions;
    if (highestSeq > seq) this.#noteDirty({ least: seq + 1, most: highestSeq });
  }

  /** Records that the deletion vector on disk lacks the replacements from `least` to `most`. */
  #noteDirty({ least, most }: { readonly least: number; readonly most: number }): void {
    this.#dirtySince = Math.min(this.#dirtySince, least);
    this.#dirtyUpTo = Math.max(this.#dirtyUpTo, most);
  }

  /** Whether the deletion vector on disk may lack a replacement at or below `seq`. */
  isDirtyUpTo(seq: number): boolean {
    return this.#dirtySince <= seq;
  }

  /**
   * Called when the deletion vector on disk is damaged. If the vector is in memory, its file will
   * be rewritten.
   */
  noteVectorDamaged(): void {
    if (this.#deletions !== undefined) this.#dirtySince = 0;
  }

  /**
   * Returns the generation of the next deletion vector. Each attempt gets a new generation, since
   * the files of a failed attempt may not be removed until after the next attempt is published.
   */
  nextGeneration(): number {
    this.#generation = Math.max(this.#generation, this.entry.deletionGeneration) + 1;
    return this.#generation;
  }

  /** Records that the deletion vector on disk contains all replacements up to `seq`. */
  noteWritten(seq: number): void {
    this.#dirtySince = this.#dirtyUpTo > seq ? seq + 1 : Infinity;
  }

  /** Returns a copy of the deletion vector with the replacements up to a seq. */
  deletionsUpTo(upTo: number): DeletionVector {
    return this.deletions.upTo(upTo);
  }

  /** The number of replacements logged for a merge and not yet taken. */
  get notedCount(): number {
    return this.#replacementLog?.count ?? 0;
  }

  /** Starts logging replacements, because a merge is about to copy the segment. */
  beginReplacementLog(): void {
    this.#replacementLog = new ReplacementLog();
  }

  /** Returns the logged replacements in order. Logging continues. */
  takeReplacementLog(): ReplacementLog {
    const noted = this.endReplacementLog();
    this.beginReplacementLog();
    return noted;
  }

  /** Returns the logged replacements in order. Logging ends. */
  endReplacementLog(): ReplacementLog {
    const noted = this.#replacementLog ?? new ReplacementLog();
    this.#replacementLog = undefined;
    return noted;
  }

  revert(row: number): void {
    if (this.isHistory) {
      // The replacement was an insertion of the key of a tombstone in history, which history does
      // not record.
      assert(this.isDeletedAt(row), "open segment: cannot revert the replacement of a history row");
      return;
    }
    this.deletions.revert(row);
    // Cached sort orders may have left out the row, so they are dropped.
    this.#orders?.release();
    this.#replacementLog?.note(row, 0);
  }

  #remove(): void {
    this.close();
    this.#files.remove(this.entry);
  }
}

function finished(steps: Generator<void, IndexEntries>): IndexEntries {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function tombstonesOf(reader: SegmentReader): number {
  let count = 0;
  for (let group = 0; group < reader.groupCount; group += 1) {
    if (reader.hasTombstones(group)) for (const flag of reader.deleted(group)) count += flag;
  }
  return count;
}

/**
 * Logs, in order, the replacements of a segment's rows during a merge. A large commit may add a
 * million of them in one tick, so they are stored in two lists of numbers rather than as objects.
 */
class ReplacementLog {
  readonly #rows: number[] = [];
  readonly #seqs: number[] = [];

  get count(): number {
    return this.#rows.length;
  }

  /** Logs a replacement. @param seq The seq of the replacement; 0 if it was rolled back. */
  note(row: number, seq: number): void {
    this.#rows.push(row);
    this.#seqs.push(seq);
  }

  /** Visits the logged replacements from index `from` (inclusive) to `to` (exclusive). */
  visit(from: number, to: number, visit: (row: number, seq: number) => void): void {
    for (let index = from; index < Math.min(to, this.count); index += 1) {
      visit(this.#rows[index] ?? 0, this.#seqs[index] ?? 0);
    }
  }
}
