/**
 * A WebSocket connection, from upgrade to close.
 *
 *                      authenticate                    idle, revoked, expired, shutdown,
 *                      or header                       tenth invalid message, flood
 *     unauthenticated ───────────► authenticated ─────────────────────────► closing ──► (closed)
 *            │                                                                 ▲
 *            └─ wrong token, no token in time ─────────────────────────────────┘
 *
 * While a token from an external issuer is being checked, which may require a request to that
 * issuer, further messages wait.
 *
 *     event \ state    unauthenticated            authenticated             closing
 *     authenticate     one attempt, or closing    a newer token, or closing ignored
 *     ping             pong                       pong                      ignored
 *     subscribe …      AUTH_REQUIRED              served                    ignored
 *     drain            waiting messages           waiting messages, and     closes when empty
 *                                                 subscriptions continue
 *
 * No message is silently dropped. While the socket's queue is longer than
 * `websocket.send_queue_bytes`, subscriptions keep only their cursor, and client messages wait in
 * a bounded queue. A connection can therefore take up no more memory than that budget, one message
 * per subscription, and the bounded queue.
 */
import { AuthError, type Caller, type Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { type LiveSink, type SharedMessage, SubscriptionError } from "../../live/mod.ts";
import type {
  ControlMessage,
  ErrorMessage,
  SubscriptionSpec,
  TopicDelivery,
  TopicRequestMessage,
} from "../../protocol/mod.ts";
import type { ConnectionRow } from "../../sql/mod.ts";
import {
  type Decoded,
  errorMessage,
  messageTypeOf,
  PROTOCOL_WORD,
  readAuthenticate,
  readConsumerId,
  readNextBatch,
  readPing,
  readSpec,
  readSubscriptionId,
  readUnsubscribe,
  refusal,
} from "../frames/client_message.ts";
import { decodeFrame } from "../frames/decode.ts";
import { type FrameFormat, frameOf, jsonFromMessage } from "../frames/encode.ts";
import { objectOf } from "../http/request_body.ts";
import type { ConnectionOptions, ConnectionParts } from "./connection_options.ts";
import type { WatchedSocket } from "./held_messages.ts";
import { type ClientFrame, Intake } from "./intake.ts";
import type { MessageServer } from "./message_time_slices.ts";
import {
  connectionRow,
  EXPIRED,
  isOverdue,
  type OpenConnection,
  REVOKED,
  type SessionEnd,
} from "./open_connection.ts";
import { Outbox, type OutboxOwner, type OutboxSocket } from "./outbox.ts";
import {
  authFailure,
  bearerFrom,
  PendingAuthentication,
  renewed,
} from "./socket_authentication.ts";
import { Subscriptions } from "./subscriptions.ts";
import { type ConsumerSocket, TopicConsumersOfSocket } from "./topic_consumers.ts";

/** Close codes defined by the WebSocket protocol. */
const CLOSE_NORMAL = 1000;
const CLOSE_GOING_AWAY = 1001;
const CLOSE_POLICY = 1008;
const CLOSE_INTERNAL = 1011;

/** The error for a client that sends a message before it has authenticated. */
const AUTHENTICATE_FIRST =
  'Authenticate first: send {"type": "authenticate", "token": "<token>"}, or open the ' +
  "connection with the header Authorization: Bearer <token>; POST /v1/api/auth/login returns a " +
  "token as access_token";

/** How soon a client with too many waiting messages may try again, in milliseconds. */
const BUSY_RETRY_MS = 1000;

type ConnectionPhase = "unauthenticated" | "authenticated" | "closing";

export class Connection
  implements ConsumerSocket, LiveSink, MessageServer, OpenConnection, OutboxOwner, WatchedSocket
{
  readonly transport = "websocket";
  /** The backpressure state, managed by the live engine. */
  backpressure: unknown;
  readonly #number: number;
  readonly #socket: OutboxSocket;
  readonly #outbox: Outbox;
  readonly #parts: ConnectionParts;
  readonly #caller: Caller;
  /** The authentication in progress; undefined once the connection is authenticated. */
  #pending: PendingAuthentication | undefined;
  /** The limits on the client's messages; created only once there is state to keep. */
  #intake: Intake | undefined;
  readonly #subscriptions = new Subscriptions();
  /** The topic consumers; created with the first message about a topic. */
  #consumers: TopicConsumersOfSocket | undefined;
  #state: ConnectionPhase = "unauthenticated";
  /** Whether the server is currently checking a token from an external issuer. */
  #isChecking = false;
  #format: FrameFormat;
  #principal: Principal | undefined;
  readonly #openedMs: number;
  #lastFrameMs: number;
  #lastPingMs: number;
  #bytesIn = 0;
  #framesIn = 0;
  /** The close frame to send once the queue is empty. */
  #closeWhenFlushed: { code: number; reason: string } | undefined;

  constructor(options: ConnectionOptions) {
    this.#number = options.number;
    const { parts, request, socket } = options;
    this.#parts = parts;
    this.#pending = new PendingAuthentication(request, parts);
    this.#caller = request.caller;
    this.#socket = socket;
    this.#outbox = new Outbox({ socket, parts: parts.outbox, owner: this });
    this.#format = request.format;
    this.#openedMs = parts.clock.monotonicMs();
    this.#lastFrameMs = this.#openedMs;
    this.#lastPingMs = this.#openedMs;
  }

  get connectionId(): string {
    return `ws-${this.#number}`;
  }

  get state(): ConnectionPhase {
    return this.#state;
  }

  /** The user of the connection; undefined before authentication. */
  get principal(): Principal | undefined {
    return this.#principal;
  }

  get userId(): string | undefined {
    return this.#principal?.userId;
  }

  get bytesIn(): number {
    return this.#bytesIn;
  }

  get framesIn(): number {
    return this.#framesIn;
  }

  get waitingBytes(): number {
    return this.#intake?.waitingBytes ?? 0;
  }

  get address(): string {
    return this.#caller.address;
  }

  get queuedBytes(): number {
    return this.#outbox.queuedBytes;
  }

  /**
   * Called when the socket is open: authenticates by header, or starts waiting for an
   * `authenticate` message.
   */
  open(): void {
    const pending = this.#pending;
    if (pending?.bearer !== undefined) this.#authenticate(pending.bearer);
    else pending?.wait(() => this.#refuseAuthentication("AUTH_TIMEOUT"));
  }

  /** Handles a data frame from the client. */
  receive(frame: ClientFrame): void {
    this.touch();
    this.#bytesIn += typeof frame === "string" ? Buffer.byteLength(frame) : frame.length;
    if (this.#state === "closing") return;
    const isFull = this.#outbox.isOverBudget;
    const retryAfterMs = this.#intakeNow().rateWaitMs(this.#parts.clock.monotonicMs());
    const { slices } = this.#parts;
    if (retryAfterMs > 0 && !isFull) {
      this.#refuseRate(
        retryAfterMs,
        `Too many messages: a connection may send at most ${this.#perSecond} per second`,
      );
    } else if (isFull || this.#isChecking || this.#intake?.hasWaiting === true || !slices.hasTime) {
      this.#wait(frame, isFull);
    } else {
      slices.serve(this, frame);
    }
  }

  /** Serves a message, and then flushes the outgoing frames. */
  serveNow(frame: ClientFrame): void {
    this.#serve(frame);
    // The runtime corks the socket during the entire event, so all frames are sent together.
    this.#outbox.flush();
  }

  serveWaiting(): boolean {
    if (!this.#canServeWaiting) return false;
    const frame = this.#intake?.next();
    assert(frame !== undefined, "connection: no frame is waiting to be served");
    this.serveNow(frame);
    return this.#canServeWaiting;
  }

  /** Records a control frame from the client. */
  touch(): void {
    this.#framesIn += 1;
    this.#lastFrameMs = this.#parts.clock.monotonicMs();
  }

  /** Called when the socket has sent some of its queued bytes. */
  drained(): void {
    if (this.#closeWhenFlushed !== undefined) {
      this.#closeIfFlushed();
      return;
    }
    if (this.#canServeWaiting) this.#parts.slices.enqueue(this);
    if (this.#state === "closing" || this.#outbox.isOverBudget) return;
    this.#subscriptions.drained();
    this.#consumers?.drained();
  }

  /** Called about once a second, for keep-alive and the idle timeout. */
  tick(): void {
    if (this.#state === "closing") return;
    // If the runtime fails to report a drain, this call limits the delay to about a second.
    this.drained();
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#intake?.isIdle(nowMs) === true) this.#intake = undefined;
    const { idle_timeout_secs, ping_interval_secs } = this.#parts.config.websocket;
    if (this.#principal !== undefined && isOverdue(this.#parts.clock, this.#principal)) {
      this.#endSession(EXPIRED, "token expired");
    } else if (nowMs - this.#lastFrameMs >= idle_timeout_secs * 1000) {
      this.#close(CLOSE_NORMAL, "idle timeout");
    } else if (nowMs - this.#lastPingMs >= ping_interval_secs * 1000) {
      this.#lastPingMs = nowMs;
      this.#socket.ping();
    }
  }

  /** Ends the connection because its session was revoked. */
  revoke(): void {
    if (this.#state !== "closing") this.#endSession(REVOKED, "tokens revoked");
  }

  /**
   * Ends the connection because its messages take up more memory than its user or address is
   * allowed.
   */
  refuse(message: string): void {
    if (this.#state === "closing") return;
    this.#refuseRate(BUSY_RETRY_MS, message);
    this.#close(CLOSE_POLICY, "too many unfinished or waiting messages");
  }

  cut(): void {
    this.#socket.terminate();
  }

  failed(): void {
    this.#close(CLOSE_INTERNAL, "internal failure");
  }

  /** Executes KILL CONNECTION. */
  kill(): void {
    if (this.#state !== "closing") this.#close(CLOSE_POLICY, "KILL CONNECTION");
  }

  /** Returns the row of `system.connections`; undefined before authentication. */
  row(): ConnectionRow | undefined {
    const principal = this.#principal;
    if (principal === undefined || this.#state === "closing") return undefined;
    const { serialization, isGzipOn } = this.#format;
    return connectionRow(this.#parts.clock, {
      connectionId: this.connectionId,
      principal,
      transport: this.transport,
      clientAddress: this.address,
      serialization,
      compression: isGzipOn ? "gzip" : "none",
      subscriptions: this.#subscriptions.count,
      bytesIn: this.#bytesIn,
      bytesOut: this.#outbox.bytesOut,
      queuedBytes: this.#outbox.queuedBytes,
      openedMs: this.#openedMs,
      lastSeenMs: this.#lastFrameMs,
    });
  }

  /**
   * Handles the shutdown of the server, once the live engine has ended the subscriptions. The
   * connection closes once its queue has been sent.
   */
  shutDown(): void {
    if (this.#state === "closing") return;
    this.#intake?.dropWaiting();
    this.#subscriptions.closeAll();
    this.#consumers?.endAll("SHUTTING_DOWN", "The server is shutting down");
    this.#closeWhenFlushed = { code: CLOSE_GOING_AWAY, reason: "server shutdown" };
    this.#closeIfFlushed();
  }

  /** Closes the connection without waiting for its queue to be sent. */
  closeNow(): void {
    if (this.#state !== "closing") this.#close(CLOSE_GOING_AWAY, "server shutdown");
    this.#socket.terminate();
  }

  /** Called when the WebSocket is closed. */
  closed(): void {
    this.#leave();
  }

  send(message: SharedMessage): boolean {
    if (this.#state === "closing") return true;
    return this.#outbox.hold(frameOf(message, this.#format));
  }

  end(message: ErrorMessage): void {
    this.#subscriptions.forget(message.subscription_id);
    this.#sendControl(message);
  }

  get #perSecond(): number {
    return this.#parts.config.limits.messages_per_sec;
  }

  get #canServeWaiting(): boolean {
    const hasWaiting = this.#state !== "closing" && this.#intake?.hasWaiting === true;
    return hasWaiting && !this.#isChecking && !this.#outbox.isOverBudget;
  }

  /**
   * Holds a message back until the socket has drained, or until other connections have been
   * served.
   */
  #wait(frame: ClientFrame, isFull: boolean): void {
    const isKept = this.#intakeNow().wait(frame);
    if (isKept && !isFull) this.#parts.slices.enqueue(this);
    else if (!isKept && isFull)
      this.#close(CLOSE_POLICY, "the client sent messages without reading the responses");
    else if (!isKept)
      this.#refuseRate(
        BUSY_RETRY_MS,
        "The server is busy: too many messages are waiting to be processed",
      );
  }

  #refuseRate(retryAfterMs: number, message: string): void {
    this.#sendControl({
      ...errorMessage("RATE_LIMIT_EXCEEDED", "rate_limit", message),
      retry_after_ms: retryAfterMs,
    });
  }

  /** Serves a frame. Only here are refusals turned into error messages. */
  #serve(frame: ClientFrame): void {
    try {
      this.#dispatch(this.#decode(frame));
    } catch (error) {
      if (!(error instanceof SubscriptionError)) throw error;
      this.#sendControl(error.response);
      if (error.response.code !== "INVALID_MESSAGE") return;
      const isOneTooMany = this.#intakeNow().countInvalid(this.#parts.clock.monotonicMs());
      if (isOneTooMany) this.#close(CLOSE_POLICY, "invalid messages");
    }
  }

  #decode(frame: ClientFrame): Decoded {
    return decodeFrame(frame, {
      serialization: this.#format.serialization,
      bytesMax: this.#parts.config.limits.max_message_size,
    });
  }

  #dispatch(decoded: Decoded): void {
    const type = messageTypeOf(decoded);
    switch (type) {
      case "ping":
        this.#pong(readPing(decoded));
        return;
      case "authenticate":
        if (this.#principal === undefined) this.#authenticateByMessage(decoded);
        else this.#renew(this.#principal, decoded);
        return;
      case "subscribe":
        this.#requireAuthentication(type);
        this.#subscribe(decoded);
        return;
      case "next_batch":
        this.#requireAuthentication(PROTOCOL_WORD);
        this.#subscriptions.nextBatch(readNextBatch(decoded));
        return;
      case "unsubscribe":
        this.#requireAuthentication(PROTOCOL_WORD);
        this.#subscriptions.close(readUnsubscribe(decoded));
        return;
      case "consume":
      case "credit":
      case "topic_ack":
      case "nack":
      case "stop":
        this.#requireAuthentication(PROTOCOL_WORD);
        this.#serveTopic(type, decoded);
        return;
    }
  }

  #requireAuthentication(subscriptionId: string): void {
    if (this.#state === "authenticated") return;
    throw refusal("AUTH_REQUIRED", subscriptionId, AUTHENTICATE_FIRST);
  }

  #authenticateByMessage(decoded: Decoded): void {
    const fields = readAuthenticate(decoded);
    this.#format = this.#pending?.formatBy(fields, this.#format) ?? this.#format;
    this.#authenticate(bearerFrom(fields));
  }

  #authenticate(bearer: string): void {
    this.#onceChecked(bearer, () => this.#authenticateNow(bearer));
  }

  /** Calls `proceed` immediately, or once an external issuer has been asked about the token. */
  #onceChecked(bearer: string, proceed: () => void): void {
    const checked = this.#parts.auth.checkExternal(bearer);
    if (checked === undefined) proceed();
    else void this.#afterCheck(checked, proceed);
  }

  async #afterCheck(checked: Promise<void>, proceed: () => void): Promise<void> {
    this.#isChecking = true;
    try {
      await checked;
      if (this.#state !== "closing") proceed();
    } catch (error) {
      if (error instanceof AuthError) {
        this.#refuseAuthentication(error.code);
      } else {
        this.#parts.onBug(error, "a connection");
        this.failed();
      }
    }
    this.#isChecking = false;
    if (this.#state === "closing") return;
    this.#outbox.flush();
    if (this.#canServeWaiting) this.#parts.slices.enqueue(this);
  }

  #authenticateNow(bearer: string): void {
    const pending = this.#pending;
    assert(pending !== undefined, "connection: authentication has already completed");
    this.#pending = undefined;
    const answer = pending.authenticate(bearer);
    if (typeof answer === "string") {
      this.#refuseAuthentication(answer);
      return;
    }
    this.#principal = answer;
    this.#state = "authenticated";
    this.#sendIdentity();
  }

  /**
   * Continues with a newer token, because the connection would otherwise end when its old token
   * expires. If the new token is refused, the connection ends at once, as it does when the first
   * token is refused. If the new token has different claims, the client has to subscribe again:
   * policies may now permit different rows, and a resume from a position would not deliver rows
   * that were previously hidden.
   */
  #renew(before: Principal, decoded: Decoded): void {
    const bearer = bearerFrom(readAuthenticate(decoded));
    this.#onceChecked(bearer, () => this.#renewNow(before, bearer));
  }

  #renewNow(before: Principal, bearer: string): void {
    const answer = renewed(before, bearer, { auth: this.#parts.auth, caller: this.#caller });
    if (typeof answer === "string") {
      this.#refuseAuthentication(answer);
      return;
    }
    this.#principal = answer.principal;
    this.#sendIdentity();
    if (!answer.hasOtherClaims) return;
    const message = "The token's claims have changed, so different rows may be visible now";
    for (const id of this.#subscriptions.ids()) {
      this.#subscriptions.close(id);
      this.end({
        type: "error",
        subscription_id: id,
        code: "SCHEMA_CHANGED",
        message,
        ended: true,
      });
    }
  }

  #refuseAuthentication(code: string): void {
    const failure = authFailure(code);
    this.#sendControl(failure);
    this.#close(CLOSE_POLICY, failure.message);
  }

  #sendIdentity(): void {
    const principal = this.#principal;
    assert(principal !== undefined, "connection: authenticated connection has no principal");
    const { serialization, isGzipOn } = this.#format;
    const protocol = { serialization, compression: isGzipOn ? "gzip" : "none" };
    const { userId: user, role } = principal;
    this.#sendControl({ type: "auth_success", user, role, protocol });
  }

  #subscribe(decoded: Decoded): void {
    const principal = this.#principal;
    assert(principal !== undefined, "connection: authenticated connection has no principal");
    const { live } = this.#parts;
    const spec = this.#readSpec(decoded);
    // The old subscription with the same id ends first, to make room for the new subscription,
    // even if the new subscription is then refused.
    this.#subscriptions.close(spec.id);
    const subscription = live.subscribe({ principal, spec, sink: this });
    // The first batch may have ended the subscription or the connection.
    if (subscription.state === "ended") return;
    if (this.state === "closing") {
      subscription.close();
      return;
    }
    this.#subscriptions.add(subscription);
  }

  /**
   * Reads a subscription request from a message.
   * @throws {SubscriptionError} If the message is invalid. The error has the subscription's id if
   *   the message contains one.
   */
  #readSpec(decoded: Decoded): SubscriptionSpec {
    const id = readSubscriptionId(decoded);
    try {
      return readSpec(decoded, id, this.#parts.config.limits);
    } catch (error) {
      if (error instanceof SubscriptionError && error.response.ended) this.#subscriptions.close(id);
      throw error;
    }
  }

  #serveTopic(type: TopicRequestMessage["type"], decoded: Decoded): void {
    const id = readConsumerId(decoded, type);
    this.#consumers ??= new TopicConsumersOfSocket(this.#parts, this);
    this.#consumers.serve(type, id, objectOf(decoded.value) ?? {});
  }

  deliver(message: TopicDelivery): boolean {
    if (this.#state === "closing") return true;
    return this.#outbox.hold(frameOf({ message, encoded: [] }, this.#format));
  }

  answer(message: ControlMessage): void {
    this.#sendControl(message);
  }

  #pong(id: string | undefined): void {
    if (id === undefined) return;
    this.#sendControl({ type: "pong", id, positions: this.#subscriptions.positions() });
  }

  #sendControl(message: ControlMessage): void {
    if (this.#state !== "closing") this.#outbox.send(jsonFromMessage(message));
  }

  /** Called when the WebSocket has dropped a frame. */
  sendFailed(): void {
    this.#parts.log.warn("closing a connection because a message to its WebSocket was dropped", {
      connection: this.connectionId,
    });
    this.#close(CLOSE_INTERNAL, "send failed");
  }

  #endSession(end: SessionEnd, reason: string): void {
    // The socket is corked, so that the message and the close frame share one write: thousands of
    // a user's connections may end at the same time.
    this.#socket.cork(() => {
      this.#endAll(end);
      this.#close(CLOSE_POLICY, reason);
    });
  }

  #endAll({ code, message }: SessionEnd): void {
    const ids = this.#subscriptions.ids();
    // Consumers end with FORBIDDEN only if the token was revoked. After an expired token, they
    // continue on the client's next connection.
    if (code === "TOKEN_REVOKED") this.#consumers?.endAll("FORBIDDEN", message);
    else this.#consumers?.closeAll();
    this.#subscriptions.closeAll();
    if (ids.length === 0) this.#sendControl(errorMessage(code, PROTOCOL_WORD, message));
    for (const id of ids) this.#sendControl(errorMessage(code, id, message));
  }

  #closeIfFlushed(): void {
    const wanted = this.#closeWhenFlushed;
    if (wanted === undefined) return;
    this.#outbox.flush();
    if (this.#outbox.isEmpty) this.#close(wanted.code, wanted.reason);
  }

  #close(code: number, reason: string): void {
    if (this.#state === "closing") return;
    this.#state = "closing";
    this.#outbox.flush();
    this.#leave();
    this.#socket.close(code, reason);
  }

  #leave(): void {
    this.#state = "closing";
    this.#pending?.close();
    this.#outbox.clear();
    this.#intake?.dropWaiting();
    this.#parts.slices.forget(this);
    this.#subscriptions.closeAll();
    this.#consumers?.closeAll();
  }

  #intakeNow(): Intake {
    this.#intake ??= new Intake(this.#parts.config.limits);
    return this.#intake;
  }
}
