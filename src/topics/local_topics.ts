/**
 * Manages the topics of an open database: finds the topics whose source tables have changed,
 * retains the history that topics need, discards old messages, and removes the remains of dropped
 * topics.
 *
 * - A table retains its history above the lowest stored floor of its topics. The stored floor is
 *   therefore raised first. Only then is the table's retained history reduced.
 * - Each commit costs a lookup of the tables that it changed. The changes for a topic are counted
 *   on request, before their history may be removed, and every few minutes, which keeps the
 *   topic's size known.
 */
import type { OnBug } from "../base/bugs.ts";
import { isExpected } from "../base/errors.ts";
import { repeatedly } from "../base/repeatedly.ts";
import type { Seq } from "../base/seq.ts";
import type { TopicEntry } from "../catalog/mod.ts";
import type { TopicState } from "../sql/mod.ts";
import type { ChangedPartition, HeldHistory } from "../storage/mod.ts";
import type { TopicLog, TopicLogs } from "./contract.ts";
import { removeStored, storedTopicIds } from "./offset_index.ts";
import { agedFloor, isFloorDue, sizeFloor } from "./retention.ts";
import { LocalTopicLog, type TopicDeps } from "./topic_log.ts";

/** The interval at which topics are checked for expired messages. */
const LOOK_MS = 10_000;

/** After this time, the changes for a topic are counted even if it has no readers. */
const UNCOUNTED_MS_MAX = 600_000;

export class LocalTopics implements TopicLogs {
  readonly #deps: TopicDeps;
  readonly #onBug: OnBug;
  readonly #logs = new Map<number, LocalTopicLog>();
  readonly #byTable = new Map<number, LocalTopicLog[]>();
  readonly #stop: () => void;
  /** Resolves when the last check for expired messages has ended. */
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
  /** Whether the offsets table may contain rows of dropped topics. */
  #hasDropped = true;
  #isClosed = false;

  constructor(deps: TopicDeps, onBug: OnBug) {
    this.#deps = deps;
    this.#onBug = onBug;
    this.topicsChanged();
    this.#stop = repeatedly(deps.clock, LOOK_MS, () => this.look());
    this.look();
  }

  log(topicId: number): TopicLog | undefined {
    return this.#logs.get(topicId);
  }

  /** Called in the tick in which changes to these partitions have become visible. */
  noteChanges(changed: readonly ChangedPartition[]): void {
    if (this.#byTable.size === 0) return;
    let before = -1;
    for (const { tableId } of changed) {
      // Skips consecutive partitions of the same table, because most commits change only one
      // table.
      if (tableId === before) continue;
      before = tableId;
      const logs = this.#byTable.get(tableId);
      if (logs !== undefined) for (const log of logs) log.noteChange();
    }
  }

  topicsChanged(): void {
    const entries = this.#deps.catalog.topics();
    const topicIds = new Set(entries.map(({ topicId }) => topicId));
    for (const [topicId, log] of this.#logs) {
      if (topicIds.has(topicId)) continue;
      this.#logs.delete(topicId);
      this.#hasDropped = true;
      log.close("drop");
    }
    for (const entry of entries) {
      const log = this.#logs.get(entry.topicId);
      if (log === undefined) this.#logs.set(entry.topicId, new LocalTopicLog(entry, this.#deps));
      else if (log.entry !== entry) log.redefine(entry);
    }
    const tableIds = [...this.#byTable.keys()];
    this.#byTable.clear();
    for (const log of this.#logs.values()) {
      for (const tableId of tablesOf(log.entry)) {
        const logs = this.#byTable.get(tableId) ?? [];
        logs.push(log);
        this.#byTable.set(tableId, logs);
      }
    }
    for (const tableId of new Set([...tableIds, ...this.#byTable.keys()])) this.#hold(tableId);
  }

  async holdOffsets(tableId: number): Promise<() => void> {
    const releases: (() => void)[] = [];
    const release = (): void => {
      for (const each of releases.splice(0)) each();
    };
    try {
      for (const log of this.#byTable.get(tableId) ?? []) releases.push(await log.hold());
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  states(): readonly TopicState[] {
    return this.#deps.catalog.topics().flatMap((entry) => {
      const log = this.#logs.get(entry.topicId);
      return log === undefined ? [] : [this.#stateOf(log)];
    });
  }

  #stateOf({ entry, faults, index }: LocalTopicLog): TopicState {
    let messages = 0;
    let bytes = 0;
    for (let partition = 0; partition < entry.partitions; partition += 1) {
      messages += index.nextOffset(partition) - index.earliestOffset(partition);
    }
    for (const { payloadBytes } of index.pages()) bytes += payloadBytes;
    let heldVersions = 0;
    let heldBytes = 0;
    for (const tableId of tablesOf(entry)) {
      const held = this.#heldOf(tableId);
      heldVersions += held.versions;
      heldBytes += held.bytes;
    }
    const figures = { messages, bytes: Math.round(bytes), countedSeq: index.countedSeq };
    return { topicId: entry.topicId, ...figures, heldVersions, heldBytes, faults };
  }

  #heldOf(tableId: number): HeldHistory {
    const { catalog, store } = this.#deps;
    if (catalog.tableById(tableId) === undefined) return { versions: 0, bytes: 0 };
    const steps = store.heldHistory(tableId);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  /** Starts discarding expired messages unless that is already in progress. */
  look(): void {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    this.#looking = this.#look().finally(() => {
      this.#isLooking = false;
    });
  }

  /** Resolves when the last check for expired messages has ended. */
  async looked(): Promise<void> {
    await this.#looking;
  }

  async #look(): Promise<void> {
    await this.#attempt("remove the offsets of dropped topics", () => this.#removeDropped());
    for (const log of this.#logs.values()) {
      if (this.#isClosed) return;
      await this.#attempt("discard old messages of a topic", () => this.#retain(log));
    }
  }

  async #removeDropped(): Promise<void> {
    if (!this.#hasDropped) return;
    this.#hasDropped = false;
    for (const topicId of storedTopicIds(this.#deps.store)) {
      if (this.#logs.has(topicId)) continue;
      try {
        await removeStored(this.#deps.store, topicId);
      } catch (error) {
        this.#hasDropped = true;
        throw error;
      }
    }
  }

  async #retain(log: LocalTopicLog): Promise<void> {
    const { clock, store } = this.#deps;
    const from = log.heldSeq;
    const aged = agedFloor(log.entry, store);
    const isDue = isFloorDue(log.entry, { from, to: aged }, store);
    const isLong = log.isBehind && clock.monotonicMs() - log.countedAtMs >= UNCOUNTED_MS_MAX;
    if (isDue || isLong) await log.count();
    if (!isDue && !log.isLoaded) return;
    if (!this.#logs.has(log.entry.topicId)) return;
    const { index } = log;
    const floor = Math.max(isDue ? aged : 0, sizeFloor(log.entry, index));
    index.raiseFloor(Math.min(floor, index.countedSeq));
    if (index.floorSeq > from) {
      await log.store({ usesReserve: false });
      this.#forgetSources(log);
      for (const tableId of tablesOf(log.entry)) this.#hold(tableId);
    }
  }

  /** Removes a dropped source from a topic once the topic keeps none of the source's messages. */
  #forgetSources(log: LocalTopicLog): void {
    const { entry, index } = log;
    const sources = entry.sources.filter(({ toSeq }) => (toSeq ?? Infinity) > index.floorSeq);
    if (sources.length === entry.sources.length) return;
    this.#deps.catalog.changeTopic({ ...entry, sources }, this.#deps.store.issueSeq());
    this.topicsChanged();
  }

  #hold(tableId: number): void {
    const { catalog, store } = this.#deps;
    if (catalog.tableById(tableId) === undefined) return;
    let heldSeq = Infinity;
    for (const log of this.#byTable.get(tableId) ?? []) {
      heldSeq = Math.min(heldSeq, Math.max(log.heldSeq, firstSeqOf(log.entry, tableId)));
    }
    store.holdHistory(tableId, heldSeq === Infinity ? undefined : (heldSeq as Seq));
  }

  /** Runs a recurring task. Its failure does not stop other tasks. */
  async #attempt(task: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // The error can be ignored, because the task runs again later.
      if (!isExpected(error)) this.#onBug(error, `the attempt to ${task}`);
      else if (!this.#isClosed) {
        this.#deps.log.error(`cannot ${task}; the server will try again`, { error: error.message });
      }
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stop();
    for (const log of this.#logs.values()) log.close("stop");
    await this.#looking;
    for (const log of this.#logs.values()) if (log.isLoaded) await log.storeOrLog();
  }
}

function tablesOf({ sources }: TopicEntry): ReadonlySet<number> {
  return new Set(sources.map(({ tableId }) => tableId));
}

/** Returns a seq at or below which no change to the table is a message of the topic. */
function firstSeqOf({ sources }: TopicEntry, tableId: number): number {
  let first = Infinity;
  for (const source of sources) {
    if (source.tableId === tableId) first = Math.min(first, source.fromSeq);
  }
  return first;
}
