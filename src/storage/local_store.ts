/**
 * The store over a local disk: wires log, memtables, segments and manifest together.
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
import { Merger } from "./background/merge.ts";
import { MERGE_BOUNDS } from "./background/merge_choice.ts";
import { Scrubber } from "./background/scrub.ts";
import { InThreadWork, type SegmentWork } from "./background/segment_work.ts";
import { Committer, type CommitterEvents } from "./commit/commit.ts";
import type { CommitLog, ListedLogFile } from "./contract/commit_log.ts";
import { type Job, JobList } from "./contract/job_list.ts";
import type { Manifest, SegmentEntry } from "./contract/manifest.ts";
import type {
  ChangeScan,
  ChangesOptions,
  Commit,
  CompactResult,
  FlushedStats,
  FlushResult,
  ListedSegment,
  LookupOptions,
  OnVisible,
  OrderedScan,
  OrderedScanOptions,
  Scan,
  ScanOptions,
  SeqGap,
  StagedCommit,
  StageOptions,
  Store,
  StoreCondition,
  TableDefinition,
  TableStats,
  WriteBatch,
} from "./contract/store.ts";
import { type StoreSnapshot, snapshotOf } from "./contract/store_snapshot.ts";
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
import { StoreChangeScan } from "./read/change_scan.ts";
import { StoreOrderedScan } from "./read/ordered_scan.ts";
import { StoreScan } from "./read/scan.ts";
import { recover } from "./recovery.ts";
import { LocalSharing } from "./replica/local_sharing.ts";
import { boundSharedCache } from "./segment/chunk_cache.ts";
import { SnowflakeIds } from "./snowflake_ids.ts";
import type { Storages } from "./storages.ts";
import { LowWater } from "./table/history.ts";
import { LocalSegmentFiles } from "./table/segment_files.ts";
import { StoredTable, unlessDamaged } from "./table/table.ts";
import {
  countLiveRows,
  flushedStats,
  listedSegments,
  ownersOf,
  spanOfColumn,
  tableStats,
} from "./table/table_stats.ts";

export class LocalStore implements Store {
  /** What restores and crashes took away. */
  lostSeqs: readonly SeqGap[] = [];
  readonly storages: Storages;
  /** Shares tables with readers in other threads. */
  readonly sharing: LocalSharing;
  readonly #manifest: Manifest;
  readonly #files: LocalSegmentFiles;
  readonly #tables: Map<number, StoredTable>;
  readonly #seqs: SeqGenerator;
  readonly #commitLog: CommitLog;
  readonly #committer: Committer;
  readonly #ids: SnowflakeIds;
  readonly #flusher: Flusher;
  readonly #merger: Merger;
  readonly #scrubber: Scrubber;
  readonly #ballast: Ballast;
  readonly #space: SpaceGuard;
  readonly #segmentWork: SegmentWork;
  readonly #onLogRolled: () => void;
  /** What is to be released at the end, as the store itself opened it. */
  #own: Disposable | undefined;
  #isOpen = true;

  /**
   * Opens a data directory, or makes one, and reads what the last process left.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is in use or of a newer version, or if its
   * catalog is older than its log; INVALID_OPTION if a log file cannot hold the largest row.
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
    // Before the log makes its first file, and with it every name in the directory durable.
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
    const files = this.#files;
    this.sharing = new LocalSharing({ files, seqs: this.#seqs, times, tables });
    const ballast = new Ballast({ disk, clock, log, path: paths.ballast, bytes: ballastBytes });
    this.#ballast = ballast;
    this.#space = new SpaceGuard({ disk, path: paths.root, minFreeBytes, ballast, clock, log });
    const lastId = Math.max(lastSeq, ids.value) as Seq;
    this.#ids = new SnowflakeIds({ ...node, file: ids.file, last: lastId, times });
    const commits = { commitLog, tables, seqs: this.#seqs, space: this.#space, visibleSeq };
    const catalogSeq = manifest.highestSeq();
    const onFatal = parts.onFatal ?? (() => {});
    this.#committer = new Committer({ ...commits, catalogSeq }, this.#events(onFatal));
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

  /** What the store does beside a commit. */
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
      this.#flusher.noteAppended(table);
      return;
    }
    const progress = { flushedSeq: 0, lowWater: new LowWater(), lastFlushedAtMs: undefined };
    const created = new StoredTable(definition, { segments: [], progress });
    created.noteFaults(this.storages);
    this.#tables.set(definition.tableId, created);
  }

  dropTable(tableId: number): void {
    const table = this.#table(tableId);
    this.#noteDefinition();
    this.#tables.delete(tableId);
    table.isDropped = true;
    for (const segment of table.segments) segment.drop();
    this.#flusher.forget(table);
  }

  apply(batch: WriteBatch): Commit {
    assert(this.#isOpen, "a closed store takes no commits");
    return this.#committer.apply(batch);
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
    if (!table.isOrderWanted(options.columnId)) return undefined;
    return StoreOrderedScan.open(table, this.#unexpired(table, options));
  }

  changes(tableId: number, options: ChangesOptions): ChangeScan {
    assert(options.upTo <= this.visibleSeq, "changes are visible");
    const table = this.#available(tableId);
    return new StoreChangeScan(table, this.#unexpired(table, options));
  }

  lookup(tableId: number, options: LookupOptions): Row | undefined {
    const table = this.#available(tableId);
    return table.lookup(options, table.expiredSeq(this.#seqs));
  }

  expiredSeq(tableId: number): number {
    return this.#table(tableId).expiredSeq(this.#seqs);
  }

  earliestSeq(tableId: number, owner: number): Seq {
    return this.#table(tableId).progress.lowWater.of(owner) as Seq;
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

  valueSpan(tableId: number, columnId: number): number | undefined {
    return spanOfColumn(this.#available(tableId), columnId);
  }

  flush(tableId: number, job?: Job): Promise<FlushResult> {
    return this.#flusher.flush(this.#available(tableId), job);
  }

  compact(tableId: number, job?: Job): Promise<CompactResult> {
    return this.#merger.compact(this.#available(tableId), job);
  }

  async erase(tableId: number, owner: number, job?: Job): Promise<number> {
    const table = this.#available(tableId);
    // What was begun before the owner was dropped must not bring rows back.
    this.#committer.retireOwner(owner);
    // A row that was refused leaves a partition without rows.
    const hasRows = (): boolean =>
      table.memtables().some(({ partitions }) => (partitions.get(owner)?.count ?? 0) > 0);
    while (hasRows()) {
      await this.#flusher.flush(table, job);
      // A store that closes flushes nothing any more.
      if (!this.#isOpen || job?.isCancelled === true || table.isDropped) return 0;
    }
    return this.#merger.erase(table, owner, job);
  }

  requireRoom(): void {
    this.#space.admit({ usesReserve: false });
  }

  /**
   * The disk refused what others keep beside the store. Returns whether there is more room now, of
   * what is kept for that.
   */
  noteFullDisk(): boolean {
    return this.#space.noteFull();
  }

  /** Whether only deletes and drops are let in, until there is room. */
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

  /** Looks whether the disk is full, or no longer; for somebody who asks every few seconds. */
  lookAtSpace(): void {
    this.#space.look();
  }

  /** Reads the clock and warns if it was set back. A background task calls this regularly. */
  lookAtClock(): void {
    this.#seqs.nowMs();
  }

  /**
   * Begins to discard what is older than the history of its table; for somebody who asks hourly.
   */
  discardHistory(): void {
    this.#merger.discardHistory();
  }

  /**
   * Begins to look for history that takes too much room, and to discard it; for somebody who asks
   * now and then.
   */
  boundHistory(): void {
    this.#merger.boundHistory();
  }

  /** Begins to read segments for damage that have their turn; for somebody who asks hourly. */
  scrub(): void {
    this.#scrubber.begin();
  }

  /** Gives back the disk of rows whose time is over; for somebody who asks every few seconds. */
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

  /** Who copied a segment met damage: if it is live, that is as if a read had met it. */
  noteDamage({ segmentId, tableId }: SegmentEntry, damage: CorruptionError): void {
    const segments = this.#tables.get(tableId)?.segments ?? [];
    const segment = segments.find(({ entry }) => entry.segmentId === segmentId);
    if (segment === undefined) return;
    segment.noteIfDamaged(damage);
    if (damage.path !== this.#files.deletionVectorPath(segment.entry)) return;
    // One that is in memory is whole, whatever became of its file; reading it meets the damage.
    if (unlessDamaged(() => segment.deletions)) segment.noteVectorDamaged();
  }

  /**
   * Everything that a copy of the store as it is in this turn needs; its files stay until it is
   * released. A copy of the catalog that is made in the same turn belongs to it.
   */
  snapshot(): StoreSnapshot {
    const releases = [this.#files.hold(), this.#flusher.holdLog()];
    const { reservedUpTo: reservedIds } = this.#ids;
    return snapshotOf(this.#manifest, { commitLog: this.#commitLog, releases, reservedIds });
  }

  /** Files of the log, ascending by number; the last one is written on. */
  logFiles(): readonly ListedLogFile[] {
    return this.#commitLog.files;
  }

  /** Whoever needed files of the log needs fewer of them. */
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
    // Notices a clock that was set back since the last commit.
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
    for (const { segments } of this.#tables.values()) {
      for (const segment of segments) segment.close();
    }
    this.#own?.[Symbol.dispose]();
  }

  #noteRolled(): void {
    this.#space.tryToLook();
    this.#flusher.noteRolled();
    this.#onLogRolled();
  }

  /** Frames from now on say that they were written with the newest definitions. */
  #noteDefinition(): void {
    this.#committer.catalogSeq = Math.max(this.#committer.catalogSeq, this.#manifest.highestSeq());
  }

  /** Nobody sees what has expired. */
  #unexpired<Options extends { readonly after?: Seq }>(
    table: StoredTable,
    options: Options,
  ): Options {
    const expiredSeq = table.expiredSeq(this.#seqs);
    if (expiredSeq === 0) return options;
    return { ...options, after: Math.max(options.after ?? SEQ_ZERO, expiredSeq) };
  }

  /** @throws {DatabaseError} STORAGE_UNAVAILABLE */
  #available(tableId: number): StoredTable {
    return this.#table(tableId).requireAvailable();
  }

  #table(tableId: number): StoredTable {
    const table = this.#tables.get(tableId);
    if (table === undefined) {
      throw new DatabaseError("TABLE_NOT_FOUND", `Cannot open table ${tableId}: there is none`);
    }
    return table;
  }
}
