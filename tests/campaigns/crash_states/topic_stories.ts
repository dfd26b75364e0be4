/**
 * Runs sequences of topic operations on a disk that loses power: commits to a source table,
 * deliveries, acknowledgements (alone, or in the same commit as an effect), stored offsets,
 * flushes and merges. At random disk operations, the run captures the states in which a crash at
 * that moment may leave the disk. The store, the topics and the groups open each state, in which
 * the following must hold:
 *
 * - every durable change is one message, offsets have no gaps, and every message that was ever
 *   delivered keeps its offset;
 * - no message is redelivered if its acknowledgement was durable, and every other message is
 *   redelivered unless its acknowledgement was requested;
 * - an effect exists if and only if the message in its commit is acknowledged.
 */
import { isExpected } from "../../../src/base/errors.ts";
import {
  TOPIC_GROUPS_TABLE,
  TOPIC_OFFSETS_TABLE,
  type TopicMessage,
} from "../../../src/sql/mod.ts";
import type { LocalStore, TableWrite } from "../../../src/storage/mod.ts";
import type { TopicGroups } from "../../../src/topics/mod.ts";
import { BIGINT, TEXT } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { type CrashOptions, SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  Definitions,
  type OpenTopics,
  openGroups,
  openTopics,
  tableEntry,
  topicEntry,
} from "../../topics/topics_fixture.ts";
import { SMALL, settled, textOf } from "./steps.ts";

export const TOPIC_FAULTS = [
  /** The acknowledgement is committed separately, after its effect. */
  "ack_apart",
  /** The position of a topic is stored before the offsets up to it. */
  "position_ahead",
  /** The log reports bytes as durable before they are. */
  "topic_early_ack",
] as const;

export type TopicFault = (typeof TOPIC_FAULTS)[number];

const LIVES_PER_STORY = 3;
const STEPS_PER_LIFE = 60;

/** The average number of disk operations between two captured states. */
const OPERATIONS_PER_STATE = 3;

/** The maximum number of captured states that wait in memory to be opened. */
const WAITING_MAX = 16;

const HOUR_MS = 3_600_000;
const SOURCE = 1;
const EFFECTS = 2;
const TOPIC = 11;
const PARTITIONS = 2;
const GROUPS = ["plain", "exact"] as const;

type GroupName = (typeof GROUPS)[number];

export interface TopicReport {
  states: number;
  messages: number;
  acknowledged: number;
  readonly findings: string[];
}

interface World extends OpenTopics {
  readonly groups: TopicGroups;
}

/** A disk after a crash, with the contents that it must have. */
interface TopicState {
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly nowMs: number;
  readonly durableCount: number;
  readonly seenCount: number;
  readonly ackedCount: number;
  readonly askedCount: number;
}

interface SeenMessage {
  readonly version: number;
  readonly place: string;
}

/**
 * Runs random sequences of topic operations until the given number of states has been compared, or
 * until there is a finding.
 */
export async function topicStates({
  injected,
  seed: firstSeed,
  stateCount,
}: {
  readonly stateCount: number;
  readonly seed: number;
  readonly injected?: TopicFault | undefined;
}): Promise<TopicReport> {
  const report: TopicReport = { states: 0, messages: 0, acknowledged: 0, findings: [] };
  for (let seed = firstSeed; report.states < stateCount; seed += 1) {
    const finding = await new TopicStory(seed, { injected, report }).tell();
    if (finding === undefined) continue;
    report.findings.push(`seed ${seed}: ${finding}`);
    break;
  }
  return report;
}

class TopicStory {
  readonly #random: SeededRandom;
  readonly #injected: TopicFault | undefined;
  readonly #report: TopicReport;
  readonly #definitions = new Definitions();
  #disk = new SimulatedDisk();
  #manifest = new MemoryManifest();
  #clock = new ManualClock();
  #life = 0;
  #version = 0;
  /** The versions with durable commits, in commit order. */
  readonly #durable: number[] = [];
  readonly #seen: SeenMessage[] = [];
  /** The durable acknowledgements, identified by {@linkcode nameOf}. */
  readonly #acked: string[] = [];
  readonly #asked: string[] = [];
  /** The messages delivered to consumers but not acknowledged yet. */
  #held: { readonly group: GroupName; readonly message: TopicMessage }[] = [];
  #waiting: TopicState[] = [];

  constructor(
    seed: number,
    { injected, report }: { injected: TopicFault | undefined; report: TopicReport },
  ) {
    this.#random = new SeededRandom(seed);
    this.#injected = injected;
    this.#report = report;
    this.#definitions.tableEntries.set(SOURCE, tableEntry(SOURCE, [TEXT, BIGINT]));
    this.#definitions.tableEntries.set(EFFECTS, tableEntry(EFFECTS, [TEXT, BIGINT]));
    const source = { tableId: SOURCE, payload: "full", fromSeq: 0 } as const;
    const sources = [
      { ...source, sourceId: 1, operation: "insert" },
      { ...source, sourceId: 2, operation: "update" },
    ] as const;
    const entry = { topicId: TOPIC, partitions: PARTITIONS, sources, nextSourceId: 3 };
    this.#definitions.topicEntries.set(TOPIC, topicEntry(entry));
  }

  /** Runs the sequence of operations. Returns the first fault; undefined if there is none. */
  async tell(): Promise<string | undefined> {
    for (let life = 0; life < LIVES_PER_STORY; life += 1) {
      this.#watch(life);
      const world = await this.#open({ disk: this.#disk, manifest: this.#manifest });
      for (let step = 0; step < STEPS_PER_LIFE; step += 1) {
        await this.#step(world);
        const finding = await this.#compareWaiting();
        if (finding !== undefined) return finding;
      }
      await this.#end(world);
    }
    return undefined;
  }

  /** Starts capturing states of the disk at random operations. */
  #watch(life: number): void {
    this.#disk.faultPlan = () => {
      const isDue = life === this.#life && this.#random.below(OPERATIONS_PER_STATE) === 0;
      if (isDue && this.#waiting.length < WAITING_MAX) this.#waiting.push(this.#crashedNow());
      return undefined;
    };
  }

  #crashedNow(): TopicState {
    const random = this.#random;
    const keep = random.pick(["none", "some", "some", "all"] as const);
    const options: CrashOptions = keep === "some" ? { keep, random } : { keep };
    return {
      disk: this.#disk.crash(options),
      manifest: this.#manifest.restart(),
      nowMs: this.#clock.nowMs(),
      durableCount: this.#durable.length,
      seenCount: this.#seen.length,
      ackedCount: this.#acked.length,
      askedCount: this.#asked.length,
    };
  }

  async #open(
    { disk, manifest }: Pick<TopicState, "disk" | "manifest">,
    clock = this.#clock,
  ): Promise<World> {
    const definitions = this.#definitions;
    const options = { ...SMALL, rowBytesMax: 2048 };
    const parts = { clock, definitions, disk, manifest, historyMs: HOUR_MS, options };
    const opened = await openTopics(parts);
    this.#inject(opened.store);
    const groups = openGroups(opened, { clock, definitions, visibilityMs: 1000 });
    return { ...opened, groups };
  }

  /**
   * Injects the fault into a store: splits a commit into two, or reports a commit as durable too
   * early.
   */
  #inject(store: LocalStore): void {
    const apply = store.apply.bind(store);
    if (this.#injected === "topic_early_ack") store.durable = () => Promise.resolve();
    const isFirst = (write: TableWrite): boolean => {
      if (this.#injected === "ack_apart") return write.tableId === EFFECTS;
      return write.tableId === TOPIC_OFFSETS_TABLE.tableId && write.rows.some(isPosition);
    };
    if (this.#injected !== "ack_apart" && this.#injected !== "position_ahead") return;
    let isClosed = false;
    const closeStore = store.close.bind(store);
    store.close = () => {
      isClosed = true;
      return closeStore();
    };
    store.apply = (commit) => {
      const parts = commit.writes.flatMap((write) => split(write));
      const first = parts.filter((write) => isFirst(write));
      const rest = parts.filter((write) => !isFirst(write));
      if (first.length === 0 || rest.length === 0) return apply(commit);
      const made = apply({ ...commit, writes: first });
      if (this.#injected === "ack_apart") return apply({ ...commit, writes: rest });
      setImmediate(() => {
        if (!isClosed) apply({ ...commit, writes: rest });
      });
      return made;
    };
  }

  async #step(world: World): Promise<void> {
    const random = this.#random;
    this.#clock.advance(random.below(3));
    const choice = random.below(100);
    if (choice < 35) this.#commit(world);
    else if (choice < 55) await this.#fetch(world);
    else if (choice < 75) await this.#acknowledge(world);
    else if (choice < 83) await settled(random.below(3));
    else if (choice < 90) (await world.topics.holdOffsets(SOURCE))();
    else if (choice < 92) this.#clock.advance(2000);
    else {
      const { tableId } = TOPIC_GROUPS_TABLE;
      const tables = [SOURCE, SOURCE, EFFECTS, tableId, TOPIC_OFFSETS_TABLE.tableId];
      await world.store.flush(random.pick(tables));
    }
  }

  #commit({ store }: World): void {
    const key = `k${this.#random.below(6)}`;
    this.#version += 1;
    const version = this.#version;
    const upTo = store.appliedSeq;
    const found = store.lookup(SOURCE, { owner: 0, key: [key], upTo, columnIds: [1] });
    const operation = found === undefined ? "insert" : "update";
    const rows = [[key, version]];
    const { lastSeq } = store.apply({ writes: [{ tableId: SOURCE, owner: 0, operation, rows }] });
    this.#whenDurable(store, lastSeq, () => this.#durable.push(version));
  }

  #whenDurable(
    store: LocalStore,
    seq: Parameters<LocalStore["durable"]>[0],
    note: () => void,
  ): void {
    const life = this.#life;
    void store.durable(seq).then(
      () => {
        if (life === this.#life) note();
        return undefined;
      },
      (error: unknown) => {
        // Once a process has ended, its store refuses the work still in progress.
        if (!isExpected(error) || life === this.#life) throw error;
        return undefined;
      },
    );
  }

  async #fetch({ groups }: World): Promise<void> {
    const group = this.#random.pick(GROUPS);
    const { messages } = await groups.consume({
      topicId: TOPIC,
      partition: this.#random.below(PARTITIONS),
      group,
      start: { kind: "earliest" },
      limit: this.#random.between(1, 8),
      userId: "ada",
    });
    this.#report.messages += messages.length;
    for (const message of messages) {
      this.#seen.push({ version: versionOf(message), place: placeOf(message) });
      this.#held.push({ group, message });
    }
  }

  async #acknowledge({ groups, store }: World): Promise<void> {
    if (this.#held.length === 0) return;
    const { group, message } = this.#random.pick(this.#held);
    this.#held = this.#held.filter((each) => each.message !== message);
    const { offset, partition } = message;
    await groups.counted(TOPIC);
    const prepared = groups.prepareAck({ topicId: TOPIC, partition, group, offsets: [offset] });
    if (prepared.acknowledgedCount === 0) {
      prepared.abandoned();
      return;
    }
    const name = nameOf(group, message);
    const rows = [[placeOf(message), 1]];
    const effect = { tableId: EFFECTS, owner: 0, operation: "insert", rows } as const;
    this.#asked.push(name);
    const writes = group === "exact" ? [effect, ...prepared.writes] : prepared.writes;
    const { lastSeq } = store.apply({ writes });
    prepared.done();
    this.#whenDurable(store, lastSeq, () => {
      this.#report.acknowledged += 1;
      this.#acked.push(name);
    });
  }

  /** Ends the simulated process, by a crash or by an orderly shutdown. */
  async #end(world: World): Promise<void> {
    this.#held = [];
    this.#waiting = [];
    if (this.#random.chance(0.3)) {
      await close(world);
      this.#life += 1;
      this.#disk = this.#disk.restart();
      this.#manifest = this.#manifest.restart();
      return;
    }
    const { disk, manifest, nowMs } = this.#crashedNow();
    this.#life += 1;
    // The old process continues on its own disk, but no caller waits for it.
    void close(world).catch(() => undefined);
    this.#disk = disk;
    this.#manifest = manifest;
    this.#clock = new ManualClock(nowMs + 1);
  }

  async #compareWaiting(): Promise<string | undefined> {
    for (let state = this.#waiting.shift(); state; state = this.#waiting.shift()) {
      this.#report.states += 1;
      const finding = await this.#compare(state);
      if (finding !== undefined) return finding;
    }
    return undefined;
  }

  async #compare(state: TopicState): Promise<string | undefined> {
    try {
      const world = await this.#open(state, new ManualClock(state.nowMs + 1));
      const finding = await this.#difference(world, state);
      await close(world);
      return finding;
    } catch (error) {
      return `unreadable: ${textOf(error)}`;
    }
  }

  async #difference(world: World, state: TopicState): Promise<string | undefined> {
    const log = world.topics.log(TOPIC);
    if (log === undefined) return "the topic is gone";
    await log.count();
    const places = new Map<number, string>();
    const messages: TopicMessage[] = [];
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const read = await log.read(partition, { from: 0, limit: 10_000 });
      for (const [index, message] of read.messages.entries()) {
        if (message.offset !== index) return `gap: ${placeOf(message)} is message ${index}`;
        const version = versionOf(message);
        if (places.has(version)) return `twice: version ${version} at ${placeOf(message)}`;
        if (version > this.#version) return `invented: version ${version}`;
        places.set(version, placeOf(message));
        messages.push(message);
      }
    }
    for (const version of this.#durable.slice(0, state.durableCount)) {
      if (!places.has(version)) return `lost: version ${version} is not a message`;
    }
    for (const { place, version } of this.#seen.slice(0, state.seenCount)) {
      const now = places.get(version);
      if (now !== place) return `moved: version ${version} was at ${place} and is at ${now}`;
    }
    for (const group of GROUPS) {
      const finding = await this.#groupDifference(world, state, { group, messages });
      if (finding !== undefined) return finding;
    }
    return undefined;
  }

  async #groupDifference(
    { groups, store }: World,
    { ackedCount, askedCount }: TopicState,
    { group, messages }: { group: GroupName; messages: readonly TopicMessage[] },
  ): Promise<string | undefined> {
    const acked = new Set(this.#acked.slice(0, ackedCount));
    const asked = new Set(this.#asked.slice(0, askedCount));
    const come = new Set<string>();
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const start = { kind: "earliest" } as const;
      const place = { topicId: TOPIC, partition, group, start };
      const found = await groups.consume({ ...place, limit: 10_000, userId: "ada" });
      for (const message of found.messages) come.add(nameOf(group, message));
    }
    for (const message of messages) {
      const name = nameOf(group, message);
      const isOpen = come.has(name);
      if (isOpen && acked.has(name)) return `again: ${name} was acknowledged`;
      if (!isOpen && !asked.has(name)) return `skipped: ${name} was not acknowledged`;
      if (group !== "exact") continue;
      const upTo = store.visibleSeq;
      const key = [placeOf(message)];
      const effect = store.lookup(EFFECTS, { owner: 0, key, upTo, columnIds: [1] });
      if (isOpen === (effect !== undefined)) {
        return `torn: ${name} is ${isOpen ? "open, with" : "acknowledged, without"} its effect`;
      }
    }
    return undefined;
  }
}

async function close({ groups, store, topics }: World): Promise<void> {
  await groups.close();
  await topics.close();
  await store.close();
}

/** Splits a write of offsets into two writes: one with the position and one with the pages. */
function split(write: TableWrite): TableWrite[] {
  if (write.tableId !== TOPIC_OFFSETS_TABLE.tableId) return [write];
  const positions = write.rows.filter(isPosition);
  const pages = write.rows.filter((row) => !isPosition(row));
  return [positions, pages].flatMap((rows) => (rows.length === 0 ? [] : [{ ...write, rows }]));
}

/** The position of a topic is stored among its pages, as partition -1. */
function isPosition(row: readonly unknown[]): boolean {
  return Number(row[1]) < 0;
}

function versionOf({ payload }: TopicMessage): number {
  const { c2 } = JSON.parse(payload) as { c2: number };
  return c2;
}

function placeOf({ offset, partition }: TopicMessage): string {
  return `${partition} ${offset}`;
}

function nameOf(group: GroupName, message: TopicMessage): string {
  return `${group} ${placeOf(message)}`;
}
