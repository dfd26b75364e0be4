/**
 * Verifies that the changes of all owners arrive in seq order and are complete as long as history
 * is kept, and that each version can be read by its seq. The test makes random changes to three
 * tables (several owners, with a key and a short history; one owner without a key; rows that
 * expire), and flushes, merges, restarts and pauses for hours at random points. Each table's
 * history is kept from a position that advances. To reproduce a failure: SEED=<n> bun test <this
 * file>
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type { LocalStore, TableDefinition, TableWrite } from "../../../src/storage/mod.ts";
import { openAllChanges } from "../../../src/storage/read/all_changes.ts";
import { type Row, valuesOf } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  defineTable,
  openStore,
  type PlainChange,
  SMALL_MERGES,
} from "../../support/store_fixture.ts";
import { tableOf } from "../../support/stored_tables.ts";
import { amountOf } from "../../support/thoroughness.ts";
import { VersionModel } from "../../support/version_model.ts";

const HOUR_MS = 3_600_000;
const STEPS = 120;

const TABLES: readonly { definition: TableDefinition; owners: readonly number[] }[] = [
  {
    definition: { ...defineTable(1, [{ kind: "int" }, { kind: "text" }]), historyMs: HOUR_MS },
    owners: [1, 2, 3],
  },
  { definition: defineTable(2, [{ kind: "double" }], []), owners: [0] },
  {
    definition: {
      ...defineTable(3, [{ kind: "text" }, { kind: "bigint" }]),
      ttlMs: 2 * HOUR_MS,
      historyMs: HOUR_MS,
    },
    owners: [4, 5],
  },
];

type OwnedChange = Omit<PlainChange, "prev"> & { readonly owner: number };

interface Held {
  readonly model: VersionModel;
  readonly owners: readonly number[];
  seq: number;
}

class ChangesSimulation {
  readonly #random: SeededRandom;
  readonly #disk = new SimulatedDisk();
  readonly #clock = new ManualClock();
  #manifest = new MemoryManifest();
  readonly #tables: readonly Held[] = TABLES.map(({ definition, owners }) => ({
    model: new VersionModel(definition),
    owners,
    seq: 0,
  }));

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  async run(): Promise<void> {
    const random = this.#random;
    let store = await this.#open();
    for (let step = 0; step < STEPS; step += 1) {
      const table = random.pick(this.#tables);
      const { tableId } = table.model.definition;
      table.model.expiredSeq = store.expiredSeq(tableId);
      const choice = random.below(100);
      if (choice < 45) await this.#write(store, table);
      else if (choice < 60) await store.flush(tableId);
      else if (choice < 66) await store.compact(tableId);
      else if (choice < 74) this.#clock.advance(random.below(HOUR_MS));
      else if (choice < 80) await tidy(store);
      else if (choice < 84) this.#raiseHold(store, table);
      else if (choice < 87) store = await this.#reopen(store);
      else this.#check(store, table);
    }
    for (const table of this.#tables) this.#check(store, table);
    await store.close();
  }

  async #open(): Promise<LocalStore> {
    const store = await openStore({
      disk: this.#disk,
      manifest: this.#manifest,
      clock: this.#clock,
      definitions: this.#tables.map(({ model }) => model.definition),
      options: { mergeBounds: SMALL_MERGES },
    });
    for (const { model, seq } of this.#tables) {
      store.holdHistory(model.definition.tableId, seq as Seq);
    }
    return store;
  }

  async #reopen(store: LocalStore): Promise<LocalStore> {
    await store.close();
    this.#manifest = this.#manifest.restart();
    return await this.#open();
  }

  #raiseHold(store: LocalStore, table: Held): void {
    const { definition, versions } = table.model;
    if (versions.length > 0) table.seq = Math.max(table.seq, this.#random.pick(versions).seq);
    store.holdHistory(definition.tableId, table.seq as Seq);
  }

  async #write(store: LocalStore, { model, owners }: Held): Promise<void> {
    const random = this.#random;
    const { columns, keyColumnIds, tableId } = model.definition;
    const owner = random.pick(owners);
    const live = random.shuffle(model.live({ owner, upTo: store.appliedSeq })).slice(0, 5);
    const isKeyless = keyColumnIds.length === 0;
    const operations = ["insert", "insert", isKeyless ? "delete" : "update", "delete"] as const;
    const operation = random.pick(operations);
    let write: TableWrite;
    if (operation === "insert") {
      const taken = new Set(model.live({ owner, upTo: Infinity }).map(({ key }) => key));
      const rows: Row[] = [];
      for (let count = random.between(1, 8); count > 0; count -= 1) {
        const row = columns.map(({ type }) =>
          type.kind === "text" ? `text ${random.below(9)}` : random.below(12),
        );
        const key = model.keyOf(row, random.u32());
        if (!taken.has(key)) rows.push(row);
        taken.add(key);
      }
      write = { tableId, owner, operation, rows };
    } else {
      const rows = live.map((version) => {
        const [key, ...others] = model.rowOf(version);
        if (operation === "delete") return [key ?? null, ...others];
        return [key ?? null, ...others.map(() => `changed ${random.u32()}`)];
      });
      if (model.definition.columns[1]?.type.kind === "bigint" && operation === "update") {
        for (const row of rows) row[1] = random.below(1000);
      }
      const replacedSeqs = live.map(({ seq }) => seq);
      write = { tableId, owner, operation, rows, ...(isKeyless ? { replacedSeqs } : {}) };
    }
    if (write.rows.length === 0) return;
    const commit = store.apply({ writes: [write], wantsSeqs: true });
    model.note(write, commit, 0);
    await store.durable(commit.lastSeq);
  }

  #check(store: LocalStore, table: Held): void {
    const { model } = table;
    const { columns, tableId } = model.definition;
    const visible = model.versions.filter(({ seq }) => seq > table.seq);
    const after =
      visible.length === 0 || this.#random.chance(0.3) ? table.seq : this.#random.pick(visible).seq;
    const upTo = this.#random.chance(0.5)
      ? store.visibleSeq
      : Math.max(after, store.visibleSeq - this.#random.below(1e9));
    const options = {
      after: after as Seq,
      upTo: upTo as Seq,
      columnIds: columns.map(({ columnId }) => columnId),
      batchRows: this.#random.between(1, 20),
    };
    const expected = expectedChanges(model, options);
    const scan = this.#random.chance(0.5)
      ? store.changesOfAll(tableId, options)
      : openAllChanges(tableOf(store, tableId), options, this.#random.between(1, 30));
    const changes: OwnedChange[] = [];
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      const now = batch.columns.map((column) => valuesOf(column));
      const old = batch.oldColumns.map((column) => valuesOf(column));
      for (let row = 0; row < batch.rowCount; row += 1) {
        changes.push({
          owner: batch.owners[row] ?? -1,
          seq: batch.seqs[row] ?? 0,
          commitSeq: batch.commitSeqs[row] ?? 0,
          isDeleted: batch.deleted[row] === 1,
          row: now.map((values) => values[row] ?? null),
          old: batch.hasOld[row] === 1 ? old.map((values) => values[row] ?? null) : undefined,
        });
      }
    }
    scan.close();
    expect(changes).toEqual(expected);
    this.#checkVersions(store, model, expected);
  }

  #checkVersions(store: LocalStore, { definition }: VersionModel, expected: OwnedChange[]): void {
    const chosen = expected.filter(() => this.#random.chance(0.4));
    const rows = store.versions(definition.tableId, {
      seqs: Float64Array.from([...chosen.map(({ seq }) => seq), 1]),
      owners: Float64Array.from([...chosen.map(({ owner }) => owner), 0]),
      columnIds: definition.columns.map(({ columnId }) => columnId),
      wantsOld: true,
    });
    expect([...rows.isFound]).toEqual([...chosen.map(() => 1), 0]);
    for (const [at, { isDeleted, old, row }] of chosen.entries()) {
      expect(rows.columns.map((values) => values[at] ?? null)).toEqual([...row]);
      expect(rows.deleted[at]).toBe(isDeleted ? 1 : 0);
      const oldRow = rows.oldColumns.map((values) => values[at] ?? null);
      expect(rows.hasOld[at] === 1 ? oldRow : undefined).toEqual(
        old === undefined ? old : [...old],
      );
    }
  }
}

function expectedChanges(
  model: VersionModel,
  { after, upTo }: { after: number; upTo: number },
): OwnedChange[] {
  return model.versions
    .filter(({ seq }) => seq > after && seq <= upTo)
    .map((version) => {
      const { commitSeq, isDeleted, owner, prev, seq } = version;
      const replaced = model.versions.find((each) => each.seq === prev && !each.isDeleted);
      const old = replaced === undefined ? undefined : model.rowOf(replaced);
      return { owner, seq, commitSeq, isDeleted, row: model.rowOf(version), old };
    });
}

/** Discards all versions that may be discarded, and lets background work run for a while. */
async function tidy(store: LocalStore): Promise<void> {
  store.discardHistory();
  store.dropExpired();
  for (let round = 0; round < 40; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const SEEDS = process.env["SEED"] === undefined ? amountOf({ usual: 4, thorough: 40 }) : 1;

test("changesOfAll and versions read a held history as a plain list does", async () => {
  const first = seedOf(1);
  for (let seed = first; seed < first + SEEDS; seed += 1) {
    try {
      await new ChangesSimulation(seed).run();
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});

test("holdHistory without a hold lets replaced versions disappear when their history ends", async () => {
  const clock = new ManualClock();
  const [{ definition } = { definition: undefined }] = TABLES;
  const table = defined(definition, "there must be a table");
  for (const isHeld of [false, true]) {
    const store = await openStore({ clock, definitions: [table] });
    if (isHeld) store.holdHistory(1, 0 as Seq);
    const write = async (operation: "insert" | "update", text: string): Promise<number> => {
      const done = store.apply({
        writes: [{ tableId: 1, owner: 1, operation, rows: [[1, text]] }],
      });
      await store.durable(done.lastSeq);
      return done.lastSeq;
    };
    const first = await write("insert", "a");
    await write("update", "b");
    await store.flush(1);
    clock.advance(3 * HOUR_MS);
    const held = store.heldHistory(1);
    let step = held.next();
    while (step.done !== true) step = held.next();
    expect(step.value.versions).toBe(isHeld ? 1 : 0);
    expect(step.value.bytes > 0).toBe(isHeld);
    await store.compact(1);
    const { isFound } = store.versions(1, {
      seqs: Float64Array.of(first),
      owners: Float64Array.of(1),
      columnIds: [1],
    });
    expect([...isFound]).toEqual([isHeld ? 1 : 0]);
    await store.close();
  }
});
