/**
 * Implements a consumer to which messages are pushed as its credit allows.
 *
 *     open ──drain──► draining ──close──► closed
 *       └────────────────close, KILL, topic dropped, failure────────────► closed
 *
 *     credit, room in the socket, a partition that may have messages: fetch ──► sink
 *
 * Each message uses one credit. Messages still unacknowledged when the stream closes go to other
 * consumers immediately, because the client that claimed them has disconnected.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import type { PreparedTopicAck, TopicAckRequest } from "../../sql/mod.ts";
import type { TopicNack, TopicStream, TopicStreamRequest, TopicStreamSink } from "../contract.ts";
import type { ConsumerGroup, GroupWaiter } from "./consumer_group.ts";
import type { GroupConsumer, KilledStream } from "./group_consumers.ts";

/**
 * The maximum number of messages per fetch, so that one busy partition does not keep a stream from
 * serving its other partitions.
 */
const FETCH_MESSAGES_MAX = 1000;

/** The dependencies that all streams share. */
export interface StreamParts {
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly access: {
    ack(request: TopicAckRequest): Promise<PreparedTopicAck>;
    nack(request: TopicNack): Promise<void>;
  };
  /** Called once per stream, when it closes. */
  readonly onEnd: (consumer: GroupConsumer) => void;
}

/** A partition that a stream reads from. */
class StreamPartition implements GroupWaiter {
  readonly group: ConsumerGroup;
  seenEvent: number;
  /** Whether the partition may have messages for the stream. */
  isReady = true;
  readonly #stream: ConsumerStream;

  constructor(group: ConsumerGroup, stream: ConsumerStream) {
    this.group = group;
    this.seenEvent = group.event;
    this.#stream = stream;
  }

  wake(): void {
    this.isReady = true;
    this.#stream.woken();
  }
}

export class ConsumerStream implements KilledStream, TopicStream {
  readonly #topicId: number;
  readonly #group: string;
  readonly #isOrdered: boolean;
  readonly #sink: TopicStreamSink;
  readonly #consumer: GroupConsumer;
  readonly #parts: StreamParts;
  /** The partitions, in the order in which they are to be served. */
  readonly #partitions: StreamPartition[];
  #credit: number;
  #hasRoom = true;
  #isPumping = false;
  #state: "open" | "draining" | "closed" = "open";

  constructor(
    { credit, group, isOrdered, topicId }: TopicStreamRequest,
    {
      consumer,
      parts,
      sink,
    }: { consumer: GroupConsumer; parts: StreamParts; sink: TopicStreamSink },
  ) {
    this.#topicId = topicId;
    this.#group = group;
    this.#isOrdered = isOrdered;
    this.#sink = sink;
    this.#consumer = consumer;
    this.#parts = parts;
    this.#credit = credit;
    this.#partitions = consumer.groups.map((each) => new StreamPartition(each, this));
    consumer.stream = this;
  }

  start(): void {
    this.#pump();
  }

  addCredit(count: number): void {
    this.#seen();
    this.#credit += count;
    this.#pump();
  }

  get credit(): number {
    return this.#credit;
  }

  drained(): void {
    this.#hasRoom = true;
    this.#pump();
  }

  drain(): void {
    if (this.#state === "open") this.#state = "draining";
    this.#leaveAll();
  }

  ack(request: Pick<TopicAckRequest, "offsets" | "partition" | "upTo">): Promise<PreparedTopicAck> {
    this.#seen();
    const place = { group: this.#group, topicId: this.#topicId };
    return this.#parts.access.ack({ ...request, ...place });
  }

  nack(request: Pick<TopicNack, "delayMs" | "offsets" | "partition">): Promise<void> {
    this.#seen();
    const place = { group: this.#group, topicId: this.#topicId };
    return this.#parts.access.nack({ ...request, ...place });
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#leaveAll();
    this.#parts.onEnd(this.#consumer);
  }

  /** Called when a partition may have messages. */
  woken(): void {
    if (this.#canFetch) this.#pump();
    // Deferred, because direct calls through many consumers without credit could overflow the
    // stack.
    else queueMicrotask(() => this.#handOn());
  }

  killed(): void {
    this.#fail(new DatabaseError("CANCELLED", "The consumer was killed"));
  }

  #seen(): void {
    this.#consumer.lastSeenMs = this.#parts.clock.monotonicMs();
  }

  #leaveAll(): void {
    for (const partition of this.#partitions) {
      // If the partition was woken but has not fetched yet, another waiter is woken in its place.
      if (partition.isReady) partition.group.leave(partition);
      else partition.group.forget(partition);
    }
  }

  #fail(error: DatabaseError): void {
    if (this.#state === "closed") return;
    this.close();
    this.#sink.ended(error);
  }

  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.#pumpOn()
      .catch((error: unknown) => {
        if (!isExpected(error)) this.#parts.onBug(error, "a consumer of a topic");
        this.#fail(failureOf(error));
      })
      .finally(() => {
        this.#isPumping = false;
        if (!this.#canFetch) this.#handOn();
        else if (this.#next() !== undefined) this.#pump();
      });
  }

  /** Passes events that this consumer cannot use on to other consumers. */
  #handOn(): void {
    for (const each of this.#partitions) if (each.isReady) each.group.leave(each);
  }

  get #canFetch(): boolean {
    return this.#state === "open" && this.#credit > 0 && this.#hasRoom;
  }

  #next(): StreamPartition | undefined {
    return this.#partitions.find(({ isReady }) => isReady);
  }

  async #pumpOn(): Promise<void> {
    while (this.#canFetch) {
      const partition = this.#next();
      if (partition === undefined) return;
      await this.#fetch(partition);
    }
  }

  async #fetch(partition: StreamPartition): Promise<void> {
    const { group } = partition;
    const isOrdered = this.#isOrdered;
    const limit = Math.min(this.#credit, FETCH_MESSAGES_MAX);
    partition.seenEvent = group.event;
    partition.isReady = false;
    const found = await group.fetch({ limit, isOrdered, consumer: this.#consumer.number });
    if (this.#state !== "open") {
      group.unclaim(found.messages);
      return;
    }
    // The partition moves to the end of the queue, so another one is served next.
    this.#partitions.push(...this.#partitions.splice(this.#partitions.indexOf(partition), 1));
    if (found.messages.length > 0) {
      this.#credit -= found.messages.length;
      this.#hasRoom = this.#sink.messages(found.messages);
    }
    if (found.hasMore) partition.isReady = true;
    else group.wait(partition);
  }
}

function failureOf(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  return new DatabaseError(
    "INTERNAL_ERROR",
    "Cannot continue consuming: the consumer failed because of a bug in the server",
  );
}
