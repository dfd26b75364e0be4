/**
 * Runs sequences of commits (some with rows that expire), flushes, merges and definitions against
 * a store with tables in two storages, on a disk that loses power and is full at times. At random
 * disk operations, the run captures the states in which a crash at that moment may leave the disk.
 * The engine opens each state, and the run compares the result with the ledger.
 *
 *     life 1 ──step, step, …──► crash or close ──► life 2 ──► …
 *        └ states │ │ │  each: open, compare, write on; sometimes crash while opening, and open again
 */
import type { Seq } from "../../../src/base/seq.ts";
import type { SequenceMark, SequenceNumbers } from "../../../src/catalog/mod.ts";
import type {
  LocalStore,
  StoredIndex,
  TableDefinition,
  TableWrite,
} from "../../../src/storage/mod.ts";
import { type Row, TEXT } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import {
  type CrashOptions,
  type SimulatedDisk,
  UNLIMITED_BYTES,
} from "../../support/simulated_disk.ts";
import {
  byColumns,
  defineTable,
  diskWithStorages,
  inStorage,
  makeStorage,
} from "../../support/store_fixture.ts";
import { FaultyDisk, type InjectedFault } from "./injected_faults.ts";
import { Ledger } from "./ledger.ts";
import {
  applied,
  type CrashState,
  isFull,
  KEYLESS_ID,
  numbersFrom,
  opened,
  SEQUENCE,
  STREAM_ID,
  settled,
  textOf,
  valueOf,
  writeOn,
} from "./steps.ts";

// Importing the SQL module registers the trigram code in this thread.
await import("../../../src/sql/mod.ts");

/** An index of the trigrams in the keys of table 2. */
const INVERTED_INDEX: StoredIndex = {
  indexId: 71,
  name: "t2_trigrams",
  columnIds: [72],
  expressions: [
    { columnId: 72, name: "c1", sql: "c1", type: TEXT, readIds: [1], terms: "trigrams" },
  ],
  isUnique: false,
  state: "ready",
};

const LIVES_PER_STORY = 4;
const STEPS_PER_LIFE = 40;

/**
 * The time to live of rows, in milliseconds. A life of the store lasts two to four times as long.
 */
const TTL_MS = 15;

/**
 * The possible numbers of milliseconds by which the clock has been set back when a store is opened
 * again.
 */
const SET_BACK_MS = [0, 4, 1000] as const;

/** The average number of disk operations between two captured states. */
const OPERATIONS_PER_STATE = 4;

/** The maximum number of captured states that wait in memory to be opened. */
const WAITING_MAX = 32;

export interface CrashReport {
  states: number;
  merges: number;
  /** The number of merges that either moved versions to history or merged history. */
  parted: number;
  /** The number of segments that were removed as a whole because all of their rows had expired. */
  expired: number;
  flushes: number;
  definitions: number;
  acknowledged: number;
  /** The number of commits rolled back because the disk was full. */
  takenBack: number;
  /** The findings. Each finding ends its sequence of operations, so a sequence has at most one. */
  readonly findings: string[];
}

/**
 * Runs random sequences of operations until `count` states have been compared, or until a finding
 * ends the campaign.
 */
export async function crashStates(
  options: {
    readonly stateCount: number;
    readonly seed: number;
    readonly injected?: InjectedFault | undefined;
  },
  onStory: (report: CrashReport) => void = () => {},
): Promise<CrashReport> {
  const report: CrashReport = {
    states: 0,
    merges: 0,
    parted: 0,
    expired: 0,
    flushes: 0,
    definitions: 0,
    acknowledged: 0,
    takenBack: 0,
    findings: [],
  };
  let uncaught: string | undefined;
  const noteUncaught = (error: unknown): void => {
    uncaught ??= `uncaught: ${textOf(error)}`;
  };
  process.on("uncaughtException", noteUncaught);
  process.on("unhandledRejection", noteUncaught);
  for (let seed = options.seed; report.states < options.stateCount; seed += 1) {
    uncaught = undefined;
    const story = new Story(seed, { injected: options.injected, report });
    const finding = (await story.tell()) ?? uncaught;
    if (finding !== undefined) report.findings.push(`seed ${seed}: ${finding}`);
    if (finding !== undefined && options.injected !== undefined) break;
    if (report.findings.length >= 10) break;
    onStory(report);
  }
  process.off("uncaughtException", noteUncaught);
  process.off("unhandledRejection", noteUncaught);
  return report;
}

class Story {
  readonly #random: SeededRandom;
  readonly #injected: InjectedFault | undefined;
  readonly #report: CrashReport;
  readonly #ledger = new Ledger();
  #disk = diskWithStorages();
  /** A second file system on the same disk. */
  readonly #storage = makeStorage(this.#disk, "second");
  #manifest = new MemoryManifest();
  /** The manifest that the next process finds after a crash if a fault is injected. */
  #oldManifest = new MemoryManifest();
  #clock = new ManualClock();
  #definitions: TableDefinition[];
  #nextTableId = STREAM_ID + 1;
  #latestMs = 0;
  #ackedSeq = 0;
  #appliedSeq = 0;
  #lastId = 0;
  /** The latest durable state of the number sequence in the catalog, and the state before it. */
  #marks: readonly SequenceMark[] = [];
  #oldMarks: readonly SequenceMark[] = [];
  #numbers: SequenceNumbers = this.#newNumbers();
  #lastNumber = 0;
  #life = 0;
  #waiting: CrashState[] = [];

  constructor(
    seed: number,
    { injected, report }: { injected: InjectedFault | undefined; report: CrashReport },
  ) {
    this.#random = new SeededRandom(seed);
    this.#injected = injected;
    this.#report = report;
    this.#definitions = [
      this.#somewhere({
        ...defineTable(1, [{ kind: "int" }, { kind: "text" }]),
        compression: "zstd",
      }),
      this.#somewhere({
        ...defineTable(2, [{ kind: "text" }, { kind: "bigint" }]),
        indexes: [
          { indexId: 70, name: "t2_idx", columnIds: [2], isUnique: false, state: "ready" },
          INVERTED_INDEX,
        ],
      }),
      this.#somewhere(defineTable(KEYLESS_ID, [{ kind: "double" }, { kind: "text" }], [])),
      { ...defineTable(STREAM_ID, [{ kind: "int" }, { kind: "text" }]), ttlMs: TTL_MS },
    ];
  }

  /** Places a table, with its segments, in the data directory or in the other storage. */
  #somewhere(table: TableDefinition): TableDefinition {
    return this.#random.chance(0.5) ? inStorage(table, this.#storage) : table;
  }

  /** Runs the sequence of operations. Returns the first fault; undefined if there is none. */
  async tell(): Promise<string | undefined> {
    for (let life = 0; life < LIVES_PER_STORY; life += 1) {
      const store = await this.#open();
      if (typeof store === "string") return store;
      for (let step = 0; step < STEPS_PER_LIFE; step += 1) {
        const failure = await this.#step(store);
        const finding = failure ?? (await this.#compareWaiting());
        if (finding !== undefined) return finding;
      }
      await this.#end(store);
    }
    return undefined;
  }

  async #open(): Promise<LocalStore | string> {
    this.#watch();
    const store = await opened({
      disk: this.#faulty(this.#disk),
      manifest: this.#manifest,
      definitions: this.#definitions,
      nowMs: this.#clock.nowMs(),
      clock: this.#clock,
      storages: [this.#storage],
      injected: this.#injected,
    });
    if (typeof store === "string") return store;
    const claims = {
      ackedSeq: this.#ackedSeq,
      appliedSeq: this.#appliedSeq,
      latestMs: this.#latestMs,
      nowMs: this.#clock.nowMs(),
    };
    this.#ledger.cutAbove(this.#ledger.reach(store, this.#definitions, claims));
    this.#appliedSeq = store.visibleSeq;
    try {
      return this.#ledger.difference(store, this.#definitions, claims) ?? store;
    } catch (error) {
      return `unreadable: ${textOf(error)}`;
    }
  }

  /** Starts capturing the states of the disk at random operations. */
  #watch(): void {
    const { life } = { life: this.#life };
    this.#disk.faultPlan = () => {
      const isDue = life === this.#life && this.#random.below(OPERATIONS_PER_STATE) === 0;
      if (isDue && this.#waiting.length < WAITING_MAX) this.#waiting.push(this.#crashedNow());
      return undefined;
    };
    this.#manifest.onPublish = ({ addSegments = [], removeSegmentIds = [] }) => {
      this.#oldManifest = this.#manifest.restart();
      if (removeSegmentIds.length === 0) return;
      if (addSegments.some(({ history }) => history !== undefined)) this.#report.parted += 1;
      if (addSegments.length > 0) this.#report.merges += 1;
      else this.#report.expired += removeSegmentIds.length;
    };
  }

  #crashedNow(): CrashState {
    const disk = this.#disk.crash(this.#crashOptions());
    disk.capacityBytes = UNLIMITED_BYTES;
    const isManifestLate = this.#injected === "manifest_not_synced" && this.#random.chance(0.5);
    const isMarkLate = this.#injected === "number_twice" && this.#random.chance(0.5);
    return {
      disk,
      manifest: (isManifestLate ? this.#oldManifest : this.#manifest).restart(),
      definitions: [...this.#definitions],
      ackedSeq: this.#ackedSeq,
      appliedSeq: this.#appliedSeq,
      lastId: this.#lastId,
      marks: isMarkLate ? this.#oldMarks : this.#marks,
      lastNumber: this.#lastNumber,
      nowMs: this.#clock.nowMs(),
      latestMs: Math.max(this.#latestMs, this.#clock.nowMs()),
      generation: 1,
    };
  }

  #crashOptions(): CrashOptions {
    const keep = this.#random.pick(["none", "some", "some", "all"] as const);
    return keep === "some" ? { keep, random: this.#random } : { keep };
  }

  #faulty(disk: SimulatedDisk): SimulatedDisk | FaultyDisk {
    return this.#injected === undefined ? disk : new FaultyDisk(disk, this.#injected);
  }

  async #step(store: LocalStore): Promise<string | undefined> {
    const random = this.#random;
    this.#clock.advance(random.chance(0.05) ? random.between(5, 20) : random.below(2));
    this.#latestMs = Math.max(this.#latestMs, this.#clock.nowMs());
    const choice = random.below(100);
    try {
      if (choice < 50) this.#commit(store);
      else if (choice < 62) await settled(random.below(3));
      else if (choice < 90) await this.#flush(store);
      else if (choice < 94) this.#define(store);
      else if (choice < 96) this.#fill();
      else if (choice < 98) store.dropExpired();
      else this.#takeId(store);
      if (choice % 10 === 0) this.#takeNumbers();
    } catch (error) {
      return `failed: ${textOf(error)}`;
    }
    return undefined;
  }

  /**
   * Returns a random table. The first table is the most likely, because segments are merged only
   * if a table has many of them.
   */
  #someTable(): TableDefinition {
    const [first] = this.#definitions;
    const isFirst = first !== undefined && this.#random.chance(0.5);
    return isFirst ? first : this.#random.pick(this.#definitions);
  }

  #commit(store: LocalStore): void {
    const table = this.#someTable();
    const write = this.#write(store, table);
    if (write === undefined) return;
    const before = this.#waiting.length;
    const isByRows = write.operation !== "insert" || this.#random.chance(0.4);
    const done = applied(store, isByRows ? write : byColumns(write, table));
    if (done === undefined) return;
    this.#ledger.note([write], done, table.keyColumnIds.length > 0);
    this.#appliedSeq = done.lastSeq;
    // Rows that a commit writes in its own tick may be durable before this run learns their seqs.
    for (const state of this.#waiting.slice(before)) state.appliedSeq = done.lastSeq;
    const life = this.#life;
    void store.durable(done.lastSeq).then(
      () => {
        if (life !== this.#life) return undefined;
        this.#ackedSeq = Math.max(this.#ackedSeq, done.lastSeq);
        this.#report.acknowledged += 1;
        return undefined;
      },
      (error: unknown) => {
        if (!isFull(error)) throw error;
        if (life === this.#life) this.#noteTakenBack(store, done.lastSeq);
        return undefined;
      },
    );
  }

  /**
   * Called when a commit has been rolled back. No later state may contain the commit. Captured
   * states that have not been opened yet are discarded, because they may contain it.
   */
  #noteTakenBack(store: LocalStore, commitSeq: number): void {
    this.#report.takenBack += 1;
    this.#ledger.takeBack(commitSeq);
    this.#appliedSeq = store.appliedSeq;
    this.#waiting = [];
  }

  #write(
    store: LocalStore,
    { tableId, columns, keyColumnIds, ttlMs }: TableDefinition,
  ): TableWrite | undefined {
    const random = this.#random;
    const owner = tableId === 2 ? random.between(1, 2) : 0;
    const live = this.#ledger.live(tableId, owner);
    const keyOf = (): number | string =>
      tableId === 2 ? `k${random.below(20)}` : random.below(20);
    const rowOf = (key: Row[number]): Row =>
      columns.map(({ type }, index) => (index === 0 ? key : valueOf(type.kind, index, random)));
    // A commit with many rows exceeds a log file and is therefore written in parts.
    const rowCount = random.chance(0.1) ? random.between(8, 16) : random.between(1, 3);
    if (keyColumnIds.length === 0) {
      const rows = Array.from({ length: rowCount }, () => rowOf(random.unit()));
      return { tableId, owner, operation: "insert", rows };
    }
    const keys = new Set<Row[number]>();
    for (let count = 0; count < rowCount; count += 1) keys.add(keyOf());
    const isLive = (key: Row[number]): boolean => {
      if (ttlMs === undefined) return live.some(([other]) => other === key);
      // Rows expire at an exact millisecond, so only the store knows whether this row has expired.
      const upTo = store.appliedSeq;
      return store.lookup(tableId, { owner, key: [key], upTo, columnIds: [] }) !== undefined;
    };
    const operation = random.pick(
      ttlMs === undefined
        ? (["insert", "update", "delete"] as const)
        : (["insert", "insert", "delete"] as const),
    );
    const fitting = [...keys].filter((key) => isLive(key) === (operation !== "insert"));
    if (fitting.length === 0) return undefined;
    return { tableId, owner, operation, rows: fitting.map(rowOf) };
  }

  async #flush(store: LocalStore): Promise<void> {
    this.#report.flushes += 1;
    const { tableId } = this.#someTable();
    const flushing = store.flush(tableId);
    if (this.#random.chance(0.5)) this.#commit(store);
    const done = flushing.catch((error: unknown) => {
      if (!isFull(error)) throw error;
    });
    if (this.#random.chance(0.8)) await done;
  }

  #takeId(store: LocalStore): void {
    try {
      this.#lastId = Math.max(this.#lastId, store.snowflakeId());
    } catch (error) {
      if (!isFull(error)) throw error;
    }
  }

  #newNumbers(): SequenceNumbers {
    return numbersFrom(this.#marks, {
      store: (marks) => {
        this.#oldMarks = this.#marks;
        this.#marks = marks;
      },
    });
  }

  /**
   * Takes numbers from the sequence. Sometimes, this uses up a block, so that the next block is
   * reserved between two crashes.
   */
  #takeNumbers(): void {
    const count = this.#random.between(1, 20);
    for (let i = 0; i < count; i += 1) this.#lastNumber = Number(this.#numbers.next(SEQUENCE));
  }

  /** Fills the disk, or frees space on it again. */
  #fill(): void {
    const room = this.#random.below(6000);
    const isBounded = this.#disk.capacityBytes < UNLIMITED_BYTES;
    this.#disk.capacityBytes = isBounded ? UNLIMITED_BYTES : this.#disk.byteCount() + room;
  }

  /**
   * Changes the definition of a table. The catalog must be durable before the store is told of the
   * change.
   */
  #define(store: LocalStore): void {
    this.#report.definitions += 1;
    const random = this.#random;
    const others = this.#definitions.filter(({ tableId }) => tableId > STREAM_ID);
    const choice = random.below(3);
    if (choice === 0 || others.length === 0) {
      const made = this.#somewhere(
        defineTable(this.#nextTableId, [{ kind: "int" }, { kind: "text" }]),
      );
      this.#nextTableId += 1;
      this.#definitions.push(made);
      this.#noteDefinition(store);
      store.defineTable(made);
    } else if (choice === 1) {
      const { tableId } = random.pick(others);
      this.#definitions = this.#definitions.filter((table) => table.tableId !== tableId);
      this.#noteDefinition(store);
      this.#manifest.forget(tableId);
      store.dropTable(tableId);
    } else {
      const old = random.pick(this.#definitions);
      const columnId = old.columns.length + 1;
      const name = `c${columnId}`;
      const column = { columnId, name, type: { kind: "text" }, missing: `as ${name}` } as const;
      const changed = { ...old, columns: [...old.columns, column] };
      this.#definitions = this.#definitions.map((table) => (table === old ? changed : table));
      this.#noteDefinition(store);
      store.defineTable(changed);
    }
  }

  #noteDefinition(store: LocalStore): void {
    this.#manifest.catalogSeq = Math.max(this.#manifest.catalogSeq, store.issueSeq()) as Seq;
  }

  /** Ends the simulated process, by a crash or by an orderly shutdown. */
  async #end(store: LocalStore): Promise<void> {
    if (this.#random.chance(0.3)) {
      await store.close();
      this.#numbers.giveBack([SEQUENCE]);
      this.#life += 1;
      this.#disk = this.#disk.restart();
      this.#disk.capacityBytes = UNLIMITED_BYTES;
    } else {
      const { disk, manifest, marks, nowMs } = this.#crashedNow();
      this.#marks = marks;
      this.#life += 1;
      // The old process continues on its own disk, but no caller waits for it.
      void store.close();
      this.#disk = disk;
      this.#manifest = manifest;
      this.#clock = new ManualClock(nowMs - this.#random.pick(SET_BACK_MS));
    }
    this.#waiting = [];
    this.#numbers = this.#newNumbers();
  }

  async #compareWaiting(): Promise<string | undefined> {
    for (let state = this.#waiting.shift(); state; state = this.#waiting.shift()) {
      this.#report.states += 1;
      const finding = await this.#compare(state);
      if (finding !== undefined) return finding;
    }
    return undefined;
  }

  async #compare(state: CrashState): Promise<string | undefined> {
    const { disk, definitions, manifest, nowMs } = state;
    // A second crash while the store is being opened must preserve everything that survived the
    // first crash.
    const again = state.generation === 1 && this.#random.chance(0.2);
    let skipped = this.#random.below(20);
    if (again) {
      disk.faultPlan = () => {
        skipped -= 1;
        if (skipped !== 0) return undefined;
        const crashed = disk.crash(this.#crashOptions());
        this.#waiting.push({
          ...state,
          disk: crashed,
          manifest: manifest.restart(),
          generation: 2,
        });
        return undefined;
      };
    }
    const faulty = this.#faulty(disk);
    const claims = { ...state, nowMs: nowMs - this.#random.pick(SET_BACK_MS) };
    const storages = [this.#storage];
    const injected = this.#injected;
    const parts = { disk: faulty, manifest, definitions, nowMs: claims.nowMs, storages, injected };
    const store = await opened(parts);
    if (typeof store === "string") return store;
    try {
      const finding =
        this.#ledger.difference(store, definitions, claims) ?? (await writeOn(store, state));
      await store.close();
      return finding;
    } catch (error) {
      return `unreadable: ${textOf(error)}`;
    }
  }
}
