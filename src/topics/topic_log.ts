/**
 * Implements one topic: counts the changes to its source tables, and reads them as messages.
 *
 *              ┌──────────────────────── a table changed ─────────────────────┐
 *              ▼                                                              │
 *     behind ──count──► counting ──nothing left──► complete ──────────────────┘
 *                          ▲
 *         held, while the definition of a source table changes: count waits
 *
 * - Changes are counted under the definition in force. Counted messages are therefore stored
 *   before the definition of a table changes, and are never counted again under the new one.
 * - After a failure, the index is at the last change that was counted completely.
 */

import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { counted } from "../base/counted.ts";
import { DatabaseError } from "../base/errors.ts";
import { pauser } from "../base/pauser.ts";
import type { SeldomLog } from "../base/seldom_log.ts";
import { WorkLine } from "../base/work_line.ts";
import type { Catalog, TopicEntry } from "../catalog/mod.ts";
import type { SqlEngine, TopicMessage, TopicStart } from "../sql/mod.ts";
import type { HistoryStore, Store } from "../storage/mod.ts";
import { ChangeMerge } from "./change_merge.ts";
import type { ReadMessages, ReadOptions, TopicLog } from "./contract.ts";
import { MessageReader, type OwnerNames } from "./message_reader.ts";
import { OffsetIndex, storedPosition } from "./offset_index.ts";
import type { OffsetPage } from "./offset_page.ts";
import { TableSources } from "./table_sources.ts";

/**
 * A topic stores its counted messages once it has this many unstored ones, or 256 for each of its
 * partitions, whichever is more.
 */
const UNSTORED_MAX = 16_384;
const UNSTORED_PER_PARTITION_MAX = 256;

/**
 * Counting stops once the number of unstored messages reaches this multiple of the threshold for
 * storing them, because unstored messages occupy memory.
 */
const UNSTORED_TIMES_MAX = 16;

/** The total payload size in bytes at which a read ends. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** How many messages are read before other work may run. */
const STEP_MESSAGES = 128;

/** The parts of the database that topics use. */
export interface TopicDeps {
  readonly catalog: OwnerNames & Pick<Catalog, "changeTopic" | "tableById" | "topics">;
  readonly store: Store & HistoryStore;
  readonly sql: Pick<SqlEngine, "planLive">;
  readonly clock: Clock;
  readonly log: SeldomLog;
}

export class LocalTopicLog implements TopicLog {
  entry: TopicEntry;
  /** Whether source tables have changed since changes were last counted. */
  isBehind = true;
  /** When changes were last counted, on the monotonic clock. */
  countedAtMs: number;
  newsCount = 0;
  readonly #deps: TopicDeps;
  #index: OffsetIndex | undefined;
  #reader: MessageReader;
  #counting: Promise<void> | undefined;
  readonly #storing = new WorkLine();
  readonly #holds = new Set<Promise<void>>();
  readonly #listeners = new Set<() => void>();
  #isNewsDue = false;
  /** The reason why the topic can no longer be read; undefined while it is open. */
  #closedBy: "drop" | "stop" | undefined;
  /** Faults that concern whole source tables; `#rowFault` concerns a single row. */
  #tableFaults: readonly string[] = [];
  #rowFault: string | undefined;

  constructor(entry: TopicEntry, deps: TopicDeps) {
    this.entry = entry;
    this.#deps = deps;
    this.#reader = new MessageReader(entry, deps);
    this.countedAtMs = deps.clock.monotonicMs();
  }

  /** The index of counted offsets, loaded when first used. */
  get index(): OffsetIndex {
    if (this.#index === undefined) {
      const index = new OffsetIndex(this.entry, this.#deps.store);
      index.bytesOfPage = (page) => this.#bytesOf(page);
      this.#index = index;
    }
    return this.#index;
  }

  /** The seq above which tables must retain replaced versions. */
  get heldSeq(): number {
    const stored = this.#index ?? storedPosition(this.#deps.store, this.entry.topicId);
    const floorSeq = stored instanceof OffsetIndex ? stored.storedFloorSeq : stored?.floorSeq;
    return floorSeq ?? this.entry.createdSeq;
  }

  /** Whether the topic's offsets are in memory. */
  get isLoaded(): boolean {
    return this.#index !== undefined;
  }

  get faults(): readonly string[] {
    const { lostCount } = this.#reader;
    return [
      ...this.#tableFaults,
      ...(this.#rowFault === undefined ? [] : [this.#rowFault]),
      ...(lostCount === 0
        ? []
        : [`${counted(lostCount, "message")} omitted, because their rows no longer exist`]),
    ];
  }

  get countedSeq(): number {
    return this.index.countedSeq;
  }

  earliestOffset(partition: number): number {
    return this.index.earliestOffset(partition);
  }

  nextOffset(partition: number): number {
    return this.index.nextOffset(partition);
  }

  /** Continues with a changed definition of the same topic. */
  redefine(entry: TopicEntry): void {
    assert(
      entry.topicId === this.entry.topicId,
      "topic log: new definition belongs to a different topic",
    );
    this.entry = entry;
    this.#reader = new MessageReader(entry, this.#deps, this.#reader.lostCount);
    this.isBehind = true;
  }

  /**
   * Closes the log because the topic has been dropped or the database is closing. All waits and
   * reads end.
   */
  close(cause: "drop" | "stop"): void {
    this.#closedBy ??= cause;
    this.newsCount += 1;
    this.#callListeners();
  }

  async count(): Promise<void> {
    const { store } = this.#deps;
    const upTo = store.visibleSeq;
    this.#requireOpen();
    while (this.countedSeq < upTo) {
      const [hold] = this.#holds;
      if (this.#counting === undefined && hold === undefined) {
        this.#counting = this.#countOn().finally(() => {
          this.#counting = undefined;
        });
      }
      await (this.#counting ?? hold);
      this.#requireOpen();
    }
    this.#giveUpCleared();
  }

  /** Discards cleared messages in memory at once. The new floor is stored later. */
  #giveUpCleared(): void {
    const { index } = this;
    index.raiseFloor(Math.min(this.entry.clearedSeq, index.countedSeq));
  }

  async #countOn(): Promise<void> {
    const { clock, store } = this.#deps;
    const { index } = this;
    const upTo = store.visibleSeq;
    this.countedAtMs = clock.monotonicMs();
    if (!this.isBehind) {
      index.countedSeq = upTo;
      return;
    }
    // Changes made from now on mark the topic as behind again.
    this.isBehind = false;
    try {
      await this.#countTo(index, upTo);
    } catch (error) {
      this.isBehind = true;
      throw error;
    }
  }

  /**
   * Stores counted messages once there are enough of them. Throws if too many cannot be stored.
   */
  async #storeIfMany({ unstoredCount }: OffsetIndex): Promise<void> {
    const { partitions } = this.entry;
    const dueCount = Math.max(UNSTORED_MAX, UNSTORED_PER_PARTITION_MAX * partitions);
    if (unstoredCount < dueCount) return;
    if (unstoredCount < UNSTORED_TIMES_MAX * dueCount) await this.storeOrLog();
    else await this.store({ usesReserve: false });
  }

  async #countTo(index: OffsetIndex, upTo: number): Promise<void> {
    const tables = this.#sources();
    const merge = new ChangeMerge(this.#deps.store, tables, { after: index.countedSeq, upTo });
    const pause = pauser(this.#deps.clock);
    try {
      for (;;) {
        const seq = merge.step((message) => index.push(message.partition, message));
        if (seq === undefined) break;
        if (seq > 0) index.countedSeq = seq;
        await this.#storeIfMany(index);
        await pause();
        if (this.#closedBy !== undefined || index !== this.#index) return;
      }
      index.countedSeq = upTo;
    } finally {
      merge.close();
    }
  }

  #sources(): readonly TableSources[] {
    const { entry } = this;
    const tables: TableSources[] = [];
    const faults: string[] = [];
    for (const tableId of new Set(entry.sources.map((source) => source.tableId))) {
      const sources = TableSources.of(entry, tableId, this.#deps);
      if (sources === undefined) faults.push(`the table ${tableId} of a source has been dropped`);
      else {
        sources.onFault = (fault) => {
          this.#rowFault = fault;
        };
        tables.push(sources);
        faults.push(...sources.faults);
      }
    }
    this.#tableFaults = faults;
    return tables;
  }

  offsetAt(partition: number, start: TopicStart): Promise<number> {
    return Promise.resolve(this.#offsetAt(partition, start));
  }

  #offsetAt(partition: number, start: TopicStart): number {
    const { index } = this;
    const next = index.nextOffset(partition);
    const earliest = index.earliestOffset(partition);
    switch (start.kind) {
      case "earliest":
        return earliest;
      case "latest":
        return next;
      case "offset":
        return Math.max(earliest, Math.min(start.offset, next));
      case "time": {
        const seq = this.#deps.store.lastSeqUpTo(start.unixMs - 1);
        const page = index.pageAbove(partition, seq);
        if (page === undefined) return next;
        const above = index.contentsOf(partition, page).firstAbove(seq);
        return Math.max(earliest, page.firstOffset + above);
      }
    }
  }

  committedMs(partition: number, offset: number): number | undefined {
    const page = this.#keptPage(partition, offset);
    const seq =
      page === undefined
        ? undefined
        : this.index.contentsOf(partition, page).seqs[offset - page.firstOffset];
    return seq === undefined ? undefined : this.#deps.store.commitMs(seq);
  }

  async read(
    partition: number,
    { bytesMax = READ_BYTES_MAX, from, limit }: ReadOptions,
  ): Promise<ReadMessages> {
    assert(limit > 0, "topic log: read limit is zero");
    const pause = pauser(this.#deps.clock);
    const messages: TopicMessage[] = [];
    let bytes = 0;
    let upTo = Math.max(from, this.earliestOffset(partition));
    while (messages.length < limit && bytes < bytesMax) {
      this.#requireOpen();
      const page = this.#keptPage(partition, upTo);
      if (page === undefined) break;
      const contents = this.index.contentsOf(partition, page);
      const start = upTo - page.firstOffset;
      const end = Math.min(page.count, start + Math.min(limit - messages.length, STEP_MESSAGES));
      const indexes = Uint32Array.from({ length: end - start }, (_, at) => start + at);
      const place = { partition, firstOffset: page.firstOffset, indexes };
      upTo = page.firstOffset + end;
      for (const message of this.#reader.read(contents, place)) {
        if (bytes >= bytesMax) {
          upTo = message.offset;
          break;
        }
        messages.push(message);
        bytes += message.payload.length;
      }
      await pause();
    }
    return { messages, upTo };
  }

  async readOffsets(
    partition: number,
    offsets: readonly number[],
  ): Promise<readonly TopicMessage[]> {
    const pause = pauser(this.#deps.clock);
    const messages: TopicMessage[] = [];
    let at = 0;
    while (at < offsets.length) {
      this.#requireOpen();
      const page = this.#keptPage(partition, offsets[at] ?? 0);
      if (page === undefined) {
        at += 1;
        continue;
      }
      const indexes: number[] = [];
      const end = page.firstOffset + page.count;
      for (; at < offsets.length && indexes.length < STEP_MESSAGES; at += 1) {
        const offset = offsets[at] ?? 0;
        if (offset >= end) break;
        indexes.push(offset - page.firstOffset);
      }
      const place = {
        partition,
        firstOffset: page.firstOffset,
        indexes: Uint32Array.from(indexes),
      };
      messages.push(...this.#reader.read(this.index.contentsOf(partition, page), place));
      await pause();
    }
    return messages;
  }

  /**
   * Returns the page that contains an offset; undefined if the offset has not been counted or its
   * message is no longer kept.
   */
  #keptPage(partition: number, offset: number): OffsetPage | undefined {
    if (offset < this.earliestOffset(partition)) return undefined;
    return this.index.pageAt(partition, offset);
  }

  onNews(callback: () => void): () => void {
    const listener = (): void => callback();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called in the tick in which a source table has changed. */
  noteChange(): void {
    this.isBehind = true;
    this.newsCount += 1;
    if (this.#listeners.size === 0 || this.#isNewsDue) return;
    this.#isNewsDue = true;
    queueMicrotask(() => this.#callListeners());
  }

  #callListeners(): void {
    this.#isNewsDue = false;
    for (const listener of this.#listeners) listener();
  }

  /**
   * Makes all assigned offsets durable, and prevents counting until the returned function is
   * called.
   *
   * @throws {DatabaseError} If the offsets cannot be stored.
   */
  async hold(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#holds.add(promise);
    const release = (): void => {
      this.#holds.delete(promise);
      this.isBehind = true;
      resolve();
    };
    try {
      await this.#counting?.catch(() => undefined);
      if (this.isLoaded) await this.store({ usesReserve: true });
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  /** Stores the counted messages that are not yet stored, one commit at a time. */
  store(options: { readonly usesReserve: boolean }): Promise<void> {
    return this.#storing.run(() => this.#store(options));
  }

  /** Makes counted messages durable. @throws {DatabaseError} */
  async #store(options: { readonly usesReserve: boolean }): Promise<void> {
    const { index } = this;
    if (index.unstoredCount === 0 && index.storedCountedSeq === index.countedSeq) return;
    const { appliedSeq } = this.#deps.store;
    try {
      await index.store(options);
    } catch (error) {
      // Some writes may have been applied. The index is therefore loaded from disk again, and the
      // remaining changes are counted again.
      if (this.#deps.store.appliedSeq !== appliedSeq && this.#index === index) this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#index = undefined;
    this.isBehind = true;
  }

  /** Stores counted messages. A failure is logged, and storing them is attempted again later. */
  async storeOrLog(): Promise<void> {
    try {
      await this.store({ usesReserve: false });
    } catch (error) {
      // The error can be ignored: after a restart, messages that were not stored are counted
      // again, with the same result.
      if (!(error instanceof DatabaseError)) throw error;
      const { name, namespace } = this.entry;
      const fields = { topic: `${namespace}.${name}`, error: error.message };
      this.#deps.log.error(
        "cannot store the offsets of a topic; the server will try again",
        fields,
      );
    }
  }

  /** Estimates a page's payload size in bytes from its last message. */
  #bytesOf(page: OffsetPage): number {
    const { contents, count } = page;
    if (contents === undefined || count === 0) return page.payloadBytes;
    return count * this.#reader.sizeOf(contents, count - 1);
  }

  /**
   * Checks that the topic can still be read.
   * @throws {DatabaseError} OBJECT_NOT_FOUND, SHUTTING_DOWN
   */
  #requireOpen(): void {
    if (this.#closedBy === undefined) return;
    const what = `Cannot read topic ${this.entry.namespace}.${this.entry.name}`;
    throw this.#closedBy === "drop"
      ? new DatabaseError("OBJECT_NOT_FOUND", `${what}: the topic has been dropped`)
      : new DatabaseError("SHUTTING_DOWN", `${what}: the server is shutting down`);
  }
}
