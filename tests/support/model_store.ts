/**
 * A store that implements its definition literally: all versions are in one array, and every read
 * is a filter over it. Tests run the live engine on this store, and the simulation derives the
 * expected rows and changes from it.
 *
 * `apply` applies a commit and `sync` makes it visible, so a test decides what happens in between.
 * Only `discard` removes history.
 */
import { assert } from "../../src/base/assert.ts";
import type { Clock } from "../../src/base/clock.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import { SEQ_ZERO, type Seq, SeqGenerator } from "../../src/base/seq.ts";
import { SeqTimes } from "../../src/base/seq_times.ts";
import {
  type ChangeBatch,
  type ChangedPartition,
  type ChangeScan,
  type ChangesOptions,
  type Commit,
  type CompactResult,
  DELETED_COLUMN_ID,
  type FlushedStats,
  type FlushResult,
  type ListedSegment,
  type LookupOptions,
  type OnVisible,
  type PublishedDefinitions,
  type Scan,
  type ScanBatch,
  type ScanOptions,
  SEQ_COLUMN_ID,
  type SeqGap,
  type StagedCommit,
  type Store,
  type TableDefinition,
  type TableStats,
  type TableWrite,
  type WriteBatch,
} from "../../src/storage/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  type Row,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../src/types/mod.ts";

export interface ModelVersion {
  readonly tableId: number;
  readonly owner: number;
  readonly seq: Seq;
  readonly commitSeq: Seq;
  readonly prev: number;
  readonly isDeleted: boolean;
  readonly row: Row;
  /**
   * The seq of the version that replaced this version; Infinity while this version is the newest.
   */
  replacedBy: number;
}

const BATCH_ROWS = 7;

export class ModelStore implements Store {
  onVisible: OnVisible = () => {};
  readonly versions: ModelVersion[] = [];
  readonly #definitions = new Map<number, TableDefinition>();
  readonly #newest = new Map<string, ModelVersion>();
  readonly #bySeq = new Map<number, ModelVersion>();
  readonly #earliest = new Map<string, Seq>();
  readonly #seqs: SeqGenerator;
  readonly #batchRows: number;
  #visibleSeq: Seq = SEQ_ZERO;
  #changed = new Map<string, ChangedPartition>();
  /** The number of calls to `changes`, for tests that check how often the store is read. */
  changesCount = 0;
  /**
   * The total number of versions that calls to `scan` had to examine, which are all versions
   * within the bounds of each call.
   */
  scannedCount = 0;
  /** The gaps of seqs that were lost in restores and crashes. */
  lostSeqs: readonly SeqGap[] = [];
  openScanCount = 0;

  /**
   * Creates an empty store. Batches are small by default, so that readers reach the end of a
   * batch.
   */
  constructor(clock: Clock, { batchRows = BATCH_ROWS }: { batchRows?: number } = {}) {
    this.#seqs = new SeqGenerator({
      clock,
      nodeId: 0,
      nodeBits: 0,
      last: SEQ_ZERO,
      times: new SeqTimes({ eras: [], save: () => undefined }),
    });
    this.#batchRows = batchRows;
  }

  get visibleSeq(): Seq {
    return this.#visibleSeq;
  }

  get appliedSeq(): Seq {
    return this.#seqs.last;
  }

  /** Does nothing, because the model always has free space. */
  requireFreeSpace(): void {}

  defineTable(definition: TableDefinition): void {
    const before = this.#definitions.get(definition.tableId);
    this.#definitions.set(definition.tableId, definition);
    if (before === undefined) return;
    for (const [index, version] of this.versions.entries()) {
      if (version.tableId !== definition.tableId) continue;
      const row = definition.columns.map(({ columnId, missing }) => {
        const at = before.columns.findIndex((column) => column.columnId === columnId);
        return at < 0 ? missing : (version.row[at] ?? null);
      });
      const moved = { ...version, row };
      this.versions[index] = moved;
      this.#bySeq.set(moved.seq, moved);
      const key = this.#key(moved.tableId, moved.owner, row);
      if (this.#newest.get(key) === version) this.#newest.set(key, moved);
    }
  }

  dropTable(tableId: number): void {
    this.#definitions.delete(tableId);
  }

  async exclusively<T>(work: () => T): Promise<T> {
    return work();
  }

  applyWith(batch: WriteBatch, definitions: PublishedDefinitions): Commit {
    const commit = this.apply(batch);
    definitions.publish(commit.lastSeq);
    return commit;
  }

  apply({ writes }: WriteBatch): Commit {
    const count = writes.reduce((sum, { rows }) => sum + rows.length, 0);
    assert(count > 0, "a commit must write a row");
    const seqs = Array.from({ length: count }, () => this.#seqs.next());
    const firstSeq = seqs[0] ?? SEQ_ZERO;
    const commitSeq = seqs.at(-1) ?? SEQ_ZERO;
    let next = 0;
    for (const { tableId, owner, operation, rows } of writes) {
      const expiredSeq = this.#expiredSeq(tableId);
      for (const row of rows) {
        const key = this.#key(tableId, owner, row);
        const newest = this.#newest.get(key);
        const before = newest !== undefined && newest.seq > expiredSeq ? newest : undefined;
        const isLive = before !== undefined && !before.isDeleted;
        if (isLive === (operation === "insert")) {
          throw new DatabaseError("DUPLICATE_KEY", `Cannot ${operation} ${key}`);
        }
        const seq = seqs[next++] ?? SEQ_ZERO;
        if (before !== undefined) before.replacedBy = seq;
        const version: ModelVersion = {
          tableId,
          owner,
          seq,
          commitSeq,
          prev: before?.seq ?? 0,
          isDeleted: operation === "delete",
          row,
          replacedBy: Infinity,
        };
        this.versions.push(version);
        this.#newest.set(key, version);
        this.#bySeq.set(seq, version);
        this.#changed.set(`${tableId}/${owner}`, { tableId, owner });
      }
    }
    return { firstSeq, lastSeq: commitSeq };
  }

  stage(options: Pick<WriteBatch, "snapshotSeq" | "wantsSeqs">): StagedCommit {
    const writes: TableWrite[] = [];
    const count = (): number => writes.reduce((sum, { rows }) => sum + rows.length, 0);
    return {
      get rowCount() {
        return count();
      },
      add: (write) => void writes.push(write),
      settle: () => true,
      commit: () => this.apply({ writes, ...options }),
    };
  }

  /** Makes everything that has been applied visible, and wakes the listeners. */
  sync(): void {
    const changed = [...this.#changed.values()];
    this.#changed = new Map();
    this.#visibleSeq = this.#seqs.last;
    this.onVisible(changed, this.#visibleSeq);
  }

  /** Applies the writes and makes them visible. */
  write(...writes: WriteBatch["writes"]): Commit {
    const commit = this.apply({ writes });
    this.sync();
    return commit;
  }

  durable(): Promise<void> {
    this.sync();
    return Promise.resolve();
  }

  /** Removes versions that were replaced at or below `upTo`, and tombstones at or below it. */
  discard(tableId: number, owner: number, upTo: Seq): void {
    let earliest = this.earliestSeq(tableId, owner);
    for (let index = this.versions.length - 1; index >= 0; index -= 1) {
      const version = this.versions[index];
      if (version?.tableId !== tableId || version.owner !== owner) continue;
      const goneAt = version.isDeleted ? version.seq : version.replacedBy;
      if (goneAt > upTo) continue;
      this.versions.splice(index, 1);
      this.#bySeq.delete(version.seq);
      const key = this.#key(tableId, owner, version.row);
      if (this.#newest.get(key) === version) this.#newest.delete(key);
      earliest = Math.max(earliest, goneAt) as Seq;
    }
    this.#earliest.set(`${tableId}/${owner}`, earliest);
  }

  scanOrdered(): undefined {
    return undefined;
  }

  scanChosen(): undefined {
    return undefined;
  }

  scanIndex(): undefined {
    return undefined;
  }

  lookupIndex(): undefined {
    return undefined;
  }

  scan(tableId: number, options: ScanOptions): Scan {
    const { owner, upTo, columnIds, seqMax = upTo, withTombstones = false } = options;
    const after = Math.max(options.after ?? 0, this.#expiredSeq(tableId));
    const within = this.versions.filter(
      (version) =>
        version.tableId === tableId &&
        version.owner === owner &&
        version.seq > after &&
        version.seq <= Math.min(seqMax, upTo),
    );
    this.scannedCount += within.length;
    const found = within.filter(
      ({ isDeleted, replacedBy }) => replacedBy > upTo && (withTombstones || !isDeleted),
    );
    const size = Math.min(options.batchRows ?? this.#batchRows, this.#batchRows);
    const isCurrent = new Set(found);
    const mayBeEmpty = options.mayBeEmpty === true;
    const passed = mayBeEmpty ? within : found;
    let start = 0;
    this.openScanCount += 1;
    return {
      groupsRead: 0,
      groupsPruned: 0,
      next: (): ScanBatch | undefined => {
        if (start >= passed.length) return undefined;
        const part = passed.slice(start, start + size).filter((version) => isCurrent.has(version));
        start += size;
        const columns = columnIds.map((columnId) => this.#column(tableId, columnId, part));
        return { rowCount: part.length, columns };
      },
      close: () => {
        this.openScanCount -= 1;
      },
    };
  }

  changes(tableId: number, options: ChangesOptions): ChangeScan {
    const { owner, upTo } = options;
    const after = Math.max(options.after, this.#expiredSeq(tableId));
    if (upTo > this.#visibleSeq) throw new Error("Cannot read above the visible seq");
    const found = this.versions.filter(
      (version) =>
        version.tableId === tableId &&
        version.owner === owner &&
        version.seq > after &&
        version.seq <= upTo,
    );
    const size = Math.min(options.batchRows ?? this.#batchRows, this.#batchRows);
    let start = 0;
    this.changesCount += 1;
    this.openScanCount += 1;
    return {
      next: (): ChangeBatch | undefined => {
        const part = found.slice(start, start + size);
        start += part.length;
        return part.length === 0 ? undefined : this.#changeBatch(tableId, options, part);
      },
      close: () => {
        this.openScanCount -= 1;
      },
    };
  }

  lookup(tableId: number, { owner, key, upTo, columnIds }: LookupOptions): Row | undefined {
    const { keyColumnIds } = this.#definition(tableId);
    const version = this.versions.find(
      (candidate) =>
        candidate.tableId === tableId &&
        candidate.owner === owner &&
        candidate.seq <= upTo &&
        candidate.seq > this.#expiredSeq(tableId) &&
        candidate.replacedBy > upTo &&
        keyColumnIds.every((id, index) => this.#value(candidate, id) === key[index]),
    );
    if (version === undefined || version.isDeleted) return undefined;
    return columnIds.map((columnId) => this.#value(version, columnId));
  }

  wasLost(seq: number): boolean {
    return this.lostSeqs.some(({ after, upTo }) => seq > after && seq < upTo);
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

  expiredSeq(tableId: number): number {
    return this.#expiredSeq(tableId);
  }

  earliestSeq(tableId: number, owner: number): Seq {
    return this.#earliest.get(`${tableId}/${owner}`) ?? SEQ_ZERO;
  }

  wholeCommitsUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    const own = this.versions.filter((each) => each.tableId === tableId && each.owner === owner);
    const cut = own.find(({ commitSeq, seq }) => seq <= upTo && commitSeq > upTo);
    return cut === undefined ? upTo : ((cut.seq - 1) as Seq);
  }

  lastCommitUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    const own = this.versions.filter((each) => each.tableId === tableId && each.owner === owner);
    const seqs = own.flatMap(({ commitSeq, seq }) => (seq <= upTo ? [commitSeq] : []));
    return Math.min(upTo, Math.max(0, ...seqs)) as Seq;
  }

  owners(tableId: number): readonly number[] {
    const owners = this.versions.flatMap((v) => (v.tableId === tableId ? [v.owner] : []));
    return [...new Set(owners)].toSorted((left, right) => left - right);
  }

  distinctValues(): undefined {
    return undefined;
  }

  liveRowCount(tableId: number, owner: number | undefined): number {
    return this.versions.filter(
      (version) =>
        version.tableId === tableId &&
        (owner === undefined || version.owner === owner) &&
        version.seq <= this.#visibleSeq &&
        version.replacedBy > this.#visibleSeq &&
        version.seq > this.#expiredSeq(tableId) &&
        !version.isDeleted,
    ).length;
  }

  buildIndex(): Promise<boolean> {
    throw new Error("A model has no indexes");
  }

  checkIndex(): Promise<boolean> {
    throw new Error("A model has no indexes");
  }

  compact(): Promise<CompactResult> {
    return Promise.resolve({ mergedSegments: 0, discardedVersions: 0 });
  }

  erase(): Promise<number> {
    return Promise.reject(new Error("the model keeps every owner"));
  }

  flush(): Promise<FlushResult> {
    return Promise.resolve({ versions: 0 });
  }

  stats(tableId: number): TableStats {
    const seqs = this.versions.filter((version) => version.tableId === tableId).map((v) => v.seq);
    return {
      liveRows: this.liveRowCount(tableId, undefined),
      unflushedVersions: seqs.length,
      segments: 0,
      bytes: 0,
      memoryBytes: 0,
      minSeq: seqs[0] ?? 0,
      maxSeq: seqs.at(-1) ?? 0,
      lastFlushedAtMs: undefined,
    };
  }

  flushedStats(): FlushedStats {
    // The model flushes nothing, and no test needs a flush.
    return {
      segments: 0,
      versions: 0,
      minSeq: 0,
      maxSeq: 0,
      unflushedVersions: 0,
      lastFlushedAtMs: undefined,
      isDamaged: false,
      isCountable: true,
    };
  }

  segments(): readonly ListedSegment[] {
    return [];
  }

  issueSeq(): Seq {
    return this.#seqs.next();
  }

  snowflakeId(): number {
    return this.#seqs.next();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #changeBatch(
    tableId: number,
    { columnIds, prevsAfter }: ChangesOptions,
    part: readonly ModelVersion[],
  ): ChangeBatch {
    const old = part.map((version) => this.#bySeq.get(version.prev));
    // The model treats each tombstone as if it had moved to history before its key was written
    // again.
    const isBuried = (prev: number): boolean =>
      prev <= (prevsAfter ?? Infinity) && this.#bySeq.get(prev)?.isDeleted === true;
    return {
      rowCount: part.length,
      seqs: Float64Array.from(part, (version) => version.seq),
      commitSeqs: Float64Array.from(part, (version) => version.commitSeq),
      prevs: Float64Array.from(part, ({ prev }) => (isBuried(prev) ? 0 : prev)),
      deleted: Uint8Array.from(part, (version) => (version.isDeleted ? 1 : 0)),
      hasOld: Uint8Array.from(old, (version) => (version?.isDeleted === false ? 1 : 0)),
      columns: columnIds.map((columnId) => this.#column(tableId, columnId, part)),
      oldColumns: columnIds.map((columnId) =>
        this.#column(
          tableId,
          columnId,
          old.map((version) => (version?.isDeleted === false ? version : undefined)),
        ),
      ),
    };
  }

  #column(tableId: number, columnId: number, of: readonly (ModelVersion | undefined)[]): Vector {
    const values = of.map((version) =>
      version === undefined ? null : this.#value(version, columnId),
    );
    if (columnId === SEQ_COLUMN_ID) return vectorFromValues(BIGINT, values);
    if (columnId === DELETED_COLUMN_ID) return vectorFromValues(BOOLEAN, values);
    const column = this.#definition(tableId).columns.find((c) => c.columnId === columnId);
    assert(column !== undefined, "a scan must name columns of the table");
    return vectorFromValues(column.type, values);
  }

  #value(version: ModelVersion, columnId: number): Value {
    if (columnId === SEQ_COLUMN_ID) return version.seq;
    if (columnId === DELETED_COLUMN_ID) return version.isDeleted;
    const { columns } = this.#definition(version.tableId);
    const index = columns.findIndex((column) => column.columnId === columnId);
    assert(index >= 0, "a scan must name columns of the table");
    return version.row[index] ?? null;
  }

  #definition(tableId: number): TableDefinition {
    const definition = this.#definitions.get(tableId);
    assert(definition !== undefined, "a table must be defined before it is used");
    return definition;
  }

  /** Returns the seq at or below which versions have outlived their TTL. */
  #expiredSeq(tableId: number): number {
    const { ttlMs } = this.#definition(tableId);
    return ttlMs === undefined ? 0 : this.#seqs.agedSeq(ttlMs);
  }

  #key(tableId: number, owner: number, row: Row): string {
    const { columns, keyColumnIds } = this.#definition(tableId);
    const key = keyColumnIds.map((id) => row[columns.findIndex((c) => c.columnId === id)]);
    return JSON.stringify([tableId, owner, ...key]);
  }
}
