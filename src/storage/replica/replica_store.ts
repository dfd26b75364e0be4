/**
 * The store as a reader in another thread has it: the tables of one statement, as they were shared
 * with it, read by the same scans as on the event loop.
 *
 * - Files of segments are mapped once and kept until the event loop says that they are dropped.
 * - Nothing is written here. Damage is thrown, and the event loop quarantines the segment.
 */
import { assert, defined } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import { type CorruptionError, DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type SeqEra, SeqTimes } from "../../base/seq_times.ts";
import type { Row } from "../../types/mod.ts";
import { keyOfRow } from "../contract/key.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type {
  DroppedShares,
  SharedMemtable,
  SharedSegment,
  SharedTable,
} from "../contract/shared_tables.ts";
import type {
  LookupOptions,
  OrderedScan,
  ReadStore,
  Scan,
  ScanOptions,
} from "../contract/store.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { available } from "../directory/readable.ts";
import { Memtable } from "../memtable/memtable.ts";
import { StoreScan } from "../read/scan.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { LowWater } from "../table/history.ts";
import { openListedSegment } from "../table/listed_files.ts";
import { OpenSegment, type SegmentFiles } from "../table/open_segment.ts";
import { StoredTable } from "../table/table.ts";
import { countLiveRows, spanOfColumn } from "../table/table_stats.ts";

/** A segment that the reader has met, and where its file lies. */
interface KnownSegment {
  readonly segment: OpenSegment;
  readonly deletions: DeletionVector;
}

/** A table for one statement. */
interface OpenTable {
  readonly table: StoredTable;
  readonly expiredSeq: number;
}

export class ReplicaStore implements ReadStore {
  readonly #disk: Disk;
  readonly #cache: ChunkCache;
  readonly #nextId: () => number;
  readonly #segments = new Map<number, KnownSegment>();
  readonly #memtables = new Map<number, KeyedMemtable>();
  readonly #paths = new Map<number, string>();
  #tables: ReadonlyMap<number, OpenTable> = new Map();
  #upTo: Seq = SEQ_ZERO;
  #times = new SeqTimes({ eras: [] });

  /**
   * @param options.cacheBytes For unpacked parts of segments.
   * @param options.nextId Gets an id from the store that issues them.
   */
  constructor(disk: Disk, { cacheBytes, nextId }: { cacheBytes: number; nextId: () => number }) {
    this.#disk = disk;
    this.#nextId = nextId;
    this.#cache = new ChunkCache(cacheBytes);
  }

  get visibleSeq(): Seq {
    return this.#upTo;
  }

  /** Goes over to the tables of another statement. */
  open(
    tables: readonly SharedTable[],
    { eras, upTo }: { readonly eras: readonly SeqEra[]; readonly upTo: Seq },
  ): void {
    this.#upTo = upTo;
    this.#times = new SeqTimes({ eras });
    this.#tables = new Map(
      tables.map((shared) => [shared.definition.tableId, this.#opened(shared)]),
    );
  }

  /** Lets go of files and memory that no table has any more. */
  drop({ memtableIds, segmentIds }: DroppedShares): void {
    this.#tables = new Map();
    for (const id of memtableIds) this.#memtables.delete(id);
    for (const id of segmentIds) {
      this.#segments.get(id)?.segment.close();
      this.#segments.delete(id);
      this.#paths.delete(id);
    }
  }

  close(): void {
    for (const { segment } of this.#segments.values()) segment.close();
    this.#segments.clear();
  }

  scan(tableId: number, options: ScanOptions): Scan {
    const { expiredSeq, table } = this.#table(tableId);
    const after = Math.max(options.after ?? 0, expiredSeq) as Seq;
    return new StoreScan(table, { ...options, after });
  }

  /** Orders take as much memory as the column; only the event loop keeps them. */
  scanOrdered(): OrderedScan | undefined {
    return undefined;
  }

  lookup(tableId: number, options: LookupOptions): Row | undefined {
    const { expiredSeq, table } = this.#table(tableId);
    for (const memtable of table.memtables()) {
      if (memtable instanceof KeyedMemtable) memtable.indexKeys(options.owner, table.keyPositions);
    }
    return table.lookup(options, expiredSeq);
  }

  liveRowCount(tableId: number, owner: number | undefined): number {
    const { expiredSeq: after, table } = this.#table(tableId);
    return countLiveRows(table, { owner, upTo: this.#upTo, after });
  }

  /** As {@linkcode Store.valueSpan}. */
  valueSpan(tableId: number, columnId: number): number | undefined {
    return spanOfColumn(this.#table(tableId).table, columnId);
  }

  commitMs(seq: number): number {
    return this.#times.msOf(seq);
  }

  lastSeqUpTo(unixMs: number): number {
    return this.#times.lastSeqUpTo(unixMs);
  }

  snowflakeId(): number {
    return this.#nextId();
  }

  #opened({ definition, expiredSeq, memtables, segments }: SharedTable): OpenTable {
    const progress = { flushedSeq: 0, lowWater: new LowWater(), lastFlushedAtMs: undefined };
    const opened = segments.map((shared) => this.#segment(shared));
    const table = new StoredTable(definition, { segments: opened, progress });
    for (const shared of memtables) table.adopt(this.#memtable(shared, definition.columns));
    return { table, expiredSeq };
  }

  #segment({ entry, pages, path }: SharedSegment): OpenSegment {
    const { segmentId } = entry;
    let known = this.#segments.get(segmentId);
    if (known === undefined) {
      const deletions = new DeletionVector(entry);
      const segment = new OpenSegment(entry, this.#files);
      segment.adoptDeletions(deletions);
      known = { segment, deletions };
      this.#segments.set(segmentId, known);
    }
    this.#paths.set(segmentId, path);
    known.segment.entry = entry;
    known.deletions.adopt(pages);
    return known.segment;
  }

  #memtable(shared: SharedMemtable, columns: ConstructorParameters<typeof Memtable>[0]): Memtable {
    let memtable = this.#memtables.get(shared.id);
    if (memtable === undefined) {
      memtable = new KeyedMemtable(columns);
      this.#memtables.set(shared.id, memtable);
    }
    memtable.follow(shared);
    return memtable;
  }

  readonly #files: SegmentFiles = {
    openReader: (entry): SegmentReader => {
      const path = this.#pathOf(entry);
      return available(path, () =>
        openListedSegment(this.#disk, path, { entry, cache: this.#cache }),
      );
    },
    readDeletions: (): DeletionVector => {
      throw new Error("A reader takes deletion vectors from the event loop");
    },
    segmentPath: (entry) => this.#pathOf(entry),
    remove: () => assert(false, "a reader removes no file"),
    onDamage: (segment: OpenSegment, _damage: CorruptionError) => {
      segment.quarantine({ isForGood: true });
    },
  };

  #pathOf({ segmentId }: SegmentEntry): string {
    return defined(this.#paths.get(segmentId), "a segment was shared with its path");
  }

  #table(tableId: number): OpenTable {
    const open = this.#tables.get(tableId);
    if (open !== undefined) return open;
    throw new DatabaseError("TABLE_NOT_FOUND", `Cannot open table ${tableId}: there is none`);
  }
}

/** A memtable whose keys are found once somebody looks for one. */
class KeyedMemtable extends Memtable {
  /** How many rows of each owner have their keys noted. */
  readonly #indexed = new Map<number, number>();

  indexKeys(owner: number, keyPositions: readonly number[]): void {
    const partition = this.partitions.get(owner);
    if (partition === undefined) return;
    const keyColumns = keyPositions.map((position) =>
      defined(this.columns[position], "a key column is a column of the memtable"),
    );
    const places = keyPositions.map((_, index) => index);
    for (let index = this.#indexed.get(owner) ?? 0; index < partition.count; index += 1) {
      const row = partition.rows[index] ?? 0;
      const values = keyColumns.map((column) => column.valueAt(row));
      partition.setRow(keyOfRow(values, places), row);
    }
    this.#indexed.set(owner, partition.count);
  }
}
