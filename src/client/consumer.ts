/**
 * Implements a consumer of a topic: it runs a handler for each message, and acknowledges the
 * messages whose handlers succeed.
 *
 *     connecting → open → draining → ended      a lost connection leads back to connecting
 *
 * - A message uses up a credit from its arrival until it is acknowledged or refused, so no more
 *   than `concurrency` handlers run at once.
 * - When the connection is lost, the server may deliver unacknowledged messages again. Messages
 *   whose handlers have succeeded in the meantime are therefore acknowledged before new ones are
 *   requested, and a message whose handler is running or has succeeded is not handled a second
 *   time.
 */
import type {
  TopicControlMessage,
  TopicDelivery,
  TopicMessageBody,
  TopicRequestMessage,
} from "../protocol/mod.ts";
import {
  ANYTHING,
  type Call,
  COUNT,
  FILLED_TEXT,
  type FieldRules,
  FLAG,
  HANDLER,
  requireOptions,
  requireRule,
  SIGNAL,
} from "./checks.ts";
import type { ClientEnvironment } from "./environment.ts";
import { ServerError } from "./errors.ts";
import { guarded } from "./handlers.ts";

/** A message of a topic. It describes a change to a row. */
export interface ConsumedMessage<Payload extends object = Record<string, unknown>> {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The row's primary key as text; null if the table has no primary key. */
  readonly key: string | null;
  readonly payload: Payload;
  readonly op: "Insert" | "Update" | "Delete";
  readonly timestampMs: number;
  /** The owner of the row; absent for a SHARED table. */
  readonly user?: string;
  /** How many times the message has been delivered to the group, including this time. */
  readonly deliveries: number;
  /** A signal that is aborted when the consumer has to stop. */
  readonly signal: AbortSignal;
}

export interface ConsumeOptions {
  readonly group: string;
  /** The maximum number of messages handled concurrently; defaults to 1. */
  readonly concurrency?: number;
  /**
   * Where a new group starts: after the latest message, at the earliest one, at an offset or at a
   * time. Defaults to "latest".
   */
  readonly from?:
    | "earliest"
    | "latest"
    | { readonly offset: number }
    | { readonly timestampMs: number };
  /**
   * Whether a message waits until all earlier messages with the same key have been acknowledged;
   * defaults to false.
   */
  readonly ordered?: boolean;
  /** The partition to consume; all partitions if omitted. */
  readonly partition?: number;
  /**
   * When aborted, stops the consumer gracefully: running handlers finish, and their messages are
   * acknowledged.
   */
  readonly signal?: AbortSignal;
  /** Called when a handler has failed. Its message is delivered again after a pause. */
  readonly onError?: (error: unknown, message: ConsumedMessage) => void;
}

export type MessageHandler = (message: ConsumedMessage) => unknown;

const CONSUME: Call = {
  doing: "consume",
  example: 'topic("shop.work").consume({ group: "mailer" }, async (message) => …)',
};

const CONSUME_RULES: FieldRules = {
  group: FILLED_TEXT,
  concurrency: COUNT,
  from: ANYTHING,
  ordered: FLAG,
  partition: COUNT,
  signal: SIGNAL,
  onError: HANDLER,
};

/**
 * How long to wait before a message whose handler failed is delivered again, in milliseconds. The
 * delay doubles after each further failure.
 */
const PAUSE_MS_MIN = 1000;
const PAUSE_MS_MAX = 300_000;

export interface ConsumerSettings {
  readonly environment: ClientEnvironment;
  readonly send: (message: TopicRequestMessage) => void;
  /** Called when the topic consumer has ended. */
  readonly onEnd: (consumer: TopicConsumer) => void;
}

interface Place {
  readonly partition: number;
  readonly offset: number;
}

/** Requires that the arguments of `consume` are valid. @throws {TypeError} */
export function requireConsume(options: ConsumeOptions, handler: MessageHandler): void {
  requireOptions(CONSUME, options, CONSUME_RULES);
  requireRule("the group", options.group, FILLED_TEXT);
  requireRule("the handler", handler, HANDLER);
}

export class TopicConsumer {
  readonly id: string;
  /**
   * Settles when the consumer has ended: resolves after a graceful stop, and rejects after an
   * error.
   */
  readonly done: Promise<void>;
  readonly #topic: string;
  readonly #options: ConsumeOptions;
  readonly #handler: MessageHandler;
  readonly #settings: ConsumerSettings;
  readonly #stopping = new AbortController();
  readonly #running = new Set<string>();
  /**
   * The messages whose handlers have succeeded. They are kept until the server confirms their
   * acknowledgement.
   */
  readonly #succeeded = new Map<string, Place>();
  #settle: { resolve: () => void; reject: (error: ServerError) => void } | undefined;
  /** Whether the server has accepted the consumer on the current connection. */
  #isOpen = false;
  /** The number of messages that the server may still deliver. */
  #credit = 0;
  #isEnded = false;

  constructor(
    id: string,
    {
      handler,
      options,
      topic,
    }: { topic: string; options: ConsumeOptions; handler: MessageHandler },
    settings: ConsumerSettings,
  ) {
    this.id = id;
    this.#topic = topic;
    this.#options = options;
    this.#handler = handler;
    this.#settings = settings;
    this.done = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    options.signal?.addEventListener("abort", this.#stop, { once: true });
  }

  get #concurrency(): number {
    return Math.max(1, this.#options.concurrency ?? 1);
  }

  /**
   * Returns the message that starts the consumer. It grants no credit, because pending
   * acknowledgements must be sent first.
   */
  opening(): TopicRequestMessage {
    const { group, ordered, partition } = this.#options;
    return {
      type: "consume",
      id: this.id,
      topic_id: this.#topic,
      group_id: group,
      start: startOf(this.#options.from),
      credit: 0,
      ...(partition === undefined ? {} : { partition_id: partition }),
      ...(ordered === undefined ? {} : { ordered }),
    };
  }

  lost(): void {
    this.#isOpen = false;
    this.#credit = 0;
  }

  receive(message: TopicControlMessage | TopicDelivery): void {
    switch (message.type) {
      case "consume_ack":
        this.#isOpen = true;
        for (const [key, place] of this.#succeeded) this.#sendAck(key, place);
        this.#giveCredit();
        this.#endIfDone();
        return;
      case "messages":
        for (const body of message.messages) this.#take(body);
        this.#giveCredit();
        return;
      case "topic_ack_result":
        if (message.request_id !== undefined) this.#acknowledged(message.request_id);
        return;
      case "topic_error": {
        const error = new ServerError(message.code, message.message);
        // The server is about to close the socket, and the consumer will continue on a new socket.
        if (message.code === "SHUTTING_DOWN") this.lost();
        else if (message.ended) this.failed(error);
        // A refused acknowledgement is not sent again: the claim expires by itself, and the server
        // then delivers the message again if necessary.
        else if (message.request_id !== undefined) this.#acknowledged(message.request_id);
        return;
      }
    }
  }

  /**
   * Ends the consumer with an error. Running handlers continue, but their messages are not
   * acknowledged.
   */
  failed(error: ServerError): void {
    this.#end(() => this.#settle?.reject(error));
  }

  readonly #stop = (): void => {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    if (this.#isOpen) this.#settings.send({ type: "stop", id: this.id, drain: true });
    this.#endIfDone();
  };

  /** Stops the consumer gracefully, as aborting its signal does. */
  stop(): void {
    this.#stop();
  }

  #giveCredit(): void {
    if (!this.#isOpen || this.#stopping.signal.aborted) return;
    const credit = this.#concurrency - this.#running.size - this.#succeeded.size - this.#credit;
    if (credit <= 0) return;
    this.#credit += credit;
    this.#settings.send({ type: "credit", id: this.id, credit });
  }

  #take(body: TopicMessageBody): void {
    this.#credit = Math.max(0, this.#credit - 1);
    const key = `${body.partition_id}/${body.offset}`;
    const succeeded = this.#succeeded.get(key);
    if (succeeded !== undefined) this.#sendAck(key, succeeded);
    else if (!this.#running.has(key)) {
      this.#running.add(key);
      void this.#handle(key, body);
    }
  }

  async #handle(key: string, body: TopicMessageBody): Promise<void> {
    const place = { partition: body.partition_id, offset: body.offset };
    const message = messageFrom(body, this.#stopping.signal);
    let failure: { readonly error: unknown } | undefined;
    try {
      await this.#handler(message);
    } catch (error) {
      failure = { error };
    }
    this.#running.delete(key);
    if (this.#isEnded) return;
    if (failure === undefined) {
      this.#succeeded.set(key, place);
      if (this.#isOpen) this.#sendAck(key, place);
    } else {
      this.#refuse(place, message.deliveries);
      guarded<unknown>(this.#settings.environment, (error) =>
        this.#options.onError?.(error, message),
      )(failure.error);
    }
    this.#giveCredit();
    this.#endIfDone();
  }

  #sendAck(key: string, { offset, partition }: Place): void {
    const { id } = this;
    const ack = { id, partition_id: partition, offsets: [offset], request_id: key };
    this.#settings.send({ type: "topic_ack", ...ack });
  }

  /**
   * Asks the server to deliver a message again after a pause. Without a connection, no request is
   * needed, because the server then delivers the message again anyway.
   */
  #refuse({ offset, partition }: Place, deliveries: number): void {
    if (!this.#isOpen) return;
    const delayMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(deliveries - 1, 20));
    this.#settings.send({
      type: "nack",
      id: this.id,
      partition_id: partition,
      offsets: [offset],
      delay_ms: delayMs,
    });
  }

  #acknowledged(key: string): void {
    this.#succeeded.delete(key);
    this.#giveCredit();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#stopping.signal.aborted || this.#running.size > 0) return;
    if (this.#succeeded.size > 0) return;
    if (this.#isOpen) this.#settings.send({ type: "stop", id: this.id });
    this.#end(() => this.#settle?.resolve());
  }

  #end(settle: () => void): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#isOpen = false;
    this.#stopping.abort();
    this.#options.signal?.removeEventListener("abort", this.#stop);
    this.#settings.onEnd(this);
    settle();
  }
}

function startOf(
  from: ConsumeOptions["from"],
): "Earliest" | "Latest" | { Offset: number } | { Timestamp: number } {
  if (from === undefined || from === "latest") return "Latest";
  if (from === "earliest") return "Earliest";
  return "offset" in from ? { Offset: from.offset } : { Timestamp: from.timestampMs };
}

function messageFrom(body: TopicMessageBody, signal: AbortSignal): ConsumedMessage {
  return {
    topic: body.topic_id,
    partition: body.partition_id,
    offset: body.offset,
    key: body.key,
    payload: JSON.parse(body.payload) as Record<string, unknown>,
    op: body.op,
    timestampMs: body.timestamp_ms,
    ...(body.user === undefined ? {} : { user: body.user }),
    deliveries: body.deliveries ?? 1,
    signal,
  };
}
