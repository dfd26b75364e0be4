/**
 * Manages the groups of all topics, and implements the interface that topics offer to SQL and to
 * the server.
 *
 * - A group comes into existence in a partition when a consumer first reads that partition for it.
 *   Its position is made durable before it receives a message, so "latest" still means the same
 *   position after a crash.
 * - When a topic is dropped, its groups end with it; their rows are removed later.
 * - A group stays in memory as long as it has consumers, claims or work in progress. Idle groups
 *   exist only as rows.
 */
import type { OnBug } from "../../base/bugs.ts";
import { type Clock, wallMsAt } from "../../base/clock.ts";
import { Deadlines } from "../../base/deadlines.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import { repeatedly } from "../../base/repeatedly.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type {
  PreparedTopicAck,
  TopicAckRequest,
  TopicConsumeRequest,
  TopicConsumerRow,
  TopicMessages,
  TopicOffsetRow,
  TopicStart,
  TopicState,
} from "../../sql/mod.ts";
import type { Commit } from "../../storage/mod.ts";
import type {
  TopicConsumers,
  TopicFigures,
  TopicLimits,
  TopicLog,
  TopicLogs,
  TopicNack,
  TopicStream,
  TopicStreamRequest,
  TopicStreamSink,
} from "../contract.ts";
import { ConsumerGroup, type GroupDeps } from "./consumer_group.ts";
import { ConsumerStream, type StreamParts } from "./consumer_stream.ts";
import { DeadLetters, type DeadLettersDeps } from "./dead_letters.ts";
import { type GroupConsumer, GroupConsumers } from "./group_consumers.ts";
import {
  type GroupPlace,
  groupWrite,
  type ListedGroup,
  listedGroups,
  removeGroups,
  storedGroup,
} from "./group_row.ts";
import { type PollParts, TopicPoll } from "./topic_poll.ts";

/**
 * The interval at which idle consumers are removed, idle groups are closed, and lags are
 * determined.
 */
const LOOK_MS = 10_000;

/** The maximum number of idle groups stored or closed in one tick. */
const CLOSED_PER_LOOK_MAX = 500;

export interface TopicGroupsOptions extends TopicLimits {
  readonly logs: TopicLogs;
  readonly catalog: Pick<Catalog, "topic" | "topics">;
  readonly store: DeadLettersDeps["store"];
  readonly clock: Clock;
  readonly log: SeldomLog;
  readonly onBug: OnBug;
}

export class TopicGroups implements TopicConsumers {
  readonly #options: TopicGroupsOptions;
  readonly #deps: GroupDeps;
  readonly #open = new Map<string, ConsumerGroup>();
  readonly #opening = new Map<string, Promise<ConsumerGroup>>();
  readonly #consumers: GroupConsumers;
  readonly #deadLetters: DeadLetters;
  readonly #stop: () => void;
  readonly #polls: PollParts;
  readonly #streams: StreamParts;
  #isStopping = false;
  #looking: Promise<void> | undefined;
  /** Whether the groups table may contain groups of dropped topics. */
  #hasDropped = true;
  /** The topics that have groups. */
  readonly #topicIds = new Set<number>();
  /**
   * For each topic that had groups at startup, the ends of its partitions when its first group was
   * opened. Messages before these offsets may have been delivered before startup.
   */
  readonly #restoredEnds = new Map<number, readonly number[] | undefined>();
  /** The number of redeliveries by groups that have since been closed. */
  #closedRedeliveries = 0;

  constructor(options: TopicGroupsOptions) {
    const { clock, log, store, visibilityMs } = options;
    this.#options = options;
    this.#deps = { clock, log, store, visibilityMs };
    this.#consumers = new GroupConsumers(clock);
    this.#polls = { clock, waiting: new Deadlines(clock), isStopping: () => this.#isStopping };
    this.#streams = {
      clock,
      onBug: options.onBug,
      access: this,
      onEnd: (consumer) => this.#consumers.remove(consumer),
    };
    this.#deadLetters = new DeadLetters(options);
    for (const { topicId } of listedGroups(store)) {
      this.#topicIds.add(topicId);
      this.#restoredEnds.set(topicId, undefined);
    }
    this.#stop = repeatedly(clock, LOOK_MS, () => this.#look());
  }

  /**
   * Reads messages without a group, or claims messages for a group. See {@linkcode
   * TopicAccess.consume}.
   */
  async consume(request: TopicConsumeRequest): Promise<TopicMessages> {
    const { group, partition, topicId, userId } = request;
    const log = this.#logOf(topicId);
    if (partition >= log.entry.partitions) return { messages: [], nextOffset: 0, hasMore: false };
    if (group === undefined) return this.#readPlainly(log, request);
    const open = await this.#groupOf({ topicId, partition, group }, request.start);
    const consumer = this.#consumers.ofUser(userId, open);
    // The promise is not awaited, because this function would otherwise stay in memory while the
    // request waits.
    return new TopicPoll(request, { consumer, group: open, parts: this.#polls }).messages;
  }

  async #readPlainly(
    log: TopicLog,
    { limit, partition, start }: TopicConsumeRequest,
  ): Promise<TopicMessages> {
    await log.count();
    const from = await log.offsetAt(partition, start);
    const { messages, upTo } = await log.read(partition, { from, limit });
    return { messages, nextOffset: upTo, hasMore: upTo < log.nextOffset(partition) };
  }

  /**
   * Opens a group, creating its position if it has none yet.
   * @throws {DatabaseError}
   */
  #groupOf(place: GroupPlace, start: TopicStart): Promise<ConsumerGroup> {
    const key = keyOf(place);
    const open = this.#openAt(key);
    if (open !== undefined) return Promise.resolve(open);
    const known = this.#opening.get(key);
    if (known !== undefined) return known;
    const opening = this.#openGroup(place, start).finally(() => this.#opening.delete(key));
    this.#opening.set(key, opening);
    return opening;
  }

  /** Returns a group if it is open, and records that a request has used it. */
  #openAt(key: string): ConsumerGroup | undefined {
    const open = this.#open.get(key);
    if (open !== undefined) open.usedMs = this.#options.clock.monotonicMs();
    return open;
  }

  async #openGroup(place: GroupPlace, start: TopicStart): Promise<ConsumerGroup> {
    const { clock, store } = this.#options;
    const log = this.#logOf(place.topicId);
    await log.count();
    const isNew = storedGroup(store, place) === undefined;
    if (isNew) {
      const committed = await log.offsetAt(place.partition, start);
      this.#logOf(place.topicId);
      const state = { committed, end: committed, acked: [], deliveries: [] };
      const write = groupWrite(place, { isNew: true, nowMs: clock.nowMs(), state });
      const { lastSeq } = store.apply({ writes: [write], usesReserve: true });
      await store.durable(lastSeq);
    }
    return this.#opened(place, { isNew, log: this.#logOf(place.topicId) });
  }

  #opened(place: GroupPlace, options: { isNew: boolean; log: TopicLog }): ConsumerGroup {
    const key = keyOf(place);
    // An acknowledgement may have opened the group in the meantime.
    const known = this.#openAt(key);
    if (known !== undefined) return known;
    const restoredEnd = options.isNew ? 0 : this.#restoredEndOf(place, options.log);
    const group = new ConsumerGroup(place, this.#deps, { ...options, restoredEnd });
    group.burial = this.#deadLetters.burialOf(group);
    this.#open.set(key, group);
    this.#topicIds.add(place.topicId);
    return group;
  }

  #restoredEndOf({ partition, topicId }: GroupPlace, log: TopicLog): number {
    if (!this.#restoredEnds.has(topicId)) return 0;
    const { partitions } = log.entry;
    const ends =
      this.#restoredEnds.get(topicId) ??
      Array.from({ length: partitions }, (_, index) => log.nextOffset(index));
    this.#restoredEnds.set(topicId, ends);
    return ends[partition] ?? 0;
  }

  /** Returns the messages of a topic. @throws {DatabaseError} OBJECT_NOT_FOUND */
  #logOf(topicId: number): TopicLog {
    const log = this.#options.logs.log(topicId);
    if (log !== undefined) return log;
    throw new DatabaseError("OBJECT_NOT_FOUND", "Cannot find the topic: it has been dropped");
  }

  topicIdOf(name: string): number {
    const { catalog } = this.#options;
    const [namespace = "", topic = ""] = name.split(".");
    const found = catalog.topic(namespace, topic);
    if (found !== undefined) return found.topicId;
    const known = catalog.topics().map((each) => `${each.namespace}.${each.name}`);
    const nearest = nearestName(name, known);
    const hint =
      nearest === undefined ? "to list the topics, run SHOW TOPICS" : `did you mean ${nearest}?`;
    throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find topic "${name}"`, { hint });
  }

  async counted(topicId: number): Promise<void> {
    await this.#options.logs.log(topicId)?.count();
  }

  prepareAck(request: TopicAckRequest): PreparedTopicAck {
    return this.#positioned(request).prepareAck(request);
  }

  /** Returns a group that has a position. @throws {DatabaseError} OBJECT_NOT_FOUND */
  #positioned({ group, partition, topicId }: GroupPlace): ConsumerGroup {
    const log = this.#logOf(topicId);
    const place = { topicId, partition, group };
    const open = this.#openAt(keyOf(place));
    if (open !== undefined) return open;
    if (storedGroup(this.#options.store, place) !== undefined) {
      return this.#opened(place, { isNew: false, log });
    }
    throw new DatabaseError(
      "OBJECT_NOT_FOUND",
      `Cannot find group "${group}" in partition ${partition} of topic ` +
        `${log.entry.namespace}.${log.entry.name}: the group has not read from this partition`,
    );
  }

  async ack(request: TopicAckRequest): Promise<PreparedTopicAck> {
    const { store } = this.#options;
    await this.counted(request.topicId);
    const prepared = this.prepareAck(request);
    const { writes } = prepared;
    if (writes.length === 0) {
      prepared.done();
      return prepared;
    }
    let commit: Commit;
    try {
      commit = store.apply({ writes, usesReserve: true });
    } catch (error) {
      prepared.abandoned();
      throw error;
    }
    prepared.done();
    await store.durable(commit.lastSeq);
    return prepared;
  }

  async nack({ delayMs, offsets, ...place }: TopicNack): Promise<void> {
    await this.counted(place.topicId);
    this.#positioned(place).nack(offsets, delayMs);
  }

  async open(request: TopicStreamRequest, sink: TopicStreamSink): Promise<TopicStream> {
    const { group, partition, start, topicId, userId } = request;
    const { partitions } = this.#logOf(topicId).entry;
    const numbers =
      partition === undefined
        ? Array.from({ length: partitions }, (_, index) => index)
        : [partition].filter((number) => number < partitions);
    const groups: ConsumerGroup[] = [];
    const releases: (() => void)[] = [];
    try {
      for (const number of numbers) {
        const open = await this.#groupOf({ topicId, partition: number, group }, start);
        groups.push(open);
        releases.push(open.hold());
      }
      const consumer = this.#consumers.add(userId, groups);
      return new ConsumerStream(request, { consumer, sink, parts: this.#streams });
    } finally {
      for (const release of releases) release();
    }
  }

  states(): readonly TopicState[] {
    return this.#options.logs.states();
  }

  offsets(): readonly TopicOffsetRow[] {
    return listedGroups(this.#options.store).map((listed) => ({
      topicId: listed.topicId,
      partition: listed.partition,
      group: listed.group,
      lastAckedOffset: listed.committed - 1,
      updatedAtMs: listed.updatedAtMs,
    }));
  }

  consumers(): readonly TopicConsumerRow[] {
    const rows: TopicConsumerRow[] = [];
    const reading = new Set<string>();
    for (const consumer of this.#consumers.all()) {
      for (const group of consumer.groups) {
        reading.add(keyOf(group.place));
        rows.push(this.#rowOf(group, consumer));
      }
    }
    for (const listed of listedGroups(this.#options.store)) {
      if (!reading.has(keyOf(listed))) rows.push(...this.#idleRows(listed));
    }
    return rows;
  }

  #rowOf(group: ConsumerGroup, consumer: GroupConsumer): TopicConsumerRow {
    const { clock } = this.#options;
    const { log, place, window } = group;
    return {
      ...place,
      consumerId: consumer.consumerId,
      userId: consumer.userId,
      lagMessages: group.lagMessages,
      lagMs: this.#lagMs(log, place.partition, window.committed),
      claims: window.claimsByConsumer().get(consumer.number) ?? 0,
      redeliveries: window.redeliveries,
      lastSeenAtMs: wallMsAt(clock, consumer.lastSeenMs),
    };
  }

  /** Returns the row of a group that has no active consumer. */
  #idleRows({ committed, updatedAtMs, ...place }: ListedGroup): TopicConsumerRow[] {
    const { partition, topicId } = place;
    const log = this.#options.logs.log(topicId);
    if (log === undefined) return [];
    const open = this.#open.get(keyOf(place));
    return [
      {
        ...place,
        consumerId: undefined,
        userId: undefined,
        lagMessages: open?.lagMessages ?? Math.max(0, log.nextOffset(partition) - committed),
        lagMs: this.#lagMs(log, partition, committed),
        claims: open?.window.claimCount ?? 0,
        redeliveries: open?.window.redeliveries ?? 0,
        lastSeenAtMs: updatedAtMs,
      },
    ];
  }

  #lagMs(log: TopicLog, partition: number, committed: number): number {
    const oldest = Math.max(committed, log.earliestOffset(partition));
    if (oldest >= log.nextOffset(partition)) return 0;
    const committedMs = log.committedMs(partition, oldest);
    return committedMs === undefined ? 0 : Math.max(0, this.#options.clock.nowMs() - committedMs);
  }

  figures(): TopicFigures {
    let lagMessages = 0;
    let claims = 0;
    let redeliveries = this.#closedRedeliveries;
    for (const group of this.#open.values()) {
      lagMessages += group.lagMessages;
      claims += group.window.claimCount;
      redeliveries += group.window.redeliveries;
    }
    for (const { committed, ...place } of listedGroups(this.#options.store)) {
      const log = this.#open.has(keyOf(place)) ? undefined : this.#options.logs.log(place.topicId);
      if (log === undefined) continue;
      lagMessages += Math.max(0, log.nextOffset(place.partition) - committed);
    }
    const { count: consumers } = this.#consumers;
    return { groups: this.#open.size, consumers, claims, lagMessages, redeliveries };
  }

  kill(consumerId: string): boolean {
    const killed = this.#consumers.kill(consumerId);
    if (killed === undefined) return false;
    for (const poll of this.#polls.waiting.items) if (poll.consumer === killed) poll.killed();
    return true;
  }

  topicsChanged(): void {
    const { logs } = this.#options;
    logs.topicsChanged();
    for (const topicId of this.#topicIds) {
      if (logs.log(topicId) !== undefined) continue;
      this.#topicIds.delete(topicId);
      this.#restoredEnds.delete(topicId);
      this.#hasDropped = true;
      this.#deadLetters.topicDropped();
    }
    for (const [key, group] of this.#open) {
      if (logs.log(group.place.topicId) !== undefined) continue;
      this.#open.delete(key);
      group.close();
      this.#consumers.forgetGroup(group);
    }
  }

  holdOffsets(tableId: number): Promise<() => void> {
    return this.#options.logs.holdOffsets(tableId);
  }

  #look(): void {
    if (this.#looking !== undefined || this.#isStopping) return;
    this.#consumers.forgetIdle();
    this.#closeIdle();
    this.#looking = this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
  }

  /** Closes idle groups. When next used, they are read from their rows again. */
  #closeIdle(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const read = new Set([...this.#consumers.all()].flatMap(({ groups }) => groups));
    let left = CLOSED_PER_LOOK_MAX;
    for (const [key, group] of this.#open) {
      if (left === 0) return;
      if (read.has(group) || nowMs - group.usedMs < LOOK_MS || !group.isIdle) continue;
      left -= 1;
      // A group with delivery counts that are not yet durable is closed later.
      if (!group.isStored) group.keepCounts();
      else {
        this.#open.delete(key);
        this.#closedRedeliveries += group.window.redeliveries;
        group.close();
      }
    }
  }

  async #lookNow(): Promise<void> {
    const { log, logs, onBug, store } = this.#options;
    try {
      if (this.#hasDropped) {
        await removeGroups(store, (topicId) => logs.log(topicId) === undefined);
        this.#hasDropped = false;
      }
      await this.#deadLetters.prune();
      // Counting changes regularly keeps the lag of the groups up to date.
      for (const topicId of this.#topicIds) await this.counted(topicId);
    } catch (error) {
      // The error can be ignored, because maintenance runs again later.
      if (!isExpected(error)) onBug(error, "maintaining the groups of topics");
      else log.error("cannot maintain the groups of topics", { error: error.message });
    }
  }

  shutDown(): void {
    this.#isStopping = true;
    for (const poll of this.#polls.waiting.items) poll.wake();
  }

  async close(): Promise<void> {
    this.shutDown();
    this.#stop();
    await this.#looking;
    for (const group of this.#open.values()) group.close();
    this.#open.clear();
  }
}

function keyOf({ group, partition, topicId }: GroupPlace): string {
  return `${topicId} ${partition} ${group}`;
}
