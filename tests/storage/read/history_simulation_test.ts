/**
 * Verifies that every read at every bound gives the same result as a plain list of versions
 * although merges move replaced versions to history, and that the first of two conflicting
 * transactions still wins. The test makes random changes to three tables (with a key, columns that
 * are altered and history that is discarded; without a key; with rows that expire), and flushes,
 * merges and restarts at random points. The tables are read by the store and by readers that work
 * as on another thread, both alone and in pairs that divide a scan. Each injected fault must be
 * found. To reproduce a failure: SEED=<n> bun test <this file>
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import {
  type Commit,
  type LocalStore,
  ReplicaStore,
  SEQ_COLUMN_ID,
  type Store,
  type StoredColumn,
  type TableDefinition,
  type TableWrite,
} from "../../../src/storage/mod.ts";
import { type Row, type Value, valuesOf } from "../../../src/types/mod.ts";
import { HISTORY_FAULTS } from "../../support/history_faults.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  byColumns,
  defineTable,
  openStore,
  type PlainChange,
  readChanges,
  readRows,
  SMALL_MERGES,
} from "../../support/store_fixture.ts";
import { amountOf } from "../../support/thoroughness.ts";
import { type KnownVersion, VersionModel } from "../../support/version_model.ts";

const HOUR_MS = 3_600_000;
const STEPS = 150;

const KEYED: TableDefinition = {
  ...defineTable(1, [{ kind: "int" }, { kind: "text" }, { kind: "int" }]),
  historyMs: 2 * HOUR_MS,
  compression: "zstd",
};
const KEYLESS = defineTable(2, [{ kind: "double" }, { kind: "text" }], []);
const EXPIRING: TableDefinition = {
  ...defineTable(3, [{ kind: "text" }, { kind: "bigint" }], [1]),
  ttlMs: 3 * HOUR_MS,
};

const ADDED: StoredColumn = { columnId: 4, name: "c4", type: { kind: "text" }, missing: "added" };

/** The successive definitions of the table that has a key. */
const ALTERED: readonly TableDefinition[] = [
  KEYED,
  { ...KEYED, columns: [...KEYED.columns, ADDED] },
  {
    ...KEYED,
    columns: [
      ...KEYED.columns.map(
        (column): StoredColumn =>
          column.columnId === 3 ? { ...column, type: { kind: "bigint" } } : column,
      ),
      ADDED,
    ],
  },
  {
    ...KEYED,
    columns: [
      ...KEYED.columns.filter(({ columnId }) => columnId !== 2),
      { ...ADDED, columnId: 5, name: "c5", missing: null },
    ],
  },
];

const OWNERS = [1, 2, 3];

/** Lets background work run for a while. */
async function others(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

class HistorySimulation {
  readonly #random: SeededRandom;
  readonly #disk = new SimulatedDisk();
  readonly #clock = new ManualClock();
  readonly #models = [KEYED, KEYLESS, EXPIRING].map((each) => new VersionModel(each));
  readonly #keyCount: number;
  #manifest = new MemoryManifest();
  #alteration = 0;
  /** How many scans and replays involved history. */
  historyCount = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#keyCount = this.#random.pick([9, 48]);
  }

  async run(): Promise<void> {
    let store = await this.#open();
    for (let step = 0; step < STEPS; step += 1) {
      this.#noteExpiry(store);
      const choice = this.#random.below(100);
      if (choice < 45) await this.#write(store);
      else if (choice < 52) await this.#writeSlowly(store);
      else if (choice < 66) await store.flush(this.#random.pick(this.#models).definition.tableId);
      else if (choice < 68) await store.compact(this.#random.pick(this.#models).definition.tableId);
      else if (choice < 75) this.#clock.advance(this.#random.below(HOUR_MS));
      else if (choice < 78) this.#alter(store);
      else if (choice < 80) await this.#tidy(store);
      else if (choice < 83) store = await this.#reopen(store);
      else await this.#check(store);
    }
    await this.#check(store);
    await store.close();
  }

  #open(): Promise<LocalStore> {
    return openStore({
      disk: this.#disk,
      manifest: this.#manifest,
      clock: this.#clock,
      definitions: this.#models.map(({ definition }) => definition),
      options: { mergeBounds: SMALL_MERGES },
    });
  }

  async #reopen(store: LocalStore): Promise<LocalStore> {
    await store.durable(store.appliedSeq);
    await store.close();
    this.#manifest = this.#manifest.restart();
    return this.#open();
  }

  /** Now and then changes the definition of the table that has a key. */
  #alter(store: LocalStore): void {
    const definition = ALTERED[this.#alteration + 1];
    const [model] = this.#models;
    if (definition === undefined || model === undefined) return;
    this.#alteration += 1;
    model.definition = definition;
    store.defineTable(definition);
  }

  async #tidy(store: LocalStore): Promise<void> {
    store.discardHistory();
    store.dropExpired();
    await others(this.#random.below(40));
  }

  #noteExpiry(store: LocalStore): void {
    for (const model of this.#models) model.expiredSeq = store.expiredSeq(model.definition.tableId);
  }

  /** Runs a single statement, or a transaction with an older snapshot. */
  async #write(store: LocalStore): Promise<void> {
    const model = this.#random.pick(this.#models);
    const isTransaction = model.definition.keyColumnIds.length > 0 && this.#random.chance(0.4);
    const snapshotSeq = isTransaction ? this.#someSeq(store, model) : store.appliedSeq;
    const write = this.#writeAt(model, snapshotSeq);
    if (write === undefined) return;
    const options = isTransaction ? { snapshotSeq, wantsSeqs: true } : { wantsSeqs: true };
    const isStaged = this.#random.chance(0.4);
    const isByColumns = !isTransaction && write.operation === "insert" && this.#random.chance(0.5);
    const given = isByColumns ? byColumns(write, model.definition) : write;
    const commit = this.#committed(model, { write, snapshotSeq }, () => {
      if (!isStaged) return store.apply({ writes: [given], ...options });
      const staged = store.stage(options);
      staged.add(given);
      while (!staged.settle());
      return staged.commit();
    });
    if (commit !== undefined && this.#random.chance(0.8)) await store.durable(commit.lastSeq);
  }

  /** Prepares a commit while other writers commit, and the store flushes and merges. */
  async #writeSlowly(store: LocalStore): Promise<void> {
    const model = this.#random.pick(this.#models);
    const { tableId } = model.definition;
    const startSeq = store.appliedSeq;
    const write = this.#writeAt(model, startSeq);
    if (write === undefined) return;
    const staged = store.stage({ wantsSeqs: true });
    staged.add(this.#asRead(model, write, startSeq));
    for (let count = this.#random.below(4); count > 0; count -= 1) {
      await this.#write(store);
      await store.flush(tableId);
      if (this.#random.chance(0.5)) await store.compact(tableId);
    }
    // A row that has expired in the meantime may be gone.
    this.#noteExpiry(store);
    this.#committed(model, { write, snapshotSeq: startSeq }, () => {
      while (!staged.settle());
      return staged.commit();
    });
  }

  /**
   * Returns the write in columnar form, with the seqs of the replaced versions, as a long
   * statement would make it.
   */
  #asRead(model: VersionModel, write: TableWrite, upTo: Seq): TableWrite {
    if (write.operation === "insert" || this.#random.chance(0.4)) return write;
    const replacedSeqs = write.rows.map((row, at) => {
      const key = model.keyOf(row, Number(write.replacedSeqs?.[at]));
      const version = model.live({ owner: write.owner, upTo }).find((each) => each.key === key);
      return version?.seq ?? 0;
    });
    return { ...byColumns(write, model.definition), replacedSeqs };
  }

  /** Commits a write. It must fail if, and only if, a key was written above the snapshot. */
  #committed(
    model: VersionModel,
    { snapshotSeq, write }: { write: TableWrite; snapshotSeq: Seq },
    make: () => Commit,
  ): Commit | undefined {
    const { operation, owner, replacedSeqs, rows } = write;
    const newestSeq = Math.max(
      ...rows.map((row, at) => {
        const key = model.keyOf(row, Number(replacedSeqs?.[at]));
        return model.newest(owner, key)?.seq ?? 0;
      }),
    );
    // If the row has expired since, its version may or may not still be in history.
    const mayFail = newestSeq > snapshotSeq;
    const mustFail = mayFail && newestSeq > model.expiredSeq;
    let commit: Commit;
    try {
      commit = make();
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      const codes = ["SERIALIZATION_FAILURE", "DUPLICATE_KEY"];
      expect(codes.slice(0, operation === "insert" ? 2 : 1)).toContain(error.code);
      expect(mayFail).toBe(true);
      return undefined;
    }
    expect(mustFail).toBe(false);
    model.note(write, commit, 0);
    return commit;
  }

  /** Returns a write to some keys, as a caller with a snapshot at `upTo` would make it. */
  #writeAt(model: VersionModel, upTo: Seq): TableWrite | undefined {
    const random = this.#random;
    const { columns, keyColumnIds, tableId } = model.definition;
    const owner = random.pick(OWNERS);
    const live = random.shuffle(model.live({ owner, upTo }));
    const isKeyless = keyColumnIds.length === 0;
    const operation = random.pick(
      isKeyless ? (["insert", "delete"] as const) : (["insert", "update", "delete"] as const),
    );
    const count = random.between(1, this.#keyCount / 3);
    if (operation !== "insert") {
      const chosen = live.slice(0, count);
      if (chosen.length === 0) return undefined;
      const rows = chosen.map((version) => {
        const row = model.rowOf(version);
        return row.map((value, at) =>
          operation === "delete" || keyColumnIds.includes(columns[at]?.columnId ?? 0)
            ? value
            : this.#value(columns[at]),
        );
      });
      const replacedSeqs = isKeyless ? chosen.map(({ seq }) => seq) : undefined;
      return { tableId, owner, operation, rows, ...(replacedSeqs && { replacedSeqs }) };
    }
    const taken = new Set(live.map(({ key }) => key));
    const rows: Row[] = [];
    for (let left = count; left > 0; left -= 1) {
      const row = columns.map((column) => this.#value(column));
      const key = model.keyOf(row, random.u32());
      if (!taken.has(key)) rows.push(row);
      taken.add(key);
    }
    return rows.length === 0 ? undefined : { tableId, owner, operation, rows };
  }

  /** Only a few different values are used, so that they recur. */
  #value(column: StoredColumn | undefined): Value {
    const random = this.#random;
    if (column?.columnId === 1 && column.type.kind === "text")
      return `key ${random.below(this.#keyCount)}`;
    switch (column?.type.kind) {
      case "int":
        return random.below(this.#keyCount);
      case "bigint":
        return random.chance(0.1) ? null : random.below(1e9);
      case "double":
        return random.unit();
      default:
        return random.chance(0.2) ? null : "text ".repeat(random.below(4)) + String(random.u32());
    }
  }

  /** Returns a random visible seq at which the table can be read. */
  #someSeq(store: LocalStore, model: VersionModel): Seq {
    const { visibleSeq } = store;
    const earliest = Math.max(
      ...OWNERS.map((owner) => store.earliestSeq(model.definition.tableId, owner)),
    );
    const seqs = model.versions
      .map(({ commitSeq }) => commitSeq)
      .filter((seq) => seq >= earliest && seq <= visibleSeq);
    return seqs.length === 0 || this.#random.chance(0.2)
      ? visibleSeq
      : (this.#random.pick(seqs) as Seq);
  }

  async #check(store: LocalStore): Promise<void> {
    await store.durable(store.appliedSeq);
    this.#noteExpiry(store);
    for (const model of this.#models) {
      const upTo = this.#someSeq(store, model);
      for (const owner of OWNERS) {
        const earliest = store.earliestSeq(model.definition.tableId, owner);
        this.#checkRows(store, model, { owner, upTo, earliest });
        this.#checkLookups(store, model, { owner, upTo });
        this.#checkNewest(store, model, { owner, upTo });
        this.#checkChanges(store, model, owner);
        const live = model.live({ owner, upTo: store.visibleSeq });
        expect(store.liveRowCount(model.definition.tableId, owner)).toBe(live.length);
      }
      this.#checkReaders(store, model, upTo);
    }
    const known = store.segments().filter(({ kind }) => kind === "history");
    this.historyCount += known.length;
  }

  #checkRows(
    store: Pick<Store, "scan" | "visibleSeq">,
    model: VersionModel,
    { earliest, owner, upTo }: { owner: number; upTo: Seq; earliest: number },
  ): void {
    const random = this.#random;
    const after = random.chance(0.3) ? this.#seqBelow(upTo) : 0;
    const seqMax = random.chance(0.3) ? this.#seqBelow(upTo) : upTo;
    const withTombstones = random.chance(0.3);
    const batchRows = random.pick([1, 3, 64]);
    const options = { owner, upTo, after, seqMax, withTombstones, batchRows };
    const found = readRows(store, model.definition, options);
    const versions = model.current({ owner, upTo, after });
    const expected = versions
      .filter(({ isDeleted, seq }) => (withTombstones || !isDeleted) && seq <= seqMax)
      .filter(({ isDeleted, seq }) => !isDeleted || seq > earliest)
      .map((version) => this.#shown(model, version));
    // A tombstone that may be discarded from history may be present or not.
    const isKept = ([seq]: readonly Value[]): boolean =>
      Number(seq) > earliest || expected.some(([other]) => other === seq);
    expect(found.filter(isKept)).toEqual(expected);
  }

  #checkLookups(
    store: Pick<Store, "lookup">,
    model: VersionModel,
    { owner, upTo }: { owner: number; upTo: Seq },
  ): void {
    const { columns, keyColumnIds, tableId } = model.definition;
    if (keyColumnIds.length === 0) return;
    const columnIds = columns.map(({ columnId }) => columnId);
    const live = model.live({ owner, upTo });
    for (let left = 3; left > 0; left -= 1) {
      const row = columns.map((column) => this.#value(column));
      const wanted = model.keyOf(row, 0);
      const version = live.find(({ key }) => key === wanted);
      const expected = version === undefined ? undefined : model.rowOf(version);
      const key = [row[0] ?? null];
      expect(store.lookup(tableId, { owner, key, upTo, columnIds })).toEqual(expected);
    }
  }

  /**
   * Checks a scan of the rows, newest first. The store may refuse the scan if some of the rows are
   * in history.
   */
  #checkNewest(
    store: Pick<Store, "scanOrdered" | "visibleSeq">,
    model: VersionModel,
    { owner, upTo }: { owner: number; upTo: Seq },
  ): void {
    const { tableId } = model.definition;
    const order = { columnId: SEQ_COLUMN_ID, isDescending: true, columnIds: [SEQ_COLUMN_ID] };
    const scan = store.scanOrdered(tableId, { owner, upTo, ...order });
    if (scan === undefined) return;
    const found: unknown[] = [];
    for (let batch = scan.next(5); batch !== undefined; batch = scan.next(5)) {
      found.push(...batch.columns.flatMap((column) => valuesOf(column)));
    }
    scan.close();
    const seqs = model.live({ owner, upTo }).map(({ seq }) => seq);
    expect(found).toEqual(seqs.toReversed());
  }

  #checkChanges(store: LocalStore, model: VersionModel, owner: number): void {
    const { tableId } = model.definition;
    const earliest = store.earliestSeq(tableId, owner);
    const upTo = store.visibleSeq;
    const seqs = model.versions.map(({ seq }) => seq).filter((seq) => seq <= upTo);
    const after = Math.max(earliest, seqs.length === 0 ? 0 : this.#random.pick(seqs) - 1);
    const prevsAfter = this.#random.pick([earliest, after, Infinity]);
    const batchRows = this.#random.pick([1, 3, 64]);
    const bounds = { owner, upTo, after };
    const found = readChanges(store, model.definition, { ...bounds, batchRows, prevsAfter });
    // Expired versions may be absent, and so may tombstones that the reader did not ask for.
    const isKnown = ({ old, prev }: PlainChange): boolean =>
      prev > model.expiredSeq && (old !== undefined || prev > prevsAfter);
    const plain = (change: PlainChange, expected: PlainChange | undefined): PlainChange =>
      expected !== undefined && isKnown(expected) ? change : { ...change, prev: 0, old: undefined };
    const expected = model.changes(bounds);
    expect(found.map((change, at) => plain(change, expected[at]))).toEqual(
      expected.map((change) => plain(change, change)),
    );
  }

  /**
   * Reads as reader threads do: once with a single reader, and once with two readers that divide a
   * scan.
   */
  #checkReaders(store: LocalStore, model: VersionModel, upTo: Seq): void {
    const { tableId } = model.definition;
    const opened = (): { replica: ReplicaStore; release: () => void } => {
      const replica = new ReplicaStore(this.#disk, { cacheBytes: 1 << 20, nextId: () => 0 });
      const bounds = { upTo, pastSeqs: [], withTombstones: true };
      const shares = store.sharing.share(store.sharing.newSharing(), [tableId], bounds);
      replica.open(shares.tables, { eras: store.sharing.seqEras, upTo });
      return { replica, release: () => shares.release() };
    };
    const { release, replica } = opened();
    const owner = this.#random.pick(OWNERS);
    const earliest = store.earliestSeq(tableId, owner);
    this.#checkRows(replica, model, { owner, upTo, earliest });
    this.#checkLookups(replica, model, { owner, upTo });
    this.#checkNewest(replica, model, { owner, upTo });
    release();
    replica.close();
    const parts = [0, 1].map((number): Value[][] => {
      const part = opened();
      let group = 0;
      const claimsNext = (): boolean => group++ % 2 === number;
      const options = { owner, upTo, share: { claimsNext } };
      const rows = readRows(part.replica, model.definition, options);
      part.release();
      part.replica.close();
      return rows;
    });
    const live = model.live({ owner, upTo });
    const bySeq = (left: Value[], right: Value[]): number => Number(left[0]) - Number(right[0]);
    expect(parts.flat().toSorted(bySeq)).toEqual(
      live.map((version) => this.#shown(model, version)),
    );
  }

  /** Returns a version in the form that `readRows` returns. */
  #shown(model: VersionModel, version: KnownVersion): Value[] {
    return [version.seq as Value].concat(model.rowOf(version));
  }

  #seqBelow(upTo: Seq): number {
    const seqs = this.#models.flatMap(({ versions }) => versions.map(({ seq }) => seq));
    const below = seqs.filter((seq) => seq <= upTo);
    return below.length === 0 ? 0 : this.#random.pick(below) - this.#random.below(2);
  }
}

async function simulate(seed: number): Promise<number> {
  const simulation = new HistorySimulation(seed);
  try {
    await simulation.run();
    return simulation.historyCount;
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
}

const firstSeed = seedOf(1);
const seedCount = process.env["SEED"] === undefined ? amountOf({ usual: 1, thorough: 25 }) : 1;

test("all reads agree with a list of versions while merges move rows to history", async () => {
  let historyCount = 0;
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    historyCount += await simulate(seed);
  }
  expect(historyCount).toBeGreaterThan(0);
});

for (const { fault, name, of, injected } of HISTORY_FAULTS) {
  test(`the simulation finds ${fault}`, async () => {
    const known = Object.getOwnPropertyDescriptor(of, name);
    let failure: unknown;
    Object.defineProperty(of, name, { configurable: true, ...injected });
    try {
      for (let seed = 1; seed <= 10 && failure === undefined; seed += 1) {
        failure = await simulate(seed).then(
          () => undefined,
          (error: unknown) => error,
        );
      }
    } finally {
      Object.defineProperty(of, name, known ?? {});
    }
    expect(failure).toBeInstanceOf(Error);
  });
}
