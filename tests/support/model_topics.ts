/**
 * Keeps topic messages in memory, for tests of the statements about topics. A test publishes
 * messages, and observes the requests of the SQL layer. The offsets of a partition count from 0.
 * Each acknowledgement writes a row to a test table, which shows to which commit the
 * acknowledgement belongs.
 */
import { DatabaseError } from "../../src/base/errors.ts";
import type { PreparedTopicAck, TopicAccess, TopicAckRequest } from "../../src/sql/mod.ts";

type Message = Awaited<ReturnType<TopicAccess["consume"]>>["messages"][number];

export class ModelTopics implements TopicAccess {
  /** The ids of the tables whose offsets have been held, in order. */
  readonly held: number[] = [];
  readonly released: number[] = [];
  /** The number of calls to `topicsChanged`. */
  changes = 0;
  /**
   * The number of acknowledgements that have been prepared but neither committed nor abandoned.
   */
  openAcks = 0;
  /** Called while offsets are being held. */
  whileHolding: () => Promise<void> = async () => undefined;
  /** Returns the writes to commit along with an acknowledgement. */
  writesOf: (request: TopicAckRequest) => PreparedTopicAck["writes"] = () => [];
  /** Called when an acknowledgement has taken effect. */
  onDone: () => void = () => undefined;
  /** Whether new acknowledgements are told that their topic has been dropped. */
  isDropped = false;
  /** Whether new acknowledgements fail because their topic counts as dropped. */
  whileConsuming: (signal: AbortSignal | undefined) => Promise<void> = async () => undefined;
  readonly #messages = new Map<string, Message[]>();
  readonly #acked = new Map<string, Set<number>>();
  readonly #consumers = new Map<string, string>();

  publish(topicId: number, message: Partial<Message> = {}): void {
    const { partition = 0 } = message;
    const list = this.#list(topicId, partition);
    list.push({
      partition,
      offset: list.length,
      key: String(list.length),
      payload: "{}",
      timestampMs: 1000 + list.length,
      owner: 0,
      op: "Insert",
      deliveries: 1,
      ...message,
    });
  }

  isAcked({ group, offset, topicId }: { topicId: number; group: string; offset: number }): boolean {
    return this.#ackedOf({ topicId, group, partition: 0 }).has(offset);
  }

  async consume({
    group,
    limit,
    partition,
    signal,
    start,
    topicId,
    userId,
  }: Parameters<TopicAccess["consume"]>[0]): ReturnType<TopicAccess["consume"]> {
    await this.whileConsuming(signal);
    const list = this.#list(topicId, partition);
    const acked = group === undefined ? new Set() : this.#ackedOf({ topicId, group, partition });
    if (group !== undefined) this.#consumers.set(`${topicId} ${group}`, userId);
    const from = start.kind === "offset" ? start.offset : start.kind === "earliest" ? 0 : Infinity;
    const ready = list.filter(({ offset }) => offset >= from && !acked.has(offset));
    const messages = ready.slice(0, limit);
    const nextOffset = (messages.at(-1)?.offset ?? list.length - 1) + 1;
    return { messages, nextOffset, hasMore: ready.length > limit };
  }

  async counted(): Promise<void> {}

  prepareAck(request: TopicAckRequest): PreparedTopicAck {
    const { offsets, partition, topicId, upTo } = request;
    if (this.isDropped) throw new DatabaseError("OBJECT_NOT_FOUND", "Cannot find the topic");
    const list = this.#list(topicId, partition);
    const wanted = offsets ?? Array.from({ length: (upTo ?? 0) + 1 }, (_, offset) => offset);
    if ((wanted.at(-1) ?? 0) >= list.length) {
      throw new DatabaseError("VALUE_OUT_OF_RANGE", "Cannot acknowledge beyond the end");
    }
    const acked = this.#ackedOf(request);
    const after = new Set([...acked, ...wanted]);
    let committedOffset = 0;
    while (after.has(committedOffset)) committedOffset += 1;
    this.openAcks += 1;
    return {
      writes: this.writesOf(request),
      committedOffset,
      acknowledgedCount: after.size - acked.size,
      done: () => {
        this.openAcks -= 1;
        for (const offset of wanted) acked.add(offset);
        this.onDone();
      },
      abandoned: () => {
        this.openAcks -= 1;
      },
    };
  }

  states(): ReturnType<TopicAccess["states"]> {
    const ids = [...this.#messages.keys()].map((key) => Number(key.split(" ")[0]));
    return [...new Set(ids)].map((topicId) => ({
      topicId,
      messages: this.#list(topicId, 0).length,
      bytes: 20,
      countedSeq: 5,
      heldVersions: 3,
      heldBytes: 300,
      faults: ["2 messages of table app.gone cannot be read", "it was dropped"],
    }));
  }

  offsets(): ReturnType<TopicAccess["offsets"]> {
    return [...this.#acked].map(([key, acked]) => {
      const [topicId, partition, group = ""] = key.split(" ");
      const lastAckedOffset = Math.max(-1, ...acked);
      return {
        topicId: Number(topicId),
        partition: Number(partition),
        group,
        lastAckedOffset,
        updatedAtMs: 7000,
      };
    });
  }

  consumers(): ReturnType<TopicAccess["consumers"]> {
    return [...this.#consumers].map(([key, userId]) => {
      const [topicId, group = ""] = key.split(" ");
      return {
        consumerId: `C${group}`,
        topicId: Number(topicId),
        group,
        partition: 0,
        userId,
        lagMessages: 4,
        lagMs: 40,
        claims: 2,
        redeliveries: 1,
        lastSeenAtMs: 9000,
      };
    });
  }

  kill(consumerId: string): boolean {
    const key = [...this.#consumers.keys()].find((each) =>
      each.endsWith(` ${consumerId.slice(1)}`),
    );
    return key !== undefined && this.#consumers.delete(key);
  }

  topicsChanged(): void {
    this.changes += 1;
  }

  async holdOffsets(tableId: number): Promise<() => void> {
    this.held.push(tableId);
    await this.whileHolding();
    return () => this.released.push(tableId);
  }

  #list(topicId: number, partition: number): Message[] {
    const key = `${topicId} ${partition}`;
    const list = this.#messages.get(key) ?? [];
    this.#messages.set(key, list);
    return list;
  }

  #ackedOf({ group, partition, topicId }: Omit<TopicAckRequest, "offsets" | "upTo">): Set<number> {
    const key = `${topicId} ${partition} ${group}`;
    const acked = this.#acked.get(key) ?? new Set();
    this.#acked.set(key, acked);
    return acked;
  }
}
