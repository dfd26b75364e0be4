/**
 * Implements the store's manifest in the catalog database. Publishing a segment is therefore a
 * single SQLite transaction, and there is no separate manifest file that could be inconsistent
 * with the catalog.
 *
 * The interface belongs to storage (`storage/contract/manifest.ts`), which is a sibling layer and
 * must not be imported here. This file therefore declares types with the same properties, and
 * `open_layers.ts`, which imports both layers, connects them. The properties are documented in
 * `storage/contract/manifest.ts`.
 */
import { assert } from "../base/assert.ts";
import type { Hash64 } from "../base/checksum.ts";
import { type Seq, seqFromNumber } from "../base/seq.ts";
import type { Counters } from "./counters.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import type { SealedFile, SqliteFile } from "./sqlite_file.ts";
import type { UndoneDefinitions } from "./undone_definitions.ts";

/** A live segment file, equivalent to a `SegmentEntry` in the storage layer. */
export interface SegmentRecord {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: Seq;
  readonly maxSeq: Seq;
  readonly rowCount: number;
  readonly bytes: number;
  readonly compression?: "zstd";
  readonly deletionGeneration: number;
  readonly deletionHash?: Hash64 & { readonly generation: number };
  readonly indexIds?: readonly number[];
  readonly createdAtMs: number;
  readonly quarantined: boolean;
  readonly isGivenUp?: true;
  readonly home?: { readonly storageId: string; readonly root: string; readonly directory: string };
  readonly history?: { readonly lowestReplacingSeq: Seq; readonly highestReplacingSeq: Seq };
}

/** The state of a table: the seq up to which it has been flushed. */
export interface TableStateRecord {
  readonly tableId: number;
  readonly flushedSeq: Seq;
  readonly lowWaterSeq: Seq;
  readonly ownerLowWaters?: readonly (readonly [number, number])[];
  readonly lastFlushedAtMs: number;
}

/** A change to the manifest, applied either completely or not at all. */
export interface ManifestUpdate {
  readonly addSegments?: readonly SegmentRecord[];
  readonly changeSegments?: readonly SegmentRecord[];
  readonly removeSegmentIds?: readonly number[];
  readonly tables?: readonly TableStateRecord[];
  readonly removeTableIds?: readonly number[];
  readonly firstLogFile?: number;
}

/** The keys of a table's entries in the manifest. */
export interface ListedOfTable {
  readonly segmentIds: readonly number[];
  readonly tableIds: readonly number[];
}

/** A segment in the form in which the catalog stores it. */
interface StoredSegment extends Omit<SegmentRecord, "isGivenUp"> {
  readonly putAside?: true;
}

/**
 * The number of segment ids reserved on disk at a time, so that most segments need no additional
 * transaction.
 */
const SEGMENT_ID_BLOCK = 64;

export class ManifestDatabase {
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #undone: UndoneDefinitions;
  readonly #segments = new Map<number, SegmentRecord>();
  readonly #tables = new Map<number, TableStateRecord>();
  #nextSegmentId: number;

  constructor(file: SqliteFile, counters: Counters, undone: UndoneDefinitions) {
    this.#file = file;
    this.#undone = undone;
    this.#counters = counters;
    this.#nextSegmentId = counters.get("next_segment_id");
    for (const stored of allSealed<StoredSegment>(file, "segments")) {
      this.#segments.set(stored.segmentId, segmentFrom(stored));
    }
    for (const entry of allSealed<TableStateRecord>(file, "table_states")) {
      this.#tables.set(entry.tableId, entry);
    }
  }

  /**
   * Returns every live segment in ascending order of id, the state of every table, and the number
   * of the first log file still needed.
   */
  load(): {
    segments: readonly SegmentRecord[];
    tables: readonly TableStateRecord[];
    firstLogFile?: number | undefined;
  } {
    const segments = [...this.#segments.values()];
    const firstLogFile = this.#counters.get("first_log_file");
    return {
      segments: segments.toSorted((left, right) => left.segmentId - right.segmentId),
      tables: [...this.#tables.values()],
      firstLogFile: firstLogFile === 0 ? undefined : firstLogFile,
    };
  }

  listedOf(tableId: number): ListedOfTable {
    const segments = [...this.#segments.values()].filter((entry) => entry.tableId === tableId);
    return {
      segmentIds: segments.map(({ segmentId }) => segmentId),
      tableIds: this.#tables.has(tableId) ? [tableId] : [],
    };
  }

  /** Removes a table's entries from the manifest within the current transaction. */
  remove(listed: ListedOfTable): void {
    removeListed(this.#file, listed);
  }

  /**
   * Removes entries of the manifest from memory. Must be called once the transaction is durable.
   */
  forget({ segmentIds, tableIds }: ListedOfTable): void {
    for (const id of segmentIds) this.#segments.delete(id);
    for (const id of tableIds) this.#tables.delete(id);
  }

  /**
   * Applies a change to the manifest in a single durable transaction. Once this returns, a crash
   * does not undo the change.
   */
  publish(change: ManifestUpdate): void {
    const { addSegments = [], changeSegments = [], removeSegmentIds = [] } = change;
    const { tables = [], removeTableIds = [], firstLogFile = 0 } = change;
    for (const { segmentId } of addSegments) {
      assert(!this.#segments.has(segmentId), "manifest: segment is already listed");
      assert(
        segmentId < this.#counters.get("next_segment_id"),
        "manifest: segment id was never reserved",
      );
    }
    for (const { segmentId } of changeSegments) {
      assert(this.#segments.has(segmentId), "manifest: the segment to be changed is not live");
    }
    const highest = highestOf(change);
    const removed = { segmentIds: removeSegmentIds, tableIds: removeTableIds };
    this.#file.transaction(() => {
      this.remove(removed);
      for (const entry of [...addSegments, ...changeSegments]) {
        putSealed(this.#file, "segments", { key: entry.segmentId, value: storedFrom(entry) });
      }
      for (const entry of tables) {
        putSealed(this.#file, "table_states", { key: entry.tableId, value: entry });
      }
      this.#counters.store("highest_seq", highest);
      this.#counters.store("first_log_file", firstLogFile);
    });
    this.forget(removed);
    for (const entry of [...addSegments, ...changeSegments]) {
      this.#segments.set(entry.segmentId, entry);
    }
    for (const entry of tables) this.#tables.set(entry.tableId, entry);
    this.#counters.raise("highest_seq", highest);
    this.#counters.raise("first_log_file", firstLogFile);
  }

  /**
   * Records that all segments are in the data directory rather than in storages, as in a backup.
   */
  leaveStorages(): void {
    const away = [...this.#segments.values()].filter(({ home }) => home !== undefined);
    if (away.length === 0) return;
    this.publish({ changeSegments: away.map(withoutHome) });
  }

  get isBroken(): boolean {
    return this.#file.failure !== undefined;
  }

  /**
   * Returns a segment id that has never been used before. Even a crash does not cause an id to be
   * used again.
   */
  nextSegmentId(): number {
    if (this.#file.failure !== undefined) throw this.#file.failure;
    const segmentId = this.#nextSegmentId;
    if (segmentId >= this.#counters.get("next_segment_id")) {
      const reserved = segmentId + SEGMENT_ID_BLOCK;
      this.#file.transaction(() => this.#counters.store("next_segment_id", reserved));
      this.#counters.raise("next_segment_id", reserved);
    }
    this.#nextSegmentId = segmentId + 1;
    return segmentId;
  }

  /** Returns the seqs of definitions that never took effect. Rows with these seqs are ignored. */
  undoneSeqs(): ReadonlySet<number> {
    return this.#undone.seqs;
  }

  /** Returns the highest seq that any segment, table state or definition has ever had. */
  highestSeq(): Seq {
    const seq = seqFromNumber(this.#counters.get("highest_seq"));
    assert(seq !== undefined, "manifest: highest_seq is not a valid seq");
    return seq;
  }
}

/** Removes manifest entries within a file's current transaction. */
export function removeListed(file: SealedFile, { segmentIds, tableIds }: ListedOfTable): void {
  for (const id of segmentIds) removeSealed(file, "segments", id);
  for (const id of tableIds) removeSealed(file, "table_states", id);
}

function withoutHome(entry: SegmentRecord): SegmentRecord {
  const { home: _, ...rest } = entry;
  return rest;
}

function segmentFrom({ putAside, ...rest }: StoredSegment): SegmentRecord {
  return putAside === undefined ? rest : { ...rest, isGivenUp: putAside };
}

function storedFrom({ isGivenUp, ...rest }: SegmentRecord): StoredSegment {
  return isGivenUp === undefined ? rest : { ...rest, putAside: isGivenUp };
}

function highestOf({ addSegments = [], changeSegments = [], tables = [] }: ManifestUpdate): number {
  let highest = 0;
  for (const { maxSeq } of addSegments) highest = Math.max(highest, maxSeq);
  for (const { maxSeq } of changeSegments) highest = Math.max(highest, maxSeq);
  for (const { flushedSeq } of tables) highest = Math.max(highest, flushedSeq);
  return highest;
}
