/**
 * A manifest in memory. A published change survives any crash of the store. `restart` returns the
 * manifest that the next process finds.
 */
import { assert } from "../../src/base/assert.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../src/base/seq.ts";
import type {
  Manifest,
  ManifestChange,
  ManifestState,
  SegmentEntry,
  TableState,
} from "../../src/storage/mod.ts";

export class MemoryManifest implements Manifest {
  /** Called before a change takes effect. It may throw to prevent the change. */
  onPublish: (change: ManifestChange) => void = () => {};
  /** The minimum value of `highestSeq`: the newest seq that the catalog has ever recorded. */
  catalogSeq: Seq = SEQ_ZERO;
  publishCount = 0;
  /** The seqs that `undoneSeqs` returns. */
  readonly undone = new Set<number>();
  isBroken = false;
  readonly #segments = new Map<number, SegmentEntry>();
  readonly #tables = new Map<number, TableState>();
  #segmentCount = 0;
  #firstLogFile: number | undefined;

  load(): ManifestState {
    return {
      segments: [...this.#segments.values()],
      tables: [...this.#tables.values()],
      firstLogFile: this.#firstLogFile,
    };
  }

  publish(change: ManifestChange): void {
    this.onPublish(change);
    this.publishCount += 1;
    this.highestSeq();
    for (const entry of change.addSegments ?? []) {
      assert(!this.#segments.has(entry.segmentId), "an added segment must be new");
      this.#segments.set(entry.segmentId, entry);
    }
    for (const entry of change.changeSegments ?? []) {
      assert(this.#segments.has(entry.segmentId), "a changed segment must exist");
      this.#segments.set(entry.segmentId, entry);
    }
    for (const segmentId of change.removeSegmentIds ?? []) this.#segments.delete(segmentId);
    for (const table of change.tables ?? []) this.#tables.set(table.tableId, table);
    for (const tableId of change.removeTableIds ?? []) this.#tables.delete(tableId);
    this.#firstLogFile = change.firstLogFile ?? this.#firstLogFile;
  }

  /** Drops the definition of a table and all entries of the table. */
  forget(tableId: number): void {
    const ofTable = [...this.#segments.values()].filter((entry) => entry.tableId === tableId);
    for (const { segmentId } of ofTable) this.#segments.delete(segmentId);
    this.#tables.delete(tableId);
  }

  undoneSeqs(): ReadonlySet<number> {
    return this.undone;
  }

  nextSegmentId(): number {
    if (this.isBroken) throw new DatabaseError("STORAGE_UNAVAILABLE", "the catalog is broken");
    this.#segmentCount += 1;
    return this.#segmentCount;
  }

  /**
   * Returns the highest seq that has ever been listed. It never decreases, even if the entry with
   * this seq is removed.
   */
  highestSeq(): Seq {
    for (const { maxSeq } of this.#segments.values()) this.#raise(maxSeq);
    for (const { flushedSeq } of this.#tables.values()) this.#raise(flushedSeq);
    return this.catalogSeq;
  }

  /**
   * Returns a copy of the manifest, as the next process would find it after a crash at this
   * moment.
   */
  restart(): MemoryManifest {
    const copy = new MemoryManifest();
    copy.catalogSeq = this.catalogSeq;
    copy.#segmentCount = this.#segmentCount;
    copy.#firstLogFile = this.#firstLogFile;
    for (const [id, entry] of this.#segments) copy.#segments.set(id, entry);
    for (const [id, table] of this.#tables) copy.#tables.set(id, table);
    return copy;
  }

  #raise(seq: Seq): void {
    if (seq > this.catalogSeq) this.catalogSeq = seq;
  }
}
