/**
 * Manages a client's single WebSocket, which all its live queries share. It opens with the first
 * query, closes after the last one, and reconnects after every loss; each query then resumes from
 * its own position.
 *
 * Every socket callback first checks whether its socket is still the current one, so that a late
 * event from an old socket has no effect.
 */
import type {
  ClientMessage,
  ErrorMessage,
  ServerMessage,
  TopicRequestMessage,
} from "../protocol/mod.ts";
import {
  type ConsumeOptions,
  type MessageHandler,
  requireConsume,
  TopicConsumer,
} from "./consumer.ts";
import type { ClientEnvironment, Socket } from "./environment.ts";
import { isObject, ServerError } from "./errors.ts";
import { FollowedQuery, type LiveQuery } from "./live.ts";
import { type LiveOptions, requireLiveOptions } from "./live_options.ts";
import { Outgoing, type SentRequest } from "./outgoing.ts";
import type { PositionStorage } from "./positions.ts";
import { backoffMs } from "./repeats.ts";
import type { Session } from "./session.ts";
import type { Values } from "./values.ts";

export type ConnectionState = "closed" | "connecting" | "open" | "waiting";

export interface LiveConnectionOptions {
  readonly url: string;
  readonly session: Session;
  readonly environment: ClientEnvironment;
  readonly onState: (state: ConnectionState) => void;
  readonly values: Values;
  readonly storage: PositionStorage | undefined;
}

type Pong = Extract<ServerMessage, { type: "pong" }>;

/**
 * How long a socket may take to open, in milliseconds. After that, the attempt counts as failed.
 */
const CONNECT_MS_MAX = 20_000;

const HEARTBEAT_MS = 20_000;
/**
 * How soon after a ping a message must arrive, in milliseconds. If none does, the connection is
 * considered dead.
 */
const PONG_MS_MAX = 10_000;

/** The close code that the server sends to reject the client's token. */
const CLOSE_NOT_AUTHORIZED = 1008;

/** How long to wait after a refusal that does not say how long to wait, in milliseconds. */
const REFUSED_MS = 1000;

/** The error codes after which a connection needs a new token. */
const TOKEN_ENDS: ReadonlySet<string> = new Set(["TOKEN_EXPIRED", "TOKEN_REVOKED"]);

export class LiveConnection {
  readonly #options: LiveConnectionOptions;
  readonly #subscriptions = new Map<string, FollowedQuery>();
  readonly #consumers = new Map<string, TopicConsumer>();
  readonly #outgoing: Outgoing;
  #socket: Socket | undefined;
  #isOpen = false;
  #state: ConnectionState = "closed";
  #nextId = 1;
  #failures = 0;
  /**
   * The number of sockets abandoned so far. Asynchronous work compares it to detect that its
   * socket has been replaced, and then has no effect.
   */
  #epoch = 0;
  #cancelRetry: (() => void) | undefined;
  /** The functions that cancel the retry timers of queries refused because a limit was reached. */
  readonly #cancelWaits = new Set<() => void>();
  #cancelBack: (() => void) | undefined;
  /** The function that cancels the timer for detecting a dead connection. */
  #cancelWatch: (() => void) | undefined;
  /** The function that cancels the timer that renews the connection's token. */
  #cancelRenewal: (() => void) | undefined;
  /** The token that authenticated the WebSocket. */
  #token: string | undefined;
  /** The number of consecutive renewals that did not produce a newer token. */
  #renewalFailures = 0;
  /** Whether any message has arrived since the last ping. */
  #hasHeard = false;

  constructor(options: LiveConnectionOptions) {
    this.#options = options;
    this.#outgoing = new Outgoing({
      environment: options.environment,
      messageOf: (asked) => this.#messageOf(asked),
      send: (message) => this.#send(message),
    });
  }

  /** Starts a live query. @throws {TypeError} If an argument is invalid. */
  open(sql: string, options: LiveOptions): LiveQuery {
    requireLiveOptions(options);
    const { environment, session, storage, values } = this.#options;
    const id = `live-${this.#nextId}`;
    this.#nextId += 1;
    const settings = {
      environment,
      values,
      storage,
      userId: () => session.userId,
      onClose: (closed: FollowedQuery) => this.#closed(closed),
    };
    const subscription = new FollowedQuery(id, sql, { options, settings });
    environment.requireSockets?.();
    this.#subscriptions.set(id, subscription);
    if (this.#isOpen) this.#outgoing.ask({ type: "subscribe", id });
    else if (this.#state === "closed") this.#connect();
    return subscription;
  }

  /**
   * Consumes a topic until the consumer stops.
   * @throws {TypeError} If an argument is invalid.
   */
  consume(topic: string, options: ConsumeOptions, handler: MessageHandler): Promise<void> {
    requireConsume(options, handler);
    const { environment } = this.#options;
    if (options.signal?.aborted === true) return Promise.resolve();
    environment.requireSockets?.();
    const id = `consumer-${this.#nextId}`;
    this.#nextId += 1;
    const settings = {
      environment,
      send: (message: TopicRequestMessage) => this.#send(message),
      onEnd: (consumer: TopicConsumer) => {
        this.#consumers.delete(consumer.id);
        queueMicrotask(() => this.#closeUnused());
      },
    };
    const consumer = new TopicConsumer(id, { topic, options, handler }, settings);
    this.#consumers.set(id, consumer);
    if (this.#isOpen) this.#send(consumer.opening());
    else if (this.#state === "closed") this.#connect();
    return consumer.done;
  }

  get #isUsed(): boolean {
    return this.#subscriptions.size + this.#consumers.size > 0;
  }

  interrupt(durationMs: number): void {
    if (!this.#isUsed) return;
    this.#drop();
    this.#retryAfter(durationMs);
  }

  /** Ends every query, because nobody is logged in any more. */
  signedOut(why: ServerError = ended()): void {
    this.#endAll(why, false);
  }

  loggedOut(): void {
    this.#endAll(ended(), true);
  }

  #endAll(why: ServerError, isAskedFor: boolean): void {
    this.#drop();
    const subscriptions = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    this.#become("closed");
    for (const subscription of subscriptions) {
      subscription.failed(why, { isAskedFor });
    }
    for (const consumer of this.#consumers.values()) consumer.failed(why);
  }

  /** Restarts every query for a different user, without the previous user's rows. */
  startAnew(): void {
    this.#drop();
    for (const subscription of this.#subscriptions.values()) subscription.reset();
    for (const consumer of this.#consumers.values()) consumer.failed(ended());
    if (this.#isUsed) this.#connect();
    else this.#become("closed");
  }

  close(): void {
    for (const subscription of this.#subscriptions.values()) subscription.close();
    for (const consumer of this.#consumers.values()) consumer.stop();
    this.#closeUnused();
  }

  /**
   * The socket stays open until the end of the tick: a caller that closes one query often opens
   * another, as React does when it mounts a component twice or changes the query.
   */
  #closed(subscription: FollowedQuery): void {
    this.#forget(subscription);
    if (this.#socket === undefined) this.#closeUnused();
    else if (!this.#isUsed) queueMicrotask(() => this.#closeUnused());
  }

  #remove(subscription: FollowedQuery): void {
    this.#forget(subscription);
    this.#closeUnused();
  }

  #forget({ id }: FollowedQuery): void {
    this.#subscriptions.delete(id);
    if (this.#isOpen) this.#outgoing.ask({ type: "unsubscribe", id });
  }

  #closeUnused(): void {
    if (this.#isUsed) return;
    this.#drop();
    this.#become("closed");
  }

  #connect(): void {
    this.#become("connecting");
    // Authentication comes first, because the server closes a socket that does not authenticate in
    // time.
    if (this.#options.session.mustLogIn) void this.#logIn();
    else this.#openSocket();
  }

  async #logIn(): Promise<void> {
    const epoch = this.#epoch;
    try {
      await this.#options.session.renew();
    } catch (error) {
      if (epoch !== this.#epoch) return;
      if (isRefusal(error)) this.signedOut(error);
      else this.#lost(false, error);
      return;
    }
    if (epoch === this.#epoch) this.#openSocket();
  }

  #openSocket(): void {
    const { environment, url } = this.#options;
    const socket = environment.connect(url, {
      onOpen: () => {
        if (this.#socket === socket) this.#authenticate();
      },
      onText: (text) => {
        if (this.#socket !== socket) return;
        const message = messageFrom(text);
        // If the text is not a valid message, the peer is not a Tidemark server, or an
        // intermediary alters its messages.
        if (message === undefined) return this.#lost(false);
        this.#hasHeard = true;
        this.#receive(message);
      },
      onClose: (code) => {
        if (this.#socket === socket) this.#lost(code === CLOSE_NOT_AUTHORIZED);
      },
    });
    this.#socket = socket;
    this.#watch(CONNECT_MS_MAX, () => this.#lost(false));
  }

  #authenticate(): void {
    const token = this.#options.session.accessToken;
    if (token === undefined) return this.signedOut(unauthorized("No user is logged in"));
    this.#token = token;
    // Without compression, the browser has nothing to decompress.
    const protocol = { serialization: "json", compression: "none" };
    this.#send({ type: "authenticate", method: "jwt", token, protocol });
  }

  #receive(message: ServerMessage): void {
    switch (message.type) {
      case "auth_success":
        return this.#authenticated();
      case "auth_error":
        return this.#lost(true);
      case "pong":
        return this.#reached(message);
      case "error":
        return this.#failed(message);
      case "subscription_ack":
        this.#subscriptions.get(message.subscription_id)?.accepted(message);
        return this.#outgoing.answered({ type: "subscribe", id: message.subscription_id });
      case "consume_ack":
      case "messages":
      case "topic_ack_result":
      case "topic_error":
        return this.#consumers.get(message.id)?.receive(message);
      case "change":
        return this.#subscriptions.get(message.subscription_id)?.change(message);
      case "initial_data_batch": {
        const { subscription_id: id } = message;
        this.#outgoing.answered({ type: "next_batch", id });
        const hasMore = this.#subscriptions.get(id)?.batch(message) === true;
        if (hasMore && this.#isOpen) this.#outgoing.ask({ type: "next_batch", id });
        return;
      }
    }
  }

  #authenticated(): void {
    this.#renewalFailures = 0;
    this.#scheduleRenewal();
    // If the connection was already open, only the token was renewed, which does not affect
    // subscriptions.
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#failures = 0;
    this.#become("open");
    this.#scheduleHeartbeat();
    this.#cancelBack = this.#options.environment.whenBack?.(() => this.#ping());
    for (const id of this.#subscriptions.keys()) this.#outgoing.ask({ type: "subscribe", id });
    for (const consumer of this.#consumers.values()) this.#send(consumer.opening());
  }

  /**
   * Schedules the renewal of the token before it expires, because the server closes the connection
   * when its token expires.
   */
  #scheduleRenewal(): void {
    this.#cancelRenewal?.();
    const { environment, session } = this.#options;
    const delayMs = session.renewalDelayMs();
    if (delayMs === undefined) return;
    const failures = this.#renewalFailures;
    const pauseMs = failures === 0 ? 0 : backoffMs(environment, failures - 1);
    const waitMs = Math.max(delayMs, pauseMs);
    this.#cancelRenewal = environment.after(waitMs, () => void this.#renewInTime());
  }

  async #renewInTime(): Promise<void> {
    const { session } = this.#options;
    const epoch = this.#epoch;
    // The token is renewed only if no request has renewed it in the meantime.
    if (session.accessToken === this.#token) {
      try {
        await session.renew();
      } catch (error) {
        if (epoch !== this.#epoch) return;
        if (isRefusal(error) && session.accessToken === undefined) return this.signedOut(error);
        // The server could not be reached. If it would refuse the renewal, a later attempt will
        // show this.
      }
    }
    if (epoch !== this.#epoch) return;
    if (session.accessToken !== undefined && session.accessToken !== this.#token) {
      return this.#authenticate();
    }
    this.#renewalFailures += 1;
    this.#scheduleRenewal();
  }

  #reached({ id, positions }: Pong): void {
    this.#scheduleHeartbeat();
    for (const [followed, position] of Object.entries(positions)) {
      const subscription = this.#subscriptions.get(followed);
      // The server is still following a query that this client has ended, so it probably did not
      // process the `unsubscribe`. Sending it twice does no harm.
      if (subscription === undefined) this.#outgoing.ask({ type: "unsubscribe", id: followed });
      else subscription.reached(position);
    }
    this.#outgoing.pong(id);
  }

  #failed(message: ErrorMessage): void {
    const { code, retry_after_ms: retryAfterMs = REFUSED_MS, subscription_id: id } = message;
    // A rate limit error does not identify the message that was refused, so any query may still be
    // waiting for its response.
    if (code === "RATE_LIMIT_EXCEEDED") return this.#outgoing.refused(retryAfterMs);
    const subscription = this.#subscriptions.get(id);
    const action = subscription?.error(message);
    if (action === "reconnect") return this.#lost(TOKEN_ENDS.has(code));
    this.#outgoing.answered({ type: "subscribe", id });
    this.#outgoing.answered({ type: "next_batch", id });
    if (subscription === undefined) return;
    if (action === "subscribe") this.#outgoing.ask({ type: "subscribe", id });
    else if (action === "wait") this.#subscribeLater(subscription);
    else if (action === "remove") this.#remove(subscription);
  }

  #subscribeLater(subscription: FollowedQuery): void {
    const { environment } = this.#options;
    const cancel = environment.after(backoffMs(environment, subscription.refusals - 1), () => {
      this.#cancelWaits.delete(cancel);
      this.#outgoing.ask({ type: "subscribe", id: subscription.id });
    });
    this.#cancelWaits.add(cancel);
  }

  /** Handles the loss of the connection: informs the queries and schedules the next attempt. */
  #lost(needsToken: boolean, why?: unknown): void {
    this.#drop();
    if (!this.#isUsed) return this.#become("closed");
    const delayMs = Math.max(backoffMs(this.#options.environment, this.#failures), toldMsOf(why));
    this.#failures += 1;
    if (!needsToken) return this.#retryAfter(delayMs);
    this.#become("waiting");
    void this.#renewToken(delayMs);
  }

  /** Reconnects with a new token, unless the connection has changed in the meantime. */
  async #renewToken(delayMs: number): Promise<void> {
    const { session } = this.#options;
    const epoch = this.#epoch;
    let failure: unknown;
    try {
      await session.renew();
    } catch (error) {
      // A refusal is handled below. Any other failure leads to another attempt.
      failure = error;
    }
    if (epoch !== this.#epoch) return;
    // The user may have logged in again while the connection was being opened.
    if (isRefusal(failure) && session.accessToken === undefined) {
      this.signedOut(session.mustLogIn ? failure : undefined);
    } else this.#retryAfter(Math.max(delayMs, toldMsOf(failure)));
  }

  #retryAfter(delayMs: number): void {
    if (!this.#isUsed) return;
    this.#become("waiting");
    this.#cancelRetry?.();
    const { environment } = this.#options;
    const retry = (): void => {
      this.#cancelRetry?.();
      this.#connect();
    };
    const cancels = [
      environment.after(delayMs, retry),
      environment.whenOnline?.(retry),
      environment.whenBack?.(retry),
    ];
    this.#cancelRetry = () => {
      for (const cancel of cancels) cancel?.();
    };
  }

  #drop(): void {
    const socket = this.#socket;
    this.#epoch += 1;
    this.#socket = undefined;
    this.#isOpen = false;
    this.#outgoing.clear();
    for (const cancel of this.#cancelWaits) cancel();
    this.#cancelWaits.clear();
    this.#cancelRetry?.();
    this.#cancelWatch?.();
    this.#cancelRenewal?.();
    this.#cancelBack?.();
    this.#cancelBack = undefined;
    socket?.close();
    for (const subscription of this.#subscriptions.values()) subscription.lost();
    for (const consumer of this.#consumers.values()) consumer.lost();
  }

  #scheduleHeartbeat(): void {
    this.#watch(HEARTBEAT_MS, () => this.#ping());
  }

  #ping(): void {
    this.#outgoing.ask({ type: "ping", id: "heartbeat" });
    this.#awaitPong();
  }

  /**
   * A pong may be delayed behind other data on a slow network, so any message counts as a sign of
   * life.
   */
  #awaitPong(): void {
    this.#hasHeard = false;
    this.#watch(PONG_MS_MAX, () => {
      if (this.#hasHeard) this.#awaitPong();
      else this.#lost(false);
    });
  }

  #watch(delayMs: number, onPassed: () => void): void {
    this.#cancelWatch?.();
    this.#cancelWatch = this.#options.environment.after(delayMs, onPassed);
  }

  #messageOf({ id, type }: SentRequest): ClientMessage | undefined {
    if (type === "ping") return { type, id };
    if (type === "unsubscribe") return { type, subscription_id: id };
    const subscription = this.#subscriptions.get(id);
    if (subscription === undefined) return undefined;
    if (type === "next_batch") return { type, subscription_id: id };
    return { type, subscription: subscription.spec() };
  }

  #send(message: ClientMessage): void {
    this.#socket?.send(JSON.stringify(message));
  }

  #become(state: ConnectionState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onState(state);
  }
}

function ended(): ServerError {
  return unauthorized("The session has ended");
}

function unauthorized(message: string): ServerError {
  return new ServerError("unauthorized", message);
}

function isRefusal(error: unknown): error is ServerError {
  return error instanceof ServerError && error.status === 401;
}

/** Returns how many milliseconds an error asks the client to wait. */
function toldMsOf(error: unknown): number {
  return error instanceof ServerError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
}

/**
 * Parses a message from the server.
 * @returns Undefined if the text is not a message of the protocol.
 */
function messageFrom(text: string): ServerMessage | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    // The text is not JSON. The caller drops the connection, as it does after any invalid message.
    return undefined;
  }
  const isMessage = isObject(message) && typeof message["type"] === "string";
  return isMessage ? (message as ServerMessage) : undefined;
}
