/**
 * Enforces `limits.storage_bytes_per_user`. The quota counts each owner's live rows in USER and
 * STREAM tables and the owner's listed files, in bytes, and refuses a commit that would exceed the
 * limit. If no limit is configured, no object of this class exists, and nothing is counted.
 *
 * - An owner's usage is read from the tables once, in short ticks, before the owner's first write
 *   after startup. From then on, each commit adjusts the usage by the amount that it adds or
 *   removes.
 * - Each check happens in the same tick of the event loop as its commit, so two commits of one
 *   owner can never use the same free space.
 * - Rows of STREAM tables expire, and files are swept, without a commit of their owner. If this
 *   may have freed space, a refused commit marks the usage as doubtful, the usage is read again,
 *   and the statement runs once more. The same happens if tables were altered or dropped, or if
 *   the disk lost a commit.
 * - A commit that adds nothing is never refused, so an owner above the limit can read and delete.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError, isDamage } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import { type Commit, SHARED_OWNER, type Store } from "../../storage/mod.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { StorageGrowth, StorageMeter } from "../execute/context/storage_meter.ts";
import { bytesOfRows } from "../execute/materialised/row_bytes.ts";

/** The number of owners whose usage is kept in memory. Each takes up about 100 bytes. */
const OWNERS_MAX = 65_536;

/**
 * How long a usage counts as current, in milliseconds. After that, the actual usage may be
 * smaller.
 */
const FRESH_MS = 1000;

/**
 * The interval, in milliseconds, at which a waiting statement checks whether it has been ended.
 */
const LOOK_MS = 20;

interface Usage {
  bytes: number;
  /**
   * Whether the usage includes files or rows of STREAM tables, and may therefore shrink without a
   * commit.
   */
  mayShrink: boolean;
  /** Whether the usage has to be read again before the next check. */
  isDoubted: boolean;
  /**
   * The version of each table that contains rows of the owner. Another version of a table may have
   * different columns.
   */
  readonly tables: Map<number, number>;
  /** The version of the catalog that the table versions were read from. */
  catalogVersion: number;
  readonly readAtMs: number;
}

/** Changes that were committed while the usage was being read. */
interface Meanwhile {
  bytes: number;
  readonly tables: Map<number, number>;
  mayShrink: boolean;
  /**
   * Whether files were added or removed. The file list is not read in a single tick, so it is
   * unknown whether the usage already includes this change.
   */
  hasFiles: boolean;
}

export interface StorageQuotaOptions {
  readonly bytesMax: number;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly store: Store;
}

export class StorageQuota implements StorageMeter {
  readonly bytesMax: number;
  readonly #deps: StorageQuotaOptions;
  /** The usage of each owner, ordered by last write, oldest first. */
  readonly #usages = new Map<number, Usage>();
  /** The measurements in progress, keyed by owner. Writers wait for them. */
  readonly #running = new Map<number, Promise<void>>();
  readonly #meanwhile = new Map<number, Set<Meanwhile>>();

  private constructor(options: StorageQuotaOptions) {
    this.bytesMax = options.bytesMax;
    this.#deps = options;
  }

  /** Returns a quota, or undefined if no limit is configured. */
  static of(options: StorageQuotaOptions): StorageQuota | undefined {
    return options.bytesMax === 0 ? undefined : new StorageQuota(options);
  }

  /**
   * Whether the owner's writes can be checked now.
   * @param owner Undefined for a user without an owner number, who has no rows.
   */
  isReady(owner: number | undefined): boolean {
    if (owner === undefined) return true;
    const usage = this.#usages.get(owner);
    return usage !== undefined && this.#isSound(usage);
  }

  /**
   * Waits until the usage of an owner is known.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED
   */
  async ready(owner: number | undefined, ledger: RequestLedger): Promise<void> {
    if (owner === undefined) return;
    const { clock } = this.#deps;
    while (!this.isReady(owner)) {
      const looked = Promise.withResolvers<void>();
      const cancel = clock.after(LOOK_MS, looked.resolve);
      await Promise.race([looked.promise, this.#reading(owner)]).finally(cancel);
      checkDeadline(ledger, clock);
    }
  }

  /**
   * Waits until a commit with rows of several owners can be checked. Doubtful usages are read
   * again.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED
   */
  async prepare(growths: readonly StorageGrowth[], ledger: RequestLedger): Promise<void> {
    for (const { bytes, owner } of growths) {
      if (owner === SHARED_OWNER || bytes <= 0) continue;
      await this.ready(owner, ledger);
      const usage = this.#usages.get(owner);
      if (usage === undefined || usage.bytes + bytes <= this.bytesMax) continue;
      usage.isDoubted = this.#mayHaveShrunk(usage);
      await this.ready(owner, ledger);
    }
  }

  requireBelow(bytes: number): void {
    if (bytes <= this.bytesMax) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot write the rows: they take at least ${bytes} bytes, but the maximum for all rows ` +
        `and files of a user is ${this.bytesMax} bytes`,
      { hint: HINT },
    );
  }

  charge(growths: readonly StorageGrowth[], commit: () => Commit): Commit {
    for (const growth of growths) this.#requireQuota(growth);
    const made = commit();
    for (const growth of growths) this.#add(growth);
    const doubt = (): void => {
      for (const { owner } of growths) this.#usages.delete(owner);
    };
    // The writer receives the error. Here, the error only makes the usage doubtful, so that the
    // usage is read again.
    this.#deps.store.durable(made.lastSeq).then(undefined, doubt);
    return made;
  }

  /**
   * Returns the number of bytes that an owner uses. If that is unknown, the generator reads it in
   * short steps.
   */
  *used(owner: number): Generator<void, number> {
    const known = this.#usages.get(owner);
    if (known !== undefined && this.#isSound(known) && !this.#mayHaveShrunk(known)) {
      return known.bytes;
    }
    const usage = yield* this.#read(owner);
    // Reading the usage of all owners for a view must not evict the owners that are currently
    // writing.
    if (this.#usages.has(owner)) this.#usages.set(owner, usage);
    return usage.bytes;
  }

  /**
   * Refuses a commit that would exceed the quota.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  #requireQuota({ bytes, owner }: StorageGrowth): void {
    if (owner === SHARED_OWNER || bytes <= 0) return;
    const known = this.#usages.get(owner);
    const usage = known !== undefined && this.#isSound(known) ? known : this.#readNow(owner);
    if (usage.bytes + bytes <= this.bytesMax) return;
    if (this.#mayHaveShrunk(usage)) usage.isDoubted = true;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot write: the user's rows and files take ${usage.bytes} bytes, the statement would ` +
        `add ${bytes} bytes, and the limit is ${this.bytesMax} bytes`,
      { hint: HINT },
    );
  }

  #add(growth: StorageGrowth): void {
    const { hasFiles, owner } = growth;
    for (const meanwhile of this.#meanwhile.get(owner) ?? []) {
      addTo(meanwhile, growth);
      meanwhile.hasFiles ||= hasFiles;
    }
    const usage = this.#usages.get(owner);
    if (usage === undefined) return;
    addTo(usage, growth);
    this.#keep(owner, usage);
  }

  #keep(owner: number, usage: Usage): void {
    this.#usages.delete(owner);
    this.#usages.set(owner, usage);
    if (this.#usages.size <= OWNERS_MAX) return;
    for (const oldest of this.#usages.keys()) {
      this.#usages.delete(oldest);
      return;
    }
  }

  /**
   * Whether the usage still agrees with the catalog: no table that contains rows of the owner has
   * been altered or dropped since the usage was read.
   */
  #isSound(usage: Usage): boolean {
    const { catalog } = this.#deps;
    if (usage.isDoubted || usage.catalogVersion === catalog.version) return !usage.isDoubted;
    for (const [tableId, version] of usage.tables) {
      if (catalog.tableById(tableId)?.schemaVersion === version) continue;
      usage.isDoubted = true;
      return false;
    }
    usage.catalogVersion = catalog.version;
    return true;
  }

  #mayHaveShrunk({ mayShrink, readAtMs }: Usage): boolean {
    return mayShrink && this.#deps.clock.monotonicMs() - readAtMs >= FRESH_MS;
  }

  #reading(owner: number): Promise<void> {
    let reading = this.#running.get(owner);
    if (reading === undefined) {
      reading = this.#readInTicks(owner).finally(() => this.#running.delete(owner));
      this.#running.set(owner, reading);
    }
    return reading;
  }

  async #readInTicks(owner: number): Promise<void> {
    const pause = pauser(this.#deps.clock);
    const steps = this.#read(owner);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return this.#keep(owner, step.value);
      await pause();
    }
  }

  /**
   * Reads the usage without pausing. This is acceptable for an owner's first rows, and after
   * changes that occurred while a statement was being prepared.
   */
  #readNow(owner: number): Usage {
    const steps = this.#read(owner);
    for (;;) {
      const step = steps.next();
      if (step.done !== true) continue;
      this.#keep(owner, step.value);
      return step.value;
    }
  }

  *#read(owner: number): Generator<void, Usage> {
    const { catalog, clock } = this.#deps;
    for (;;) {
      const tables = new Map<number, number>();
      const meanwhile: Meanwhile = { bytes: 0, tables, mayShrink: false, hasFiles: false };
      const others = this.#meanwhile.get(owner) ?? new Set();
      this.#meanwhile.set(owner, others.add(meanwhile));
      const catalogVersion = catalog.version;
      try {
        const rows = yield* this.#readRows(owner, tables);
        const fileBytes = yield* this.#readFiles(owner);
        if (meanwhile.hasFiles) continue;
        return {
          bytes: rows.bytes + fileBytes + meanwhile.bytes,
          mayShrink: rows.mayShrink || fileBytes > 0 || meanwhile.mayShrink,
          isDoubted: false,
          tables,
          catalogVersion,
          readAtMs: clock.monotonicMs(),
        };
      } finally {
        others.delete(meanwhile);
        if (others.size === 0) this.#meanwhile.delete(owner);
      }
    }
  }

  /**
   * Reads the total size of an owner's rows.
   *
   * @param tables Receives the tables in which the owner has rows.
   */
  *#readRows(
    owner: number,
    tables: Map<number, number>,
  ): Generator<void, Pick<Usage, "bytes" | "mayShrink">> {
    const { catalog, store } = this.#deps;
    const upTo = store.appliedSeq;
    let bytes = 0;
    let mayShrink = false;
    for (const { kind, tableId } of catalog.tables()) {
      if (kind === "shared") continue;
      // The table may have been altered or dropped since the previous step.
      const table = catalog.tableById(tableId);
      if (table === undefined) continue;
      const ofTable = yield* this.#readTable(table, owner, upTo);
      if (ofTable === 0) continue;
      bytes += ofTable;
      tables.set(tableId, table.schemaVersion);
      if (kind === "stream") mayShrink = true;
    }
    return { bytes, mayShrink };
  }

  *#readTable(table: TableEntry, owner: number, upTo: Seq): Generator<void, number> {
    const columnIds = table.columns.map(({ columnId }) => columnId);
    let bytes = 0;
    try {
      const scan = this.#deps.store.scan(table.tableId, {
        owner,
        upTo,
        columnIds,
        reusesMemory: true,
        mayBeEmpty: true,
      });
      try {
        for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
          if (batch.rowCount > 0) bytes += bytesOfRows(batch);
          yield;
        }
      } finally {
        scan.close();
      }
    } catch (error) {
      // Unreadable rows are not counted, so that they do not prevent writes to other tables.
      if (!isUnreadable(error)) throw error;
    }
    yield;
    return bytes;
  }

  *#readFiles(owner: number): Generator<void, number> {
    const { catalog } = this.#deps;
    let bytes = 0;
    for (const portion of catalog.files.portions({ owner })) {
      for (const { size, tableId } of portion) {
        if (catalog.tableById(tableId) !== undefined) bytes += size;
      }
      yield;
    }
    return bytes;
  }
}

const HINT =
  "delete rows or files, or ask an administrator to raise limits.storage_bytes_per_user; a " +
  "deleted row's file counts until the row's history has expired (storage.history_hours) and " +
  "the hourly cleanup has removed the file";

function addTo(usage: Meanwhile | Usage, { bytes, hasFiles, tables }: StorageGrowth): void {
  usage.bytes += bytes;
  usage.mayShrink ||= hasFiles || tables.some(({ kind }) => kind === "stream");
  for (const { schemaVersion, tableId } of tables) usage.tables.set(tableId, schemaVersion);
}

function isUnreadable(error: unknown): boolean {
  if (isDamage(error)) return true;
  return error instanceof DatabaseError && error.code === "STORAGE_UNAVAILABLE";
}
