/**
 * Implements a user's connection in one format. It carries many subscriptions, passes each message
 * to the follower of its subscription, and asks the server for positions.
 */
import { assert } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type { LiveSubscription } from "../../../src/live/mod.ts";
import type { DataMessage, ServerMessage } from "../../../src/protocol/mod.ts";
import { frameFrom, packedFrame } from "../../support/client.ts";
import type { ResultFollower } from "../../support/result_follower.ts";
import type { ServerProcess } from "../../support/server_process.ts";

export type Format = "json" | "msgpack";

export interface SubscribeOptions {
  readonly id: string;
  readonly sql: string;
  readonly params: readonly unknown[];
  /** The position from which to resume; undefined for a first subscription. */
  readonly from: number | undefined;
  readonly way: "evaluated" | undefined;
  readonly follower: ResultFollower;
}

export class FollowerSocket {
  readonly #socket: WebSocket;
  readonly #format: Format;
  readonly #subscriptions = new Map<string, SocketSubscription>();
  #pong: (() => void) | undefined;
  #isOpen = true;

  private constructor(socket: WebSocket, format: Format) {
    this.#socket = socket;
    this.#format = format;
    socket.addEventListener("message", ({ data }) => {
      this.#receive(frameFrom(data as string | ArrayBuffer).message);
    });
    socket.addEventListener("close", () => {
      this.#isOpen = false;
      this.#pong?.();
    });
  }

  static async connect(
    server: ServerProcess,
    { format, token }: { format: Format; token: string },
  ): Promise<FollowerSocket> {
    const url = `${server.webSocketUrl}?serialization=${format}`;
    const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` } });
    socket.binaryType = "arraybuffer";
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", () => reject(new Error(`Cannot connect to ${url}`)));
    });
    return new FollowerSocket(socket, format);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  subscribe({ follower, from, id, params, sql, way }: SubscribeOptions): SocketSubscription {
    const subscription = new SocketSubscription(id, follower, (message) => this.#send(message));
    this.#subscriptions.set(id, subscription);
    follower.subscription = subscription;
    const options = {
      ...(from === undefined ? {} : { from_seq_id: from }),
      ...(way === undefined ? {} : { way }),
    };
    const spec = { id, sql, params, namespace_id: "fuzz", options };
    this.#send({ type: "subscribe", subscription: spec });
    return subscription;
  }

  /** Requests the positions of all subscriptions. */
  async ping(): Promise<void> {
    if (!this.#isOpen) throw new Error("the connection has ended");
    await new Promise<void>((resolve) => {
      this.#pong = resolve;
      this.#send({ type: "ping", id: "p" });
    });
  }

  /** Ends the connection without a close message, like a client that disappears. */
  close(): void {
    this.#subscriptions.clear();
    this.#socket.terminate();
  }

  #send(message: Readonly<Record<string, unknown>>): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(this.#format === "json" ? JSON.stringify(message) : packedFrame(message));
  }

  #receive(message: ServerMessage): void {
    if (!("type" in message)) return;
    switch (message.type) {
      case "pong":
        for (const [id, position] of Object.entries(message.positions)) {
          const subscription = this.#subscriptions.get(id);
          subscription?.reach(position as Seq);
        }
        this.#pong?.();
        break;
      case "error":
        assert(message.ended, "no message of a follower may be refused");
        this.#subscriptions.get(message.subscription_id)?.follower.end(message);
        this.#subscriptions.delete(message.subscription_id);
        break;
      case "subscription_ack":
      case "initial_data_batch":
      case "change":
        this.#deliver(message);
        break;
      default:
        break;
    }
  }

  /**
   * Delivers a message. If the messages of a subscription contradict each other, the subscription
   * is ended, so that the judge finds the contradiction.
   */
  #deliver(message: DataMessage): void {
    const id = message.subscription_id;
    const subscription = this.#subscriptions.get(id);
    if (subscription === undefined) return;
    subscription.receivedMs = performance.now();
    try {
      subscription.follower.receive(message);
    } catch (error) {
      subscription.error = error instanceof Error ? error : new Error("not an Error");
      this.#subscriptions.delete(id);
      subscription.close();
    }
  }
}

/** A subscription, as its follower sees it. */
export class SocketSubscription implements LiveSubscription {
  readonly id: string;
  readonly follower: ResultFollower;
  readonly state: LiveSubscription["state"] = "following";
  position: Seq | undefined;
  /** The time at which the last message or a later position arrived. */
  receivedMs: number = performance.now();
  /** The reason why the follower gave up; undefined if it has not given up. */
  error: Error | undefined;
  readonly #send: (message: Readonly<Record<string, unknown>>) => void;

  constructor(
    id: string,
    follower: ResultFollower,
    send: (message: Readonly<Record<string, unknown>>) => void,
  ) {
    this.id = id;
    this.follower = follower;
    this.#send = send;
  }

  reach(position: Seq): void {
    if (position === this.position) return;
    this.position = position;
    this.receivedMs = performance.now();
  }

  nextBatch(): void {
    this.#send({ type: "next_batch", subscription_id: this.id });
  }

  drained(): void {
    // The socket continues to deliver batches without this call.
  }

  close(): void {
    this.#send({ type: "unsubscribe", subscription_id: this.id });
  }
}
