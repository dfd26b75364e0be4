/**
 * Implements the store used by a reader in another thread. It contains the tables shared for one
 * statement, and reads them with the same scans as the event loop.
 *
 * - Segment files are mapped once, and stay mapped until the event loop reports them as dropped.
 * - A reader never writes. If it finds damage, it throws an error, and the event loop quarantines
 *   the segment.
 */
import { dirname } from "node:path";
import { assert, defined } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type SeqEra, SeqTimes } from "../../base/seq_times.ts";
import type { Row } from "../../types/mod.ts";
import type { ChangeScan, ChangesOptions } from "../contract/changes.ts";
import type {
  ChosenScanOptions,
  IndexLookupOptions,
  IndexScanOptions,
} from "../contract/index_reads.ts";
import { keyOfRow } from "../contract/key.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type {
  CountedScan,
  LookupOptions,
  OrderedScan,
  OrderedScanOptions,
  Scan,
  ScanOptions,
} from "../contract/scans.ts";
import type {
  DroppedShares,
  SharedMemtable,
  SharedSegment,
  SharedTable,
} from "../contract/shared_tables.ts";
import type { ReadStore } from "../contract/store.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { indexFileName } from "../directory/file_names.ts";
import { available } from "../directory/readable.ts";
import { Memtable } from "../memtable/memtable.ts";
import { StoreChangeScan } from "../read/change_scan.ts";
import { openChosenScan } from "../read/chosen_scan.ts";
import { openIndexScan } from "../read/index_scan.ts";
import { NewestScan } from "../read/newest_scan.ts";
import { StoreScan } from "../read/scan.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { distinctValues } from "../table/distinct_values.ts";
import { LowWatermark } from "../table/history.ts";
import { openListedIndex, openListedSegment } from "../table/listed_files.ts";
import { OpenSegment, type SegmentFiles } from "../table/open_segment.ts";
import { StoredTable } from "../table/table.ts";
import { lookupIndex } from "../table/table_index.ts";
import { countLiveRows } from "../table/table_stats.ts";

/** A segment opened by the reader, and the path of its file. */
interface KnownSegment {
  readonly segment: OpenSegment;
  /** The deletion vector of the segment; undefined for a history segment. */
  readonly deletions: DeletionVector | undefined;
}

/** A table opened for one statement. */
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
   * Creates the store of a reader thread, without any tables.
   * @param options.cacheBytes The maximum size in bytes of the cache for decompressed parts of
   *   segments.
   * @param options.nextId Requests an id from the store that issues them.
   */
  constructor(disk: Disk, { cacheBytes, nextId }: { cacheBytes: number; nextId: () => number }) {
    this.#disk = disk;
    this.#nextId = nextId;
    this.#cache = new ChunkCache(cacheBytes);
  }

  get visibleSeq(): Seq {
    return this.#upTo;
  }

  /** The size in bytes of the decompressed parts of segments in the cache. */
  get cachedBytes(): number {
    return this.#cache.byteCount;
  }

  /** Drops the decompressed parts of segments from the cache. */
  giveBackMemory(): void {
    this.#cache.clear();
  }

  /** Replaces the open tables with the tables of another statement. */
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

  /**
   * Closes files and releases memory of segments and memtables that no longer belong to a table.
   */
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
    // A tombstone in history is current only if its key has not been inserted again, which a key
    // lookup decides.
    if (options.withTombstones === true) indexKeys(table, options.owner);
    return new StoreScan(table, { ...options, after });
  }

  changes(tableId: number, options: ChangesOptions): ChangeScan {
    const { expiredSeq, table } = this.#table(tableId);
    const after = Math.max(options.after, expiredSeq) as Seq;
    return new StoreChangeScan(table, { ...options, after });
  }

  /**
   * Reads rows only in the order of seqs, which needs no sorting. Any other order would take as
   * much memory as the column.
   */
  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined {
    if (options.columnId !== SEQ_COLUMN_ID) return undefined;
    const { expiredSeq, table } = this.#table(tableId);
    const after = Math.max(options.after ?? 0, expiredSeq) as Seq;
    return NewestScan.open(table, { ...options, after });
  }

  scanChosen(tableId: number, options: ChosenScanOptions): CountedScan | undefined {
    const { expiredSeq, table } = this.#table(tableId);
    const after = Math.max(options.after ?? 0, expiredSeq) as Seq;
    indexKeys(table, options.owner);
    return openChosenScan(table, { ...options, after });
  }

  scanIndex(tableId: number, options: IndexScanOptions): OrderedScan | undefined {
    const { expiredSeq, table } = this.#table(tableId);
    const after = Math.max(options.after ?? 0, expiredSeq) as Seq;
    return openIndexScan(table, { ...options, after });
  }

  lookupIndex(tableId: number, options: IndexLookupOptions): readonly Row[] | undefined {
    const { expiredSeq, table } = this.#table(tableId);
    return lookupIndex(table, options, expiredSeq);
  }

  lookup(tableId: number, options: LookupOptions): Row | undefined {
    const { expiredSeq, table } = this.#table(tableId);
    indexKeys(table, options.owner);
    return table.lookup(options, expiredSeq);
  }

  liveRowCount(tableId: number, owner: number | undefined): number {
    const { expiredSeq: after, table } = this.#table(tableId);
    return countLiveRows(table, { owner, upTo: this.#upTo, after });
  }

  /** Implements {@linkcode Store.distinctValues}. */
  distinctValues(tableId: number, columnId: number): number | undefined {
    return distinctValues(this.#table(tableId).table, { columnId, upTo: this.#upTo });
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

  #opened({ definition, expiredSeq, memtables, ...shared }: SharedTable): OpenTable {
    const progress = {
      flushedSeq: 0,
      lowWatermark: new LowWatermark(),
      lastFlushedAtMs: undefined,
    };
    const segments = shared.segments.map((each) => this.#segment(each));
    const history = shared.history.map((each) => this.#segment(each));
    const table = new StoredTable(definition, { segments, history, progress });
    for (const memtable of memtables) table.adopt(this.#memtable(memtable, definition.columns));
    return { table, expiredSeq };
  }

  #segment({ entry, pages, path }: SharedSegment): OpenSegment {
    const { segmentId } = entry;
    let known = this.#segments.get(segmentId);
    if (known === undefined) {
      const segment = new OpenSegment(entry, this.#files);
      const deletions = segment.isHistory ? undefined : new DeletionVector(entry);
      if (deletions !== undefined) segment.adoptDeletions(deletions);
      known = { segment, deletions };
      this.#segments.set(segmentId, known);
    }
    this.#paths.set(segmentId, path);
    known.segment.entry = entry;
    known.deletions?.adopt(pages);
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
      throw new Error("reader thread: deletion vectors must come from the event loop");
    },
    openIndex: (entry, indexId, open) => {
      if (entry.indexIds?.includes(indexId) !== true) return undefined;
      const directory = dirname(this.#pathOf(entry));
      const path = `${directory}/${indexFileName(entry.segmentId, indexId)}`;
      try {
        return openListedIndex(this.#disk, path, { entry, indexId, open });
      } catch (error) {
        // Ignoring the damage is safe: the caller builds the index from the rows instead, and the
        // event loop reports the damage.
        if (error instanceof CorruptionError) return undefined;
        throw error;
      }
    },
    segmentPath: (entry) => this.#pathOf(entry),
    remove: () => assert(false, "reader thread: readers must not remove files"),
    onDamage: (segment: OpenSegment, _damage: CorruptionError) => {
      segment.quarantine({ isForGood: true });
    },
  };

  #pathOf({ segmentId }: SegmentEntry): string {
    return defined(this.#paths.get(segmentId), "reader thread: shared segment has no path");
  }

  #table(tableId: number): OpenTable {
    const open = this.#tables.get(tableId);
    if (open !== undefined) return open;
    throw new DatabaseError(
      "TABLE_NOT_FOUND",
      `Cannot open table ${tableId}: there is no such table`,
    );
  }
}

/** Makes an owner's keys searchable in a table's memtables. */
function indexKeys(table: StoredTable, owner: number): void {
  for (const memtable of table.memtables()) {
    if (memtable instanceof KeyedMemtable) memtable.indexKeys(owner, table.keyPositions);
  }
}

/** A memtable whose keys are indexed when they are first searched. */
class KeyedMemtable extends Memtable {
  /** For each owner, the number of rows whose keys are indexed. */
  readonly #indexed = new Map<number, number>();

  indexKeys(owner: number, keyPositions: readonly number[]): void {
    const partition = this.partitions.get(owner);
    if (partition === undefined) return;
    const keyColumns = keyPositions.map((position) =>
      defined(
        this.columns[position],
        "reader thread: key column is missing from the shared memtable",
      ),
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
