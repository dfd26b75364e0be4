/**
 * The manifest of the store, kept in the catalog database: publishing a segment is one SQLite
 * transaction, and there is no manifest file to get wrong.
 *
 * Storage owns the interface (`storage/contract/manifest.ts`) and is a sibling that is not
 * imported; the same shapes are declared here, by the same names, and `open_layers.ts`, which
 * sees both, hands one to the other. What their members mean is said there.
 */
import { assert } from "../base/assert.ts";
import type { Hash64 } from "../base/checksum.ts";
import { type Seq, seqFromNumber } from "../base/seq.ts";
import type { Counters } from "./counters.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

/** One live segment file. */
export interface SegmentEntry {
  readonly segmentId: number;
  readonly tableId: number;
  readonly minSeq: Seq;
  readonly maxSeq: Seq;
  readonly rowCount: number;
  readonly bytes: number;
  readonly compression?: "zstd";
  readonly deletionGeneration: number;
  readonly deletionHash?: DeletionHash;
  readonly createdAtMs: number;
  readonly quarantined: boolean;
  readonly isGivenUp?: true;
  readonly home?: SegmentHome;
}

/** Documented in `storage/contract/manifest.ts`. */
interface DeletionHash extends Hash64 {
  readonly generation: number;
}

/** Documented in `storage/contract/manifest.ts`. */
interface SegmentHome {
  readonly storageId: string;
  readonly root: string;
  readonly directory: string;
}

/** How far a table is flushed. */
export interface TableState {
  readonly tableId: number;
  readonly flushedSeq: Seq;
  readonly lowWaterSeq: Seq;
  readonly ownerLowWaters?: readonly (readonly [number, number])[];
  readonly lastFlushedAtMs: number;
}

/** Applied whole or not at all. */
export interface ManifestChange {
  readonly addSegments?: readonly SegmentEntry[];
  readonly changeSegments?: readonly SegmentEntry[];
  readonly removeSegmentIds?: readonly number[];
  readonly tables?: readonly TableState[];
  readonly removeTableIds?: readonly number[];
  readonly firstLogFile?: number;
}

/** What is listed of one table. */
export interface ListedOfTable {
  readonly segmentIds: readonly number[];
  readonly tableIds: readonly number[];
}

/** A segment as it lies in the file, by the names that are there. */
interface StoredSegment extends Omit<SegmentEntry, "isGivenUp"> {
  readonly putAside?: true;
}

/** Ids are reserved on disk in blocks, so that most segments cost no transaction of their own. */
const SEGMENT_ID_BLOCK = 64;

export class ManifestDatabase {
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #segments = new Map<number, SegmentEntry>();
  readonly #tables = new Map<number, TableState>();
  #nextSegmentId: number;

  constructor(file: SqliteFile, counters: Counters) {
    this.#file = file;
    this.#counters = counters;
    this.#nextSegmentId = counters.get("next_segment_id");
    for (const stored of allSealed<StoredSegment>(file, "segments")) {
      this.#segments.set(stored.segmentId, segmentFrom(stored));
    }
    for (const entry of allSealed<TableState>(file, "table_states")) {
      this.#tables.set(entry.tableId, entry);
    }
  }

  /** Every live segment, ascending by id, every table's state, and where the log begins. */
  load(): {
    segments: readonly SegmentEntry[];
    tables: readonly TableState[];
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

  /** Within the running transaction. */
  remove({ segmentIds, tableIds }: ListedOfTable): void {
    for (const id of segmentIds) removeSealed(this.#file, "segments", id);
    for (const id of tableIds) removeSealed(this.#file, "table_states", id);
  }

  /** Follows in memory once the transaction is durable. */
  forget({ segmentIds, tableIds }: ListedOfTable): void {
    for (const id of segmentIds) this.#segments.delete(id);
    for (const id of tableIds) this.#tables.delete(id);
  }

  /** One durable transaction: when this returns, a crash does not undo it. */
  publish(change: ManifestChange): void {
    const { addSegments = [], changeSegments = [], removeSegmentIds = [] } = change;
    const { tables = [], removeTableIds = [], firstLogFile = 0 } = change;
    for (const { segmentId } of addSegments) {
      assert(!this.#segments.has(segmentId), "a segment is added once");
      assert(segmentId < this.#counters.get("next_segment_id"), "a segment id was reserved");
    }
    for (const { segmentId } of changeSegments) {
      assert(this.#segments.has(segmentId), "a segment that changes is live");
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

  /** Every segment lies in the data directory now, as in a backup. */
  leaveStorages(): void {
    const away = [...this.#segments.values()].filter(({ home }) => home !== undefined);
    if (away.length === 0) return;
    this.publish({ changeSegments: away.map(withoutHome) });
  }

  get isBroken(): boolean {
    return this.#file.failure !== undefined;
  }

  /** A segment id that was never used before, also not before a crash. */
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

  /** Highest seq that a segment, a table's state or a definition ever named. */
  highestSeq(): Seq {
    const seq = seqFromNumber(this.#counters.get("highest_seq"));
    assert(seq !== undefined, "the highest seq is a seq");
    return seq;
  }
}

function withoutHome(entry: SegmentEntry): SegmentEntry {
  const { home: _, ...rest } = entry;
  return rest;
}

function segmentFrom({ putAside, ...rest }: StoredSegment): SegmentEntry {
  return putAside === undefined ? rest : { ...rest, isGivenUp: putAside };
}

function storedFrom({ isGivenUp, ...rest }: SegmentEntry): StoredSegment {
  return isGivenUp === undefined ? rest : { ...rest, putAside: isGivenUp };
}

function highestOf({ addSegments = [], changeSegments = [], tables = [] }: ManifestChange): number {
  let highest = 0;
  for (const { maxSeq } of addSegments) highest = Math.max(highest, maxSeq);
  for (const { maxSeq } of changeSegments) highest = Math.max(highest, maxSeq);
  for (const { flushedSeq } of tables) highest = Math.max(highest, flushedSeq);
  return highest;
}
