/**
 * Verifies that every read gives the same result as a plain list of row versions, whatever is
 * committed, flushed, crashed and reopened in whatever order, and that no acknowledged commit is
 * ever lost. The test runs a random schedule over three tables (shared; per user with a compound
 * key and in a separate storage; without a key) on a simulated disk that loses whatever was not
 * synced. After each crash, the surviving commits must be a prefix of those applied, and include
 * every acknowledged one. To reproduce a failure: SEED=<n> bun test
 * tests/storage/local_store_simulation_test.ts
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../src/base/seq.ts";
import type {
  Commit,
  LocalStore,
  LocalStoreOptions,
  TableDefinition,
  TableWrite,
} from "../../src/storage/mod.ts";
import type { Row, Value } from "../../src/types/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import {
  byColumns,
  defineTable,
  diskWithStorages,
  inStorage,
  makeStorage,
  openStore,
  readChanges,
  readRows,
  SMALL_MERGES,
  STORAGES_PATH,
  StoreModel,
} from "../support/store_fixture.ts";
import { amountOf } from "../support/thoroughness.ts";

const SHARED: TableDefinition = {
  ...defineTable(1, [{ kind: "int" }, { kind: "text" }, { kind: "bigint" }]),
  compression: "zstd",
};
/** A table with its segments in a storage on another file system. */
const USER = inStorage(
  defineTable(2, [{ kind: "text" }, { kind: "bigint" }, { kind: "boolean" }], [1, 2]),
  { storageId: "second", root: `${STORAGES_PATH}/second` },
);
const KEYLESS: TableDefinition = {
  ...defineTable(3, [{ kind: "double" }, { kind: "bytes" }], []),
  compression: "zstd",
};
const TABLES = [SHARED, USER, KEYLESS];

interface SimulationOptions extends Partial<LocalStoreOptions> {
  readonly flushSteps?: number;
}

class Simulation {
  readonly random: SeededRandom;
  readonly options: Partial<LocalStoreOptions>;
  /** The number of flushes among a hundred steps. */
  readonly flushSteps: number;
  mergeCount = 0;
  disk = diskWithStorages();
  readonly storages = [makeStorage(this.disk, "second")];
  manifest = new MemoryManifest();
  clock = new ManualClock();
  model = new StoreModel(TABLES);
  ackedSeq = 0;
  /**
   * The number of times that the store has been restarted. Late effects of an earlier store are
   * ignored.
   */
  life = 0;
  store: LocalStore | undefined;

  constructor(seed: number, { flushSteps = 8, ...options }: SimulationOptions) {
    this.random = new SeededRandom(seed);
    this.options = options;
    this.flushSteps = flushSteps;
  }

  async open(): Promise<LocalStore> {
    const { disk, manifest, clock, storages } = this;
    const options = { earlyWriteBytes: 200, ...this.options };
    manifest.onPublish = ({ removeSegmentIds = [] }) => {
      if (removeSegmentIds.length > 0) this.mergeCount += 1;
    };
    this.store = await openStore({
      disk,
      manifest,
      clock,
      definitions: TABLES,
      options,
      storages,
    });
    return this.store;
  }

  async step(store: LocalStore): Promise<LocalStore> {
    const { random } = this;
    this.clock.advance(random.below(3));
    const choice = random.below(100);
    const flushFrom = 80 - this.flushSteps;
    if (choice < flushFrom - 12) this.commit(store);
    else if (choice < flushFrom) await settled(random.below(4));
    else if (choice < 80) await this.flush(store);
    else if (choice < 95) this.check(store);
    else if (choice < 97) return this.crash(store);
    else return this.reopen(store);
    return store;
  }

  commit(store: LocalStore): void {
    const batch = { writes: this.#writes(), wantsSeqs: true };
    if (batch.writes.length === 0) return;
    const done = this.random.chance(0.3)
      ? this.#staged(store, batch)
      : store.apply({ ...batch, writes: batch.writes.map((write) => this.#inAnyForm(write)) });
    if (done === undefined) return;
    this.model.note(batch, done);
    const { life } = this;
    void store.durable(done.lastSeq).then(() => {
      if (life === this.life) this.ackedSeq = Math.max(this.ackedSeq, done.lastSeq);
      return undefined;
    });
  }

  #inAnyForm(write: TableWrite): TableWrite {
    const table = TABLES.find(({ tableId }) => tableId === write.tableId);
    const isByRows = table === undefined || write.operation !== "insert" || this.random.chance(0.4);
    return isByRows ? write : byColumns(write, table);
  }

  /**
   * Stages a write as a large commit would, whatever its size. Returns undefined if a key is
   * written twice.
   */
  #staged(store: LocalStore, { writes }: { writes: readonly TableWrite[] }): Commit | undefined {
    const keys = writes.flatMap(({ owner, rows, tableId }) =>
      rows.map((row) => `${tableId} ${owner} ${this.model.keyOf(tableId, row, this.random.u32())}`),
    );
    if (new Set(keys).size < keys.length) return undefined;
    const staged = store.stage({ wantsSeqs: true });
    for (const write of writes) staged.add(write);
    expect(staged.settle()).toBe(true);
    return staged.commit();
  }

  async flush(store: LocalStore): Promise<void> {
    const flushing = store.flush(this.random.pick(TABLES).tableId);
    // Sometimes another commit is made while the flush is running.
    if (this.random.chance(0.5)) {
      await settled(this.random.below(3));
      this.commit(store);
    }
    if (this.random.chance(0.7)) await flushing;
  }

  check(store: LocalStore): void {
    const { random, model } = this;
    expect(store.visibleSeq).toBeGreaterThanOrEqual(this.ackedSeq);
    for (const table of TABLES) {
      const owner = this.#owner(table);
      const upTo = random.chance(0.5) ? store.visibleSeq : this.#someSeq(store);
      const after = random.chance(0.7) ? 0 : this.#someSeq(store);
      const bounds = { owner, upTo, after, withTombstones: random.chance(0.3) };
      const batchRows = random.pick([1, 2, 7, 4096]);
      const found = readRows(store, table, { ...bounds, batchRows });
      expect(found).toEqual(model.rows(table.tableId, bounds));
      const seqMax = this.#someSeq(store);
      expect(readRows(store, table, { ...bounds, batchRows, seqMax })).toEqual(
        found.filter(([seq]) => Number(seq) <= seqMax),
      );
      // Each version refers to the version that it replaces, as far back as a reader asks.
      expect(readChanges(store, table, { ...bounds, batchRows, prevsAfter: 0 })).toEqual(
        model.changes(table.tableId, bounds),
      );
      const live = model.rows(table.tableId, { owner, upTo: store.visibleSeq });
      expect(store.liveRowCount(table.tableId, owner)).toBe(live.length);
      this.#checkLookup(store, table, { owner, upTo: upTo as Seq });
    }
  }

  async crash(store: LocalStore): Promise<LocalStore> {
    const { random } = this;
    const keep = random.pick(["none", "some", "all"] as const);
    const { ackedSeq } = this;
    this.disk = this.disk.crash(keep === "some" ? { keep, random } : { keep });
    this.manifest = this.manifest.restart();
    this.clock = new ManualClock(this.clock.nowMs() + 1);
    this.life += 1;
    // The old process is still running against its own disk, but nobody waits for it.
    void store.close();
    return this.#afterRestart(ackedSeq);
  }

  async reopen(store: LocalStore): Promise<LocalStore> {
    const applied = store.appliedSeq;
    await store.close();
    return this.#afterRestart(applied);
  }

  async #afterRestart(atLeast: number): Promise<LocalStore> {
    const applied = this.model.commitSeqs();
    const store = await this.open();
    const { visibleSeq } = store;
    expect(visibleSeq).toBeGreaterThanOrEqual(atLeast);
    this.model.cutAbove(visibleSeq);
    expect(this.model.commitSeqs()).toEqual(applied.filter((seq) => seq <= visibleSeq));
    this.ackedSeq = visibleSeq;
    this.check(store);
    return store;
  }

  #checkLookup(
    store: LocalStore,
    { tableId, keyColumnIds, columns }: TableDefinition,
    { owner, upTo }: { owner: number; upTo: Seq },
  ): void {
    if (keyColumnIds.length === 0) return;
    const columnIds = columns.map(({ columnId }) => columnId);
    const row = this.#row(tableId);
    const key = keyColumnIds.map((id) => row[id - 1] ?? null);
    const wanted = this.model.keyOf(tableId, row, 0);
    const expected = this.model
      .rows(tableId, { owner, upTo })
      .find(([, ...values]) => this.model.keyOf(tableId, values, 0) === wanted);
    expect(store.lookup(tableId, { owner, key, upTo, columnIds })).toEqual(
      expected?.slice(1) as Row | undefined,
    );
  }

  #writes(): TableWrite[] {
    const writes: TableWrite[] = [];
    const used = new Set<string>();
    for (let count = this.random.between(1, 3); count > 0; count -= 1) {
      const table = this.random.pick(TABLES);
      const { tableId, keyColumnIds } = table;
      const owner = this.#owner(table);
      const rows: Row[] = [];
      const isInsert = keyColumnIds.length === 0 || this.random.chance(0.5);
      const live = this.model.live(tableId, owner);
      for (let left = this.random.between(1, 4); left > 0; left -= 1) {
        const fresh = this.#row(tableId);
        const row = isInsert || live.length === 0 ? fresh : this.random.pick(live);
        const key = `${tableId} ${owner} ${this.model.keyOf(tableId, row, this.random.u32())}`;
        const isLive = live.some(
          (each) => this.model.keyOf(tableId, each, 0) === this.model.keyOf(tableId, row, 0),
        );
        if (used.has(key) || (keyColumnIds.length > 0 && isLive === isInsert)) continue;
        used.add(key);
        rows.push(
          isInsert
            ? row
            : fresh.map((value, at) => (keyColumnIds.includes(at + 1) ? (row[at] ?? null) : value)),
        );
      }
      const operation = isInsert ? "insert" : this.random.chance(0.6) ? "update" : "delete";
      if (rows.length > 0) writes.push({ tableId, owner, operation, rows });
    }
    return writes;
  }

  #row(tableId: number): Row {
    const { random } = this;
    const text = (): Value => "x".repeat(random.below(40)) + random.pick(["", "ä", "€uro", "𝄞"]);
    const whole = (): Value =>
      random.pick([random.below(1000), -random.below(1e12), 2n ** 60n + BigInt(random.below(9))]);
    if (tableId === SHARED.tableId) {
      return [random.below(25), random.chance(0.2) ? null : text(), whole()];
    }
    if (tableId === USER.tableId) {
      return [`k${random.below(4)}`, random.below(4), random.pick([true, false, null])];
    }
    return [random.unit() * 100, random.chance(0.3) ? null : random.bytes(random.below(600))];
  }

  #owner({ tableId }: TableDefinition): number {
    return tableId === SHARED.tableId ? 0 : this.random.between(1, 3);
  }

  #someSeq(store: LocalStore): number {
    const seqs = this.model.commitSeqs().filter((seq) => seq <= store.visibleSeq);
    return seqs.length === 0 ? 0 : this.random.pick(seqs) - this.random.below(2);
  }
}

/** Runs all ready work for a few rounds. */
async function settled(rounds: number): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function simulate(seed: number, options: SimulationOptions): Promise<number> {
  const simulation = new Simulation(seed, options);
  try {
    let store = await simulation.open();
    for (let step = 0; step < 250; step += 1) store = await simulation.step(store);
    await store.close();
    return simulation.mergeCount;
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
}

const firstSeed = seedOf(1);
const seedCount = process.env["SEED"] === undefined ? amountOf({ usual: 1, thorough: 8 }) : 1;

test("LocalStore agrees with a list of versions through flushes and crashes", async () => {
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) await simulate(seed, {});
});

test("LocalStore agrees with the list if commits span log files and the log is recycled", async () => {
  // Each file holds a few commits, so most commits cause files to be switched, released and read
  // back in parts.
  const options = { walSegmentBytes: 4096, rowBytesMax: 1024, walMaxBytes: 3 * 4096 };
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    await simulate(seed + 1000, options);
  }
});

test("LocalStore agrees with the list while segments are merged", async () => {
  let mergeCount = 0;
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    const mergeBounds = seed % 2 === 0 ? { mergeBounds: SMALL_MERGES } : {};
    mergeCount += await simulate(seed + 2000, { flushSteps: 35, ...mergeBounds });
  }
  expect(mergeCount).toBeGreaterThan(seedCount);
});
