/**
 * Keeps the topic consumers of a connection, keyed by the ids that the client chose.
 *
 *     consume ──opened──► open ──stop with drain──► draining ──stop──► (none)
 *                          └──stop, KILL, failure, closed socket─────► (none)
 *
 * Opening a consumer takes several ticks, so messages that follow a `consume` wait for it. When a
 * socket closes, its unacknowledged messages immediately become available to other consumers.
 */
import { type Auth, type Principal, requireRun, requireTopic } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import type { OnBug } from "../../base/bugs.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import {
  type TopicCode,
  type TopicControlMessage,
  type TopicDelivery,
  type TopicErrorMessage,
  type TopicMessageBody,
  type TopicRequestMessage,
  topicErrorOf,
} from "../../protocol/mod.ts";
import type { TopicMessage } from "../../sql/mod.ts";
import type { TopicConsumers, TopicStream, TopicStreamSink } from "../../topics/mod.ts";
import type { ServerConfig } from "../contract/options.ts";
import {
  acknowledgedFrom,
  flagFrom,
  groupFrom,
  MESSAGES_MAX,
  partitionFrom,
  readNack,
  startFrom,
  type TopicFields,
  topicNameFrom,
  wholeNumber,
} from "../frames/topic_fields.ts";
import { invalidInput } from "../http/request_body.ts";

const CONSUMERS_MAX = 100;

const CREDIT_DEFAULT = 100;

const REQUEST_ID_CHARS_MAX = 64;

/** The approximate size of a message without its payload and key, in bytes. */
const MESSAGE_BYTES = 200;

/** Objects shared by all topic consumers on sockets. */
export interface SocketTopicParts {
  readonly topics: TopicConsumers;
  readonly auth: Pick<Auth, "requireMessages">;
  readonly onBug: OnBug;
  readonly config: { readonly websocket: Pick<ServerConfig["websocket"], "max_frame_bytes"> };
}

/** The connection to which the topic consumers belong. */
export interface ConsumerSocket {
  readonly principal: Principal | undefined;
  /** Sends messages. Returns whether the socket's queue has space for more. */
  deliver(message: TopicDelivery): boolean;
  answer(message: TopicControlMessage): void;
}

type RequestType = TopicRequestMessage["type"];

/** A topic consumer of a connection. */
class SocketConsumer implements TopicStreamSink {
  readonly id: string;
  readonly #topicName: string;
  readonly #owner: TopicConsumersOfSocket;
  /** The message stream of the consumer; undefined until the consumer is open. */
  open: TopicStream | undefined;
  /** Settles once the consumer has been opened or has failed to open; undefined afterwards. */
  opening: Promise<TopicStream> | undefined;
  isOver = false;

  constructor(id: string, topicName: string, owner: TopicConsumersOfSocket) {
    this.id = id;
    this.#topicName = topicName;
    this.#owner = owner;
  }

  messages(messages: readonly TopicMessage[]): boolean {
    return this.#owner.deliver(this.id, this.#topicName, messages);
  }

  ended(error: DatabaseError): void {
    if (!this.isOver) this.#owner.ended(this, error);
  }
}

export class TopicConsumersOfSocket {
  readonly #parts: SocketTopicParts;
  readonly #socket: ConsumerSocket;
  /**
   * A list is sufficient, because most connections have a single consumer and no connection has
   * many.
   */
  #consumers: readonly SocketConsumer[] = [];

  constructor(parts: SocketTopicParts, socket: ConsumerSocket) {
    this.#parts = parts;
    this.#socket = socket;
  }

  /** Processes a message and responds to it, even if the message is refused or fails. */
  serve(type: RequestType, id: string, fields: TopicFields): void {
    const requestId = requestIdOf(fields);
    this.#serve(type, id, fields).catch((error: unknown) => {
      if (!isExpected(error)) this.#parts.onBug(error, "a message about a topic", { type });
      const ended = this.#find(id) === undefined;
      this.#socket.answer(errorMessage(id, { error, ended, requestId }));
    });
  }

  async #serve(type: RequestType, id: string, fields: TopicFields): Promise<void> {
    switch (type) {
      case "consume":
        await this.#consume(id, fields);
        return;
      case "credit":
        await this.#addCredit(id, fields);
        return;
      case "topic_ack":
        await this.#acknowledge(id, fields);
        return;
      case "nack":
        await this.#nack(id, fields);
        return;
      case "stop":
        if (flagFrom(fields, "drain")) (await this.#openOf(id)).drain();
        else this.#close(id);
    }
  }

  async #consume(id: string, fields: TopicFields): Promise<void> {
    // The old consumer with the same id ends first, even if the new consumer is then refused.
    this.#close(id);
    const { topics } = this.#parts;
    const { principal } = this.#socket;
    assert(principal !== undefined, "topic consumer: authenticated connection has no principal");
    requireRun(principal, "maintain", { action: "read topics" });
    if (this.#consumers.length >= CONSUMERS_MAX) {
      throw invalidInput(
        `Cannot consume messages: a connection can have at most ${CONSUMERS_MAX} consumers`,
      );
    }
    const topicName = topicNameFrom(fields);
    requireTopic(principal, topicName);
    const request = {
      group: groupFrom(fields),
      partition: partitionFrom(fields),
      start: startFrom(fields["start"]),
      credit: wholeNumber(fields, "credit", { min: 0, max: MESSAGES_MAX }) ?? CREDIT_DEFAULT,
      isOrdered: flagFrom(fields, "ordered"),
      userId: principal.userId,
      topicId: topics.topicIdOf(topicName),
    };
    this.#parts.auth.requireMessages(principal, request.topicId);
    const consumer = new SocketConsumer(id, topicName, this);
    consumer.opening = topics.open(request, consumer);
    this.#consumers = [...this.#consumers, consumer];
    try {
      const stream = await consumer.opening;
      consumer.opening = undefined;
      if (consumer.isOver) {
        stream.close();
        return;
      }
      consumer.open = stream;
      this.#socket.answer({ type: "consume_ack", id });
      stream.start();
    } catch (error) {
      this.#forget(consumer);
      throw error;
    }
  }

  async #addCredit(id: string, fields: TopicFields): Promise<void> {
    const credit = wholeNumber(fields, "credit", { min: 1, max: MESSAGES_MAX });
    if (credit === undefined) {
      throw invalidInput('Cannot read "credit": it is missing; expected a whole number');
    }
    const stream = await this.#openOf(id);
    if (stream.credit + credit > MESSAGES_MAX) {
      throw invalidInput(
        `Cannot add ${credit} to the credit of ${stream.credit}: the total may be at most ` +
          MESSAGES_MAX,
      );
    }
    stream.addCredit(credit);
  }

  async #acknowledge(id: string, fields: TopicFields): Promise<void> {
    const partition = partitionFrom(fields) ?? 0;
    const request = { partition, ...acknowledgedFrom(fields) };
    const requestId = requestIdFrom(fields);
    const stream = await this.#openOf(id);
    const { acknowledgedCount, committedOffset } = await stream.ack(request);
    this.#socket.answer({
      type: "topic_ack_result",
      id,
      partition_id: partition,
      acknowledged_offset: committedOffset - 1,
      acknowledged: acknowledgedCount,
      ...(requestId === undefined ? {} : { request_id: requestId }),
    });
  }

  async #nack(id: string, fields: TopicFields): Promise<void> {
    const request = readNack(fields);
    requestIdFrom(fields);
    const stream = await this.#openOf(id);
    await stream.nack(request);
  }

  /**
   * Returns a consumer's message stream once the consumer is open.
   * @throws {DatabaseError} OBJECT_NOT_FOUND
   */
  async #openOf(id: string): Promise<TopicStream> {
    const consumer = this.#find(id);
    // If the consumer could not be opened, it has already received its error.
    const stream = consumer?.open ?? (await consumer?.opening?.catch(() => undefined));
    if (stream !== undefined && consumer?.isOver === false) return stream;
    throw new DatabaseError("OBJECT_NOT_FOUND", `This connection has no consumer "${id}"`);
  }

  /** Sends messages to a consumer. Returns whether the socket's queue has space for more. */
  deliver(id: string, topicName: string, messages: readonly TopicMessage[]): boolean {
    let hasRoom = true;
    let part: TopicMessageBody[] = [];
    let bytes = 0;
    for (const message of messages) {
      part.push(bodyOf(topicName, message));
      bytes += message.payload.length + (message.key?.length ?? 0) + MESSAGE_BYTES;
      if (bytes < this.#parts.config.websocket.max_frame_bytes / 2) continue;
      hasRoom = this.#socket.deliver({ type: "messages", id, messages: part });
      part = [];
      bytes = 0;
    }
    if (part.length === 0) return hasRoom;
    return this.#socket.deliver({ type: "messages", id, messages: part });
  }

  /** Called when a topic consumer ends without having been stopped. */
  ended(consumer: SocketConsumer, error: DatabaseError): void {
    consumer.isOver = true;
    this.#forget(consumer);
    this.#socket.answer(errorMessage(consumer.id, { error, ended: true }));
  }

  /** Called when the socket's queue has space again. */
  drained(): void {
    for (const { open } of this.#consumers) open?.drained();
  }

  /** Ends all consumers, and sends each of them the reason. */
  endAll(code: TopicCode, message: string): void {
    const ids = this.#consumers.map(({ id }) => id);
    this.closeAll();
    for (const id of ids)
      this.#socket.answer({ type: "topic_error", id, code, message, ended: true });
  }

  /** Ends all consumers without a message. */
  closeAll(): void {
    for (const { id } of this.#consumers) this.#close(id);
  }

  #find(id: string): SocketConsumer | undefined {
    return this.#consumers.find((consumer) => consumer.id === id);
  }

  #forget(consumer: SocketConsumer): void {
    this.#consumers = this.#consumers.filter((each) => each !== consumer);
  }

  #close(id: string): void {
    const consumer = this.#find(id);
    if (consumer === undefined) return;
    this.#forget(consumer);
    consumer.isOver = true;
    consumer.open?.close();
  }
}

function bodyOf(topicName: string, message: TopicMessage): TopicMessageBody {
  return {
    topic_id: topicName,
    partition_id: message.partition,
    offset: message.offset,
    payload: message.payload,
    key: message.key,
    timestamp_ms: message.timestampMs,
    ...(message.user === undefined ? {} : { user: message.user }),
    op: message.op,
    deliveries: message.deliveries,
  };
}

function errorMessage(
  id: string,
  { ended, error, requestId }: { error: unknown; ended: boolean; requestId?: string | undefined },
): TopicErrorMessage {
  const isKnown = error instanceof DatabaseError;
  const { code } = topicErrorOf(isKnown ? error.code : "INTERNAL_ERROR");
  return {
    type: "topic_error",
    id,
    code,
    message: isKnown
      ? error.message
      : "Cannot continue consuming the topic because of an internal error; the server's log has " +
        "the details",
    ended,
    ...(isKnown && error.hint !== undefined ? { hint: error.hint } : {}),
    ...(requestId === undefined ? {} : { request_id: requestId }),
  };
}

function requestIdOf({ request_id: id }: TopicFields): string | undefined {
  return typeof id === "string" && id.length <= REQUEST_ID_CHARS_MAX ? id : undefined;
}

/** Reads the optional request id of a message. @throws {DatabaseError} INVALID_INPUT */
function requestIdFrom(fields: TopicFields): string | undefined {
  const id = fields["request_id"] ?? undefined;
  if (id === undefined || requestIdOf(fields) !== undefined) return requestIdOf(fields);
  throw invalidInput(
    `Cannot read "request_id": it must be a string of at most ${REQUEST_ID_CHARS_MAX} characters`,
  );
}
