/**
 * Implements the store on a local disk by connecting the log, memtables, segments and the
 * manifest.
 *
 *     apply ──► commit ──► local_wal (durable) ──► visible
 *                  └─────► memtable ──flush──► segment + manifest
 *     scan, changes, lookup ◄── segments + memtables
 */
import { assert } from "../base/assert.ts";
import { type CorruptionError, DatabaseError } from "../base/errors.ts";
import { SEQ_ZERO, type Seq, SeqGenerator } from "../base/seq.ts";
import { SeqTimes } from "../base/seq_times.ts";
import type { Row } from "../types/mod.ts";
import { Flusher } from "./background/flush.ts";
import { heldHistoryOf } from "./background/history_size.ts";
import {
  buildIndex,
  checkIndex,
  type IndexBuildTools,
  removeIndexFiles,
} from "./background/index_builder.ts";
import { Merger } from "./background/merge.ts";
import { MERGE_BOUNDS } from "./background/merge_choice.ts";
import { Scrubber } from "./background/scrub.ts";
import { InThreadWork, type SegmentWork } from "./background/segment_work.ts";
import { Committer, type CommitterEvents } from "./commit/commit.ts";
import type {
  AllChangesOptions,
  ChangeScan,
  ChangesOptions,
  OwnedChangeScan,
  VersionRows,
  VersionsOptions,
} from "./contract/changes.ts";
import type { CommitLog, ListedLogFile } from "./contract/commit_log.ts";
import type {
  ChosenScanOptions,
  IndexLookupOptions,
  IndexScanOptions,
} from "./contract/index_reads.ts";
import { type Job, JobList } from "./contract/job_list.ts";
import type { Manifest, SegmentEntry } from "./contract/manifest.ts";
import type {
  CountedScan,
  LookupOptions,
  OrderedScan,
  OrderedScanOptions,
  Scan,
  ScanOptions,
} from "./contract/scans.ts";
import type { HistoryStore, OnVisible, SeqGap, Store } from "./contract/store.ts";
import type {
  CompactResult,
  FlushedStats,
  FlushResult,
  HeldHistory,
  ListedSegment,
  StoreCondition,
  StoreMemory,
  TableStats,
} from "./contract/store_figures.ts";
import { type StoreSnapshot, snapshotOf } from "./contract/store_snapshot.ts";
import type { TableDefinition } from "./contract/table_definition.ts";
import type {
  Commit,
  PublishedDefinitions,
  StagedCommit,
  StageOptions,
  WriteBatch,
} from "./contract/writes.ts";
import { Ballast } from "./directory/ballast.ts";
import { SpaceGuard } from "./directory/space.ts";
import {
  type LocalStoreParts,
  noStorages,
  openedBy,
  requireFileFitsRow,
  type StoreWithPlaces,
  toldIn,
} from "./local_store_options.ts";
import { openHighWater } from "./local_wal/high_water.ts";
import { LocalWal } from "./local_wal/writer.ts";
import { openAllChanges } from "./read/all_changes.ts";
import { StoreChangeScan } from "./read/change_scan.ts";
import { openChosenScan } from "./read/chosen_scan.ts";
import { openIndexScan } from "./read/index_scan.ts";
import { openInOrder } from "./read/ordered_scan.ts";
import { StoreScan } from "./read/scan.ts";
import { versionRows } from "./read/version_rows.ts";
import { lastCommitUpTo, wholeCommitsUpTo } from "./read/whole_commits.ts";
import { recover } from "./recovery.ts";
import { LocalSharing } from "./replica/local_sharing.ts";
import { boundSharedCache, sharedCache } from "./segment/chunk_cache.ts";
import { SnowflakeIds } from "./snowflake_ids.ts";
import type { Storages } from "./storages.ts";
import { distinctValues } from "./table/distinct_values.ts";
import { LowWatermark } from "./table/history.ts";
import { LocalSegmentFiles } from "./table/segment_files.ts";
import { StoredTable, unlessDamaged } from "./table/table.ts";
import { lookupIndex } from "./table/table_index.ts";
import {
  countLiveRows,
  flushedStats,
  listedSegments,
  ownersOf,
  tableStats,
} from "./table/table_stats.ts";

export class LocalStore implements Store, HistoryStore {
  /** The ranges of seqs lost in restores and crashes. */
  lostSeqs: readonly SeqGap[] = [];
  readonly storages: Storages;
  /** Shares tables with readers in other threads. */
  readonly sharing: LocalSharing;
  /** Drops decompressed parts of segments from the cache, and flushes large memtables early. */
  readonly giveBackMemory = (): void => giveBackMemory(this.#flusher, this.givenBack);
  readonly givenBack: GivenBackCounts = { caches: 0, flushes: 0 };
  readonly #manifest: Manifest;
  readonly #files: LocalSegmentFiles;
  readonly #tables: Map<number, StoredTable>;
  readonly #seqs: SeqGenerator;
  readonly #commitLog: CommitLog;
  readonly #committer: Committer;
  readonly #ids: SnowflakeIds;
  readonly #flusher: Flusher;
  readonly #indexTools: IndexBuildTools;
  readonly #merger: Merger;
  readonly #scrubber: Scrubber;
  readonly #ballast: Ballast;
  readonly #space: SpaceGuard;
  readonly #segmentWork: SegmentWork;
  readonly #onLogRolled: () => void;
  /** The resources that the store opened itself, and releases when it closes. */
  #own: Disposable | undefined;
  #isOpen = true;

  /**
   * Opens or creates a data directory, and recovers the state left by the last process.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the directory is in use, has a newer format, or
   *   has a catalog older than its log; INVALID_OPTION if a log file cannot hold the largest row.
   * @throws {CorruptionError} If acknowledged commits are damaged or missing.
   * @throws {DiskError}
   */
  static async open(parts: LocalStoreParts): Promise<LocalStore> {
    using own = new DisposableStack();
    const directory = parts.directory ?? openedBy(own, parts);
    const storages = parts.storages ?? own.adopt(noStorages(parts), (it) => it.close());
    requireFileFitsRow(parts.options);
    if (parts.options.cacheBytes !== undefined) boundSharedCache(parts.options.cacheBytes);
    const store = new LocalStore({ ...parts, directory, storages });
    store.storages.filesGone = () => store.#files.settled();
    store.#own = own.move();
    return store;
  }

  private constructor(parts: StoreWithPlaces) {
    const { disk, clock, log, manifest, options, jobs, storages } = parts;
    const { paths } = parts.directory;
    this.#onLogRolled = parts.onLogRolled ?? (() => {});
    this.#manifest = manifest;
    this.storages = storages;
    this.#files = new LocalSegmentFiles({ disk, paths, clock, log, manifest, storages });
    const found = recover({ ...parts, paths, files: this.#files });
    const { tables, end, highWater, visibleSeq, lastSeq } = found;
    this.#tables = tables;
    // This file is opened before the log creates its first file, because creating the log file
    // makes every name in the directory durable.
    const ids = openHighWater(disk, paths.ids);
    const commitLog = new LocalWal({
      disk,
      paths,
      clock,
      log,
      fileBytes: options.walSegmentBytes,
      highWater,
      isRelaxed: options.durability === "relaxed",
      earlyBytesMin: options.earlyWriteBytes,
      rowBytesMax: options.rowBytesMax,
      commitBytesMax: options.commitBytesMax,
      end,
      onRolled: () => this.#noteRolled(),
    });
    this.#commitLog = commitLog;
    const { nodeId, nodeBits, minFreeBytes, ballastBytes } = options;
    const node = { clock, nodeId, nodeBits };
    const times = parts.seqTimes ?? new SeqTimes({ eras: [] });
    const onSetBack = toldIn(log);
    this.#seqs = new SeqGenerator({ ...node, last: lastSeq, onSetBack, times });
    this.sharing = new LocalSharing({ files: this.#files, seqs: this.#seqs, times, tables });
    const ballast = new Ballast({ disk, clock, log, path: paths.ballast, bytes: ballastBytes });
    this.#ballast = ballast;
    this.#space = new SpaceGuard({ disk, path: paths.root, minFreeBytes, ballast, clock, log });
    const lastId = Math.max(lastSeq, ids.value) as Seq;
    this.#ids = new SnowflakeIds({ ...node, file: ids.file, last: lastId, times });
    const commits = { commitLog, tables, seqs: this.#seqs, space: this.#space, visibleSeq };
    const catalogSeq = manifest.highestSeq();
    const events = this.#events(parts.onFatal ?? (() => {}));
    this.#committer = new Committer({ ...commits, catalogSeq }, events);
    this.#segmentWork = parts.segmentWork ?? new InThreadWork({ disk, clock });
    const background = {
      disk,
      paths,
      clock,
      log,
      manifest,
      files: this.#files,
      tables,
      seqs: this.#seqs,
      space: this.#space,
      segmentWork: this.#segmentWork,
      jobs: jobs ?? new JobList(clock),
    };
    this.#indexTools = background;
    const { historyBytesMax = 0, mergeBounds = MERGE_BOUNDS } = options;
    this.#merger = new Merger({ ...background, historyBytesMax, mergeBounds });
    this.#scrubber = new Scrubber({ ...background, onDamage: this.noteDamage.bind(this) });
    this.#flusher = new Flusher({
      ...background,
      merger: this.#merger,
      commitLog,
      walMaxBytes: options.walMaxBytes,
      memtableBytesMax: options.memtableBytesMax,
      keepsLogFrom: parts.keepsLogFrom ?? (() => Infinity),
      durable: (seq) => this.durable(seq),
    });
    this.#flusher.start();
  }

  /** Returns the event handlers through which commits trigger work elsewhere in the store. */
  #events(onFatal: (cause: unknown) => void): CommitterEvents {
    return { onAppended: (table) => this.#flusher.noteAppended(table), onFatal };
  }

  get visibleSeq(): Seq {
    return this.#committer.groups.visibleSeq;
  }

  get appliedSeq(): Seq {
    return this.#committer.groups.appliedSeq;
  }

  get onVisible(): OnVisible {
    return this.#committer.groups.onVisible;
  }

  set onVisible(onVisible: OnVisible) {
    this.#committer.groups.onVisible = onVisible;
  }

  defineTable(definition: TableDefinition): void {
    this.#noteDefinition();
    const table = this.#tables.get(definition.tableId);
    if (table !== undefined) {
      table.definition = definition;
      if (!table.isDropped && table.fault === undefined) removeIndexFiles(table, this.#indexTools);
      this.#flusher.noteAppended(table);
      return;
    }
    const progress = {
      flushedSeq: 0,
      lowWatermark: new LowWatermark(),
      lastFlushedAtMs: undefined,
    };
    const created = new StoredTable(definition, { segments: [], progress });
    created.noteFaults(this.storages);
    this.#tables.set(definition.tableId, created);
  }

  dropTable(tableId: number): void {
    const table = this.#table(tableId);
    this.#noteDefinition();
    this.#tables.delete(tableId);
    table.isDropped = true;
    for (const segment of table.allSegments) segment.drop();
    this.#flusher.forget(table);
  }

  apply(batch: WriteBatch): Commit {
    assert(this.#isOpen, "cannot commit to a closed store");
    return this.#committer.apply(batch);
  }

  async exclusively<T>(work: () => T): Promise<T> {
    const resume = await this.#commitLog.pause();
    try {
      this.#commitLog.writeNow();
      return work();
    } finally {
      resume();
    }
  }

  applyWith(batch: WriteBatch, definitions: PublishedDefinitions): Commit {
    assert(this.#isOpen, "cannot commit to a closed store");
    return this.#committer.applyWith(batch, definitions);
  }

  stage(options: StageOptions): StagedCommit {
    return this.#committer.stage(options);
  }

  durable(seq: Seq): Promise<void> {
    return this.#committer.groups.durable(seq);
  }

  scan(tableId: number, options: ScanOptions): Scan {
    const table = this.#available(tableId);
    return new StoreScan(table, this.#unexpired(table, options));
  }

  scanOrdered(tableId: number, options: OrderedScanOptions): OrderedScan | undefined {
    const table = this.#available(tableId);
    return openInOrder(table, this.#unexpired(table, options));
  }

  scanIndex(tableId: number, options: IndexScanOptions): OrderedScan | undefined {
    const table = this.#available(tableId);
    return openIndexScan(table, this.#unexpired(table, options));
  }

  scanChosen(tableId: number, options: ChosenScanOptions): CountedScan | undefined {
    const table = this.#available(tableId);
    return openChosenScan(table, this.#unexpired(table, options));
  }

  changes(tableId: number, options: ChangesOptions): ChangeScan {
    assert(options.upTo <= this.visibleSeq, "change scan: end seq is not yet visible");
    const table = this.#available(tableId);
    return new StoreChangeScan(table, this.#unexpired(table, options));
  }

  changesOfAll(tableId: number, options: AllChangesOptions): OwnedChangeScan {
    assert(options.upTo <= this.visibleSeq, "change scan: end seq is not yet visible");
    return openAllChanges(this.#available(tableId), options);
  }

  versions(tableId: number, options: VersionsOptions): VersionRows {
    return versionRows(this.#available(tableId), options);
  }

  holdHistory(tableId: number, afterSeq: Seq | undefined): void {
    this.#table(tableId).heldAfterSeq = afterSeq ?? Infinity;
  }

  heldHistory(tableId: number): Generator<void, HeldHistory> {
    return heldHistoryOf(this.#table(tableId), this.#seqs);
  }

  lookup(tableId: number, options: LookupOptions): Row | undefined {
    const table = this.#available(tableId);
    return table.lookup(options, table.expiredSeq(this.#seqs));
  }

  lookupIndex(tableId: number, options: IndexLookupOptions): readonly Row[] | undefined {
    const table = this.#available(tableId);
    return lookupIndex(table, options, table.expiredSeq(this.#seqs));
  }

  expiredSeq(tableId: number): number {
    return this.#table(tableId).expiredSeq(this.#seqs);
  }

  earliestSeq(tableId: number, owner: number): Seq {
    return this.#table(tableId).progress.lowWatermark.of(owner) as Seq;
  }

  wholeCommitsUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    if (upTo >= this.visibleSeq) return upTo;
    return wholeCommitsUpTo(this.#available(tableId), { owner, upTo }) as Seq;
  }

  lastCommitUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    return lastCommitUpTo(this.#available(tableId), { owner, upTo }) as Seq;
  }

  wasLost(seq: number): boolean {
    return this.lostSeqs.some(({ after, upTo }) => seq > after && seq < upTo);
  }

  owners(tableId: number): readonly number[] {
    return ownersOf(this.#available(tableId));
  }

  liveRowCount(tableId: number, owner: number | undefined): number {
    const table = this.#available(tableId);
    const after = table.expiredSeq(this.#seqs);
    return countLiveRows(table, { owner, upTo: this.visibleSeq, after });
  }

  distinctValues(tableId: number, columnId: number): number | undefined {
    return distinctValues(this.#available(tableId), { columnId, upTo: this.visibleSeq });
  }

  flush(tableId: number, job?: Job): Promise<FlushResult> {
    return this.#flusher.flush(this.#available(tableId), job);
  }

  compact(tableId: number, job?: Job): Promise<CompactResult> {
    return this.#merger.compact(this.#available(tableId), job);
  }

  buildIndex(tableId: number, indexId: number, job: Job): Promise<boolean> {
    const table = this.#available(tableId);
    return buildIndex({ table, indexId, job, isClosing: () => !this.#isOpen }, this.#indexTools);
  }

  checkIndex(tableId: number, indexId: number, job: Job): Promise<boolean> {
    const table = this.#available(tableId);
    const build = { table, indexId, job, isClosing: () => !this.#isOpen };
    const upTo = (): number => this.appliedSeq;
    const bounds = { upTo, expiredSeq: table.expiredSeq(this.#seqs) };
    return checkIndex({ ...build, ...bounds }, this.#indexTools);
  }

  async erase(tableId: number, owner: number, job?: Job): Promise<number> {
    const table = this.#available(tableId);
    // Work begun before the owner was dropped must not add rows afterwards.
    this.#committer.retireOwner(owner);
    // A partition of the owner may exist without rows if its only row was refused.
    const hasRows = (): boolean =>
      table.memtables().some(({ partitions }) => (partitions.get(owner)?.count ?? 0) > 0);
    while (hasRows()) {
      await this.#flusher.flush(table, job);
      // A closing store does not start another flush.
      if (!this.#isOpen || job?.isCancelled === true || table.isDropped) return 0;
    }
    return this.#merger.erase(table, owner, job);
  }

  requireFreeSpace(): void {
    this.#space.admit({ usesReserve: false });
  }

  /**
   * Called when the disk has refused a write to a file that does not belong to the store. Returns
   * whether the call freed reserved space.
   */
  noteFullDisk(): boolean {
    return this.#space.noteFull();
  }

  /** Whether only deletes and drops are accepted, because the disk is full. */
  get isReadOnly(): boolean {
    return this.#space.isFull;
  }

  condition(): StoreCondition {
    return {
      freeBytes: this.#space.freeBytes,
      isReadOnly: this.isReadOnly,
      logBytes: this.#commitLog.files.reduce((bytes, file) => bytes + file.bytes, 0),
      quarantinedSegments: this.segments().filter(({ status }) => status === "quarantined").length,
    };
  }

  memory(): StoreMemory {
    return storeMemory(this.#tables.values(), this.#segmentWork);
  }

  /** Checks whether the disk is full. A background task calls this method every few seconds. */
  lookAtSpace(): void {
    this.#space.look();
  }

  /**
   * Reads the clock and warns if it was set back. A background task calls this method regularly.
   */
  lookAtClock(): void {
    this.#seqs.nowMs();
  }

  /**
   * Starts discarding history older than its table's retention period. A background task calls
   * this every hour.
   */
  discardHistory(): void {
    this.#merger.discardHistory();
  }

  /**
   * Starts checking whether history takes up too much space. If it does, the excess is discarded.
   * A background task calls this from time to time.
   */
  boundHistory(): void {
    this.#merger.boundHistory();
  }

  /**
   * Starts checking the segments that are due for a scrub. A background task calls this every
   * hour.
   */
  scrub(): void {
    this.#scrubber.begin();
  }

  /** Frees the disk space of expired rows. A background task calls this every few seconds. */
  dropExpired(): void {
    this.#merger.dropExpired();
  }

  stats(tableId: number): TableStats {
    const table = this.#table(tableId);
    const after = table.expiredSeq(this.#seqs);
    return tableStats(table, { upTo: this.visibleSeq, after });
  }

  flushedStats(tableId: number, owner: number | undefined): FlushedStats {
    return flushedStats(this.#table(tableId), owner);
  }

  segments(): readonly ListedSegment[] {
    return [...this.#tables.values()].flatMap(listedSegments);
  }

  /**
   * Called when damage was found while a segment was being copied. A read of the live segment
   * would find the same damage.
   */
  noteDamage({ segmentId, tableId }: SegmentEntry, damage: CorruptionError): void {
    const segments = this.#tables.get(tableId)?.allSegments ?? [];
    const segment = segments.find(({ entry }) => entry.segmentId === segmentId);
    if (segment === undefined) return;
    segment.noteIfDamaged(damage);
    if (damage.path !== this.#files.deletionVectorPath(segment.entry)) return;
    // A deletion vector in memory is intact even if its file is damaged. If the vector is not in
    // memory, reading its file here finds the damage.
    if (unlessDamaged(() => segment.deletions)) segment.noteVectorDamaged();
  }

  /**
   * Returns all files and values that belong to a copy of the store in its current state. The
   * files are kept until the snapshot is released. A copy of the catalog made in the same tick
   * belongs to the snapshot.
   */
  snapshot(): StoreSnapshot {
    const releases = [this.#files.hold(), this.#flusher.holdLog()];
    const { reservedUpTo: reservedIds } = this.#ids;
    return snapshotOf(this.#manifest, { commitLog: this.#commitLog, releases, reservedIds });
  }

  /** The log files in ascending order of number. The last file is still being written. */
  logFiles(): readonly ListedLogFile[] {
    return this.#commitLog.files;
  }

  /**
   * Releases log files that are no longer needed. Called when code outside the store no longer
   * needs them.
   */
  releaseLog(): void {
    this.#flusher.releaseLog();
  }

  commitMs(seq: number): number {
    return this.#seqs.msOf(seq);
  }

  lastSeqUpTo(unixMs: number): number {
    return this.#seqs.lastSeqUpTo(unixMs);
  }

  agedSeq(ageMs: number): number {
    return this.#seqs.agedSeq(ageMs);
  }

  issueSeq(): Seq {
    return this.#seqs.next();
  }

  snowflakeId(): number {
    // Reading the clock detects whether it was set back since the last commit.
    this.#seqs.nowMs();
    return this.#ids.next();
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#ballast.close();
    await Promise.all([this.#flusher.close(), this.#merger.close(), this.#scrubber.close()]);
    this.#segmentWork.close();
    await this.#commitLog.close();
    await this.#files.settled();
    this.#ids.close();
    for (const { allSegments } of this.#tables.values()) {
      for (const segment of allSegments) segment.close();
    }
    this.#own?.[Symbol.dispose]();
  }

  #noteRolled(): void {
    this.#space.tryToLook();
    this.#flusher.noteRolled();
    this.#onLogRolled();
  }

  /** Marks the log frames that follow as written under the newest definition. */
  #noteDefinition(): void {
    this.#committer.catalogSeq = Math.max(this.#committer.catalogSeq, this.#manifest.highestSeq());
  }

  /** Raises the lower bounds of a read, which hides expired rows. */
  #unexpired<Options extends { readonly after?: Seq; readonly prevsAfter?: Seq }>(
    table: StoredTable,
    options: Options,
  ): Options {
    const expiredSeq = table.expiredSeq(this.#seqs);
    if (expiredSeq === 0) return options;
    const { after = SEQ_ZERO, prevsAfter = Infinity } = options;
    const least = { after: Math.max(after, expiredSeq) };
    // A key may be inserted again after its old row has expired. The new row then replaces
    // nothing.
    return { ...options, ...least, prevsAfter: Math.max(prevsAfter, expiredSeq) };
  }

  /** Returns a table whose storage is available. @throws {DatabaseError} STORAGE_UNAVAILABLE */
  #available(tableId: number): StoredTable {
    return this.#table(tableId).requireAvailable();
  }

  #table(tableId: number): StoredTable {
    const table = this.#tables.get(tableId);
    if (table === undefined) {
      throw new DatabaseError(
        "TABLE_NOT_FOUND",
        `Cannot open table ${tableId}: there is no such table`,
      );
    }
    return table;
  }
}

function storeMemory(
  tables: Iterable<StoredTable>,
  segmentWork: Pick<SegmentWork, "heapBytes">,
): StoreMemory {
  let memtableBytes = 0;
  let replacementBytes = 0;
  for (const table of tables) {
    for (const memtable of table.memtables()) memtableBytes += memtable.bytes;
    for (const segment of table.segments) replacementBytes += segment.replacementBytes;
  }
  return {
    memtableBytes,
    replacementBytes,
    cacheBytes: sharedCache.byteCount,
    threadHeapBytes: segmentWork.heapBytes,
  };
}

/** How many times a store has released memory, by the way in which it did so. */
interface GivenBackCounts {
  /** How many times the store has dropped decompressed parts of segments from its cache. */
  caches: number;
  /** The number of flushes started early in order to release memory. */
  flushes: number;
}

/** Releases memory and updates the counts. */
function giveBackMemory(flusher: Pick<Flusher, "giveBackMemory">, counts: GivenBackCounts): void {
  if (sharedCache.byteCount > 0) counts.caches += 1;
  sharedCache.clear();
  counts.flushes += flusher.giveBackMemory();
}
