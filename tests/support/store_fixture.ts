/**
 * Opens local stores on simulated disks, and predicts the results of their reads by searching a
 * plain list of row versions.
 */

import type { Disk } from "../../src/base/disk.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { SeqTimes } from "../../src/base/seq_times.ts";
import {
  type Commit,
  type JobList,
  type ListedStorage,
  LocalStore,
  type LocalStoreOptions,
  type MergeBounds,
  type ScanShare,
  SEQ_COLUMN_ID,
  type SegmentWork,
  Storages,
  type Store,
  type StoredColumn,
  type TableDefinition,
  type TableWrite,
  type WriteBatch,
} from "../../src/storage/mod.ts";
import {
  type DataType,
  type Row,
  type Value,
  valuesOf,
  vectorFromValues,
} from "../../src/types/mod.ts";
import { ManualClock } from "./manual_clock.ts";
import { MemoryManifest } from "./memory_manifest.ts";
import { SeededRandom } from "./seeded_random.ts";
import { type Fault, SimulatedDisk } from "./simulated_disk.ts";

export const DATA_PATH = "/data";

const STORE_OPTIONS: LocalStoreOptions = {
  nodeId: 0,
  nodeBits: 0,
  durability: "sync",
  walSegmentBytes: 65536,
  walMaxBytes: 1 << 20,
  rowBytesMax: 8192,
  minFreeBytes: 0,
  ballastBytes: 0,
};

/**
 * Merge limits so low that a few rows are enough to trigger every kind of merge, including the
 * largest.
 */
export const SMALL_MERGES: MergeBounds = {
  fanIn: 4,
  runMax: 8,
  rowsMax: 400,
  bytesMax: 1 << 30,
  smallRowsMax: 12,
  smallBytesMax: 4096,
};

/** Defines a table that is flushed only on request. */
export function defineTable(
  tableId: number,
  types: readonly DataType[],
  keyColumnIds: readonly number[] = [1],
): TableDefinition {
  const columns = types.map(
    (type, index): StoredColumn => ({
      columnId: index + 1,
      name: `c${index + 1}`,
      type,
      missing: null,
    }),
  );
  const flush = { rowsMax: 1e9, ageMsMax: 1e12 };
  const name = `app.t${tableId}`;
  return { tableId, name, columns, keyColumnIds, flush, historyMs: 1e12 };
}

/** Converts a write to columnar form. */
export function byColumns(write: TableWrite, { columns }: TableDefinition): TableWrite {
  const vectors = columns.map(({ type }, at) =>
    vectorFromValues(
      type,
      write.rows.map((row) => row[at] ?? null),
    ),
  );
  return { ...write, rows: [], batch: { rowCount: write.rows.length, columns: vectors } };
}

export interface FixtureParts {
  disk?: Disk;
  manifest?: MemoryManifest;
  clock?: ManualClock;
  log?: Log;
  definitions: readonly TableDefinition[];
  options?: Partial<LocalStoreOptions>;
  segmentWork?: SegmentWork;
  seqTimes?: SeqTimes;
  jobs?: JobList;
  onFatal?: (cause: unknown) => void;
  dataPath?: string;
  /** Storages that {@linkcode makeStorage} has created. */
  storages?: readonly ListedStorage[];
}

/** The folder for storages in tests, which is a separate file system. */
export const STORAGES_PATH = "/storages";

export function diskWithStorages(): SimulatedDisk {
  const disk = new SimulatedDisk(undefined, [STORAGES_PATH]);
  for (const path of [DATA_PATH, STORAGES_PATH]) disk.makeDirectory(path);
  disk.syncDirectory("/");
  return disk;
}

/** Creates a storage on a disk, as startup does for a restored storage. */
export function makeStorage(disk: Disk, storageId: string): ListedStorage {
  const root = `${STORAGES_PATH}/${storageId}`;
  disk.makeDirectory(root);
  const listed = storagesOn(disk).adopt({ storageId, root });
  if (listed === undefined) throw new Error(`${root} can be a storage`);
  return listed;
}

/** Returns a table definition whose new segments go to the given storage. */
export function inStorage(
  table: TableDefinition,
  { root, storageId }: Pick<ListedStorage, "root" | "storageId">,
): TableDefinition {
  return { ...table, home: { storageId, root, directory: `app/t/${table.tableId}` } };
}

function storagesOn(disk: Disk, log: Log = silentLog): Storages {
  const random = new SeededRandom(1);
  return new Storages({ disk, log, random, allowedRoots: [STORAGES_PATH], dataPath: DATA_PATH });
}

function openedStorages({ disk, log, storages }: FixtureParts): Storages | undefined {
  if (disk === undefined || storages === undefined) return undefined;
  const opened = storagesOn(disk, log);
  opened.open(storages);
  return opened;
}

/**
 * Opens a store, creating the parts that the caller does not pass. Closing the store also closes
 * its storages.
 */
export async function openStore(parts: FixtureParts): Promise<LocalStore> {
  using opened = new DisposableStack();
  const storages = openedStorages(parts);
  opened.defer(() => storages?.close());
  const store = await LocalStore.open({
    disk: parts.disk ?? new SimulatedDisk(),
    dataPath: parts.dataPath ?? DATA_PATH,
    clock: parts.clock ?? new ManualClock(),
    random: new SeededRandom(1),
    log: parts.log ?? silentLog,
    manifest: parts.manifest ?? new MemoryManifest(),
    definitions: parts.definitions,
    options: { ...STORE_OPTIONS, ...parts.options },
    segmentWork: parts.segmentWork,
    seqTimes: parts.seqTimes,
    jobs: parts.jobs,
    onFatal: parts.onFatal,
    storages,
  });
  if (storages === undefined) return store;
  const closing = opened.move();
  const close = store.close.bind(store);
  return Object.assign(store, {
    close: async (): Promise<void> => {
      await close();
      closing.dispose();
    },
  });
}

/** Applies a batch that consists of a single write, and waits until it is durable. */
// oxlint-disable-next-line max-params -- a test reads best with one short line for each commit
export async function commit(
  store: Store,
  tableId: number,
  operation: "insert" | "update" | "delete",
  rows: readonly Row[],
  owner = 0,
): Promise<Commit> {
  const done = store.apply({ writes: [{ tableId, owner, operation, rows }] });
  await store.durable(done.lastSeq);
  return done;
}

export interface ReadOptions {
  owner?: number;
  upTo?: number;
  after?: number;
  seqMax?: number;
  withTombstones?: boolean;
  batchRows?: number;
  share?: ScanShare;
  prevsAfter?: number;
}

/** Returns all rows of a scan, each preceded by its seq. */
export function readRows(
  store: Pick<Store, "scan" | "visibleSeq">,
  { tableId, columns }: TableDefinition,
  options: ReadOptions = {},
): Value[][] {
  const { owner = 0, upTo = store.visibleSeq, seqMax = upTo, after = 0, ...rest } = options;
  const scan = store.scan(tableId, {
    owner,
    upTo: upTo as Seq,
    seqMax: seqMax as Seq,
    after: after as Seq,
    columnIds: [SEQ_COLUMN_ID, ...columns.map(({ columnId }) => columnId)],
    ...rest,
  });
  const rows: Value[][] = [];
  for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
    const vectors = batch.columns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) {
      rows.push(vectors.map((values) => values[row] ?? null));
    }
  }
  scan.close();
  return rows;
}

/** A change in the form returned by `readChanges` and by the model. */
export interface PlainChange {
  seq: number;
  commitSeq: number;
  prev: number;
  isDeleted: boolean;
  row: Row;
  old: Row | undefined;
}

export function readChanges(
  store: Store,
  { tableId, columns }: TableDefinition,
  options: ReadOptions = {},
): PlainChange[] {
  const { owner = 0, upTo = store.visibleSeq, after = 0, batchRows = 3 } = options;
  const { prevsAfter = Infinity } = options;
  const columnIds = columns.map(({ columnId }) => columnId);
  const seqs = { upTo: upTo as Seq, after: after as Seq, prevsAfter: prevsAfter as Seq };
  const bounds = { owner, ...seqs };
  const scan = store.changes(tableId, { ...bounds, columnIds, batchRows });
  const changes: PlainChange[] = [];
  for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
    const now = batch.columns.map((column) => valuesOf(column));
    const old = batch.oldColumns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) {
      changes.push({
        seq: batch.seqs[row] ?? 0,
        commitSeq: batch.commitSeqs[row] ?? 0,
        prev: batch.prevs[row] ?? 0,
        isDeleted: batch.deleted[row] === 1,
        row: now.map((values) => values[row] ?? null),
        old: batch.hasOld[row] === 1 ? old.map((values) => values[row] ?? null) : undefined,
      });
    }
  }
  scan.close();
  return changes;
}

interface ModelVersion {
  readonly tableId: number;
  readonly owner: number;
  readonly key: string;
  readonly seq: number;
  readonly commitSeq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
  readonly row: Row;
}

/** Keeps every row version that was ever applied, in order, as the model of a store. */
export class StoreModel {
  #versions: ModelVersion[] = [];
  readonly #definitions: ReadonlyMap<number, TableDefinition>;

  constructor(definitions: readonly TableDefinition[]) {
    this.#definitions = new Map(definitions.map((table) => [table.tableId, table]));
  }

  /** Records the contents of a batch. The commit supplies the seqs of its rows. */
  note({ writes }: WriteBatch, { lastSeq, seqs }: Commit): void {
    let index = 0;
    for (const { tableId, owner, operation, rows } of writes) {
      for (const row of rows) {
        const seq = seqs?.[index] ?? 0;
        index += 1;
        const key = this.keyOf(tableId, row, seq);
        const prev = this.newest(tableId, owner, key)?.seq ?? 0;
        const isDeleted = operation === "delete";
        this.#versions.push({ tableId, owner, key, seq, commitSeq: lastSeq, prev, isDeleted, row });
      }
    }
  }

  /** Forgets every commit above `seq`. */
  cutAbove(seq: number): void {
    this.#versions = this.#versions.filter(({ commitSeq }) => commitSeq <= seq);
  }

  keyOf(tableId: number, row: Row, seq: number): string {
    const { keyColumnIds = [], columns = [] } = this.#definitions.get(tableId) ?? {};
    if (keyColumnIds.length === 0) return `seq ${seq}`;
    const values = keyColumnIds.map(
      (id) => row[columns.findIndex(({ columnId }) => columnId === id)] ?? null,
    );
    return values.map(String).join("|");
  }

  newest(tableId: number, owner: number, key: string): ModelVersion | undefined {
    return this.#versions.findLast(
      (version) => version.tableId === tableId && version.owner === owner && version.key === key,
    );
  }

  /** Returns the rows that are currently live. */
  live(tableId: number, owner: number): Row[] {
    return this.#current(tableId, owner, Infinity)
      .filter(({ isDeleted }) => !isDeleted)
      .map(({ row }) => row);
  }

  rows(tableId: number, options: ReadOptions): Value[][] {
    const { owner = 0, upTo = Infinity, after = 0, withTombstones = false } = options;
    return this.#current(tableId, owner, upTo)
      .filter(({ seq, isDeleted }) => seq > after && (withTombstones || !isDeleted))
      .map(({ seq, row }) => [seq as Value].concat(row));
  }

  changes(tableId: number, options: ReadOptions): PlainChange[] {
    const { owner = 0, upTo = Infinity, after = 0 } = options;
    return this.#of(tableId, owner)
      .filter(({ seq }) => seq > after && seq <= upTo)
      .map(({ seq, commitSeq, prev, isDeleted, row }) => {
        const replaced = this.#versions.find((version) => version.seq === prev);
        const old = replaced === undefined || replaced.isDeleted ? undefined : replaced.row;
        return { seq, commitSeq, prev, isDeleted, row, old };
      });
  }

  /** Returns the last seq of each commit. */
  commitSeqs(): number[] {
    return [...new Set(this.#versions.map(({ commitSeq }) => commitSeq))];
  }

  #of(tableId: number, owner: number): ModelVersion[] {
    return this.#versions.filter((each) => each.tableId === tableId && each.owner === owner);
  }

  /** Returns the newest version of each key at a seq, in seq order. */
  #current(tableId: number, owner: number, upTo: number): ModelVersion[] {
    const newest = new Map<string, ModelVersion>();
    for (const version of this.#of(tableId, owner)) {
      if (version.seq <= upTo) newest.set(version.key, version);
    }
    return [...newest.values()].toSorted((left, right) => left.seq - right.seq);
  }
}

/**
 * Makes only the next write to the log fail. The wipe that follows succeeds, because it overwrites
 * existing bytes.
 * @returns A function that tells whether the write has failed.
 */
export function failNextLogWrite(disk: SimulatedDisk, fault: Fault): () => boolean {
  let hasFailed = false;
  disk.faultPlan = (operation, path) => {
    if (hasFailed || operation !== "write" || !path.endsWith(".wal")) return undefined;
    hasFailed = true;
    return fault;
  };
  return () => hasFailed;
}

/** Returns the error code with which a promise is rejected; undefined if it is fulfilled. */
export async function conditionOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
  } catch (error) {
    return error instanceof DatabaseError ? error.code : String(error);
  }
  return undefined;
}
