/**
 * Delivers a subscription as server-sent events, for clients that cannot open a WebSocket.
 *
 *     live engine ──send──► queue ──pull──► network
 *                             │
 *                             └─ over `websocket.send_queue_bytes`: the subscription waits at its
 *                                position until the network has taken what is queued
 *
 * Batches are sent without requests from the client, each as soon as the queue has space. A stream
 * that has ended stays open until the network has accepted its queue. If the caller's session has
 * ended, the stream closes after a moment, whether or not the client reads. Invariant: the id of
 * an event is a position from which the client can resume without missing anything. An event
 * without such a position, for example a delete in the middle of a net replay, has no id. The
 * client then keeps the id of an earlier event.
 */
import type { Principal } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { LiveSink, LiveSubscription, SharedMessage } from "../../live/mod.ts";
import type { DataMessage, ErrorMessage } from "../../protocol/mod.ts";
import type { ConnectionRow } from "../../sql/mod.ts";
import { errorMessage } from "../frames/client_message.ts";
import { jsonFromMessage } from "../frames/encode.ts";
import { lastEvent, retryLine, STREAM_WORD } from "../http/ended_stream.ts";
import { eventIdEnd } from "../http/event_ids.ts";
import {
  connectionRow,
  EXPIRED,
  isOverdue,
  type OpenConnection,
  REVOKED,
  type SessionEnd,
} from "./open_connection.ts";
import type { SendBudget } from "./send_budget.ts";

/** How long a client whose session has ended may continue to read its queue, in milliseconds. */
const FAREWELL_MS_MAX = 500;

/** A comment line, which tells proxies and clients that the stream is alive. */
const COMMENT_LINE = ":\n\n";

export interface EventStreamOptions {
  readonly connectionId: string;
  readonly principal: Principal;
  readonly address: string;
  /** Whether the bytes on the wire are compressed. Queued bytes are counted before compression. */
  readonly isCompressed: boolean;
  /**
   * Whether the changes sent during loading are net effects. Their seqs are not positions from
   * which a client can resume.
   */
  readonly isNetReplay: boolean;
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly sendBudget: Pick<SendBudget, "queueBytes">;
  readonly commentEveryMs: number;
  /**
   * Called when nothing more will be queued. From then on, a client that does not read the rest of
   * the queue may be disconnected.
   */
  readonly onEnding: () => void;
  /** Called when the stream is over, whether the client or the server ended it. */
  readonly onClosed: () => void;
}

export class EventStream implements LiveSink, OpenConnection {
  readonly transport = "sse";
  /** The backpressure state, managed by the live engine. */
  backpressure: unknown;
  readonly #options: EventStreamOptions;
  readonly #openedMs: number;
  readonly #encoder = new TextEncoder();
  #subscription: LiveSubscription | undefined;
  #queue: Uint8Array<ArrayBuffer>[] = [];
  #queuedBytes = 0;
  #bytesOut = 0;
  #lastSentMs: number;
  #lastTakenMs: number;
  #isLoading = true;
  /** The suffix of every event id, which follows the position. */
  #idEnd: string;
  #wantsBatch = false;
  #isPaused = false;
  /** Whether no further message will be queued. The stream closes once the queue is empty. */
  #isEnding = false;
  #isClosed = false;
  /** Resumes the network's pending read; set while the network waits for data. */
  #wake: (() => void) | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** The last message, sent after everything else when the server stops. */
  #farewell: ErrorMessage | undefined;
  #cancelFarewell: CancelTimer | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#openedMs = options.clock.monotonicMs();
    this.#lastSentMs = this.#openedMs;
    this.#lastTakenMs = this.#openedMs;
    this.#idEnd = eventIdEnd({ userId: options.principal.userId, claims: undefined });
    this.#enqueue(retryLine());
  }

  get address(): string {
    return this.#options.address;
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get connectionId(): string {
    return this.#options.connectionId;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether the event stream no longer accepts messages. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Sets the subscription whose messages the stream sends. */
  carry(subscription: LiveSubscription): void {
    // The subscription may already have ended.
    if (this.#isEnding) subscription.close();
    else this.#subscription = subscription;
  }

  /** Returns the body of the response. */
  body(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: async (controller) => {
        try {
          await this.#pull(controller);
        } catch (error) {
          this.#failed(error);
        }
      },
      cancel: () => this.closeNow(),
    });
  }

  send({ message }: SharedMessage): boolean {
    if (this.#isEnding) return true;
    this.#enqueue(this.#eventOf(message));
    if (message.type === "initial_data_batch") {
      this.#isLoading = message.batch_control.has_more;
      this.#wantsBatch = message.batch_control.has_more;
      // The request for the next batch is deferred, because the engine itself calls this method.
      if (this.#wantsBatch) queueMicrotask(() => this.#askLater());
    }
    const hasRoom = this.#queuedBytes <= this.#options.sendBudget.queueBytes;
    if (!hasRoom) this.#isPaused = true;
    return hasRoom;
  }

  end(message: ErrorMessage): void {
    this.#subscription = undefined;
    // The message is sent last, because a client that reconnected immediately would reach a server
    // that is still shutting down.
    if (message.code === "SHUTTING_DOWN") this.#farewell = message;
    else this.#finish(message);
  }

  tick(): void {
    if (this.#isEnding) return;
    const { clock, principal } = this.#options;
    if (isOverdue(clock, principal)) {
      this.#endSession(EXPIRED);
      return;
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lastSentMs < this.#options.commentEveryMs) return;
    // If the queue is not empty, the client is not reading, and a comment would only make the
    // queue longer.
    if (this.#queuedBytes === 0) this.#enqueue(COMMENT_LINE);
  }

  revoke(): void {
    this.#endSession(REVOKED);
  }

  kill(): void {
    this.#finish(
      errorMessage("KILLED", STREAM_WORD, "The connection was closed by KILL CONNECTION"),
    );
    this.#closeSoon();
  }

  shutDown(): void {
    this.#finish(this.#farewell);
  }

  closeNow(): void {
    this.#isEnding = true;
    this.#queue = [];
    this.#queuedBytes = 0;
    // If the client has already disconnected, nobody receives the error.
    if (!this.#isClosed) this.#controller?.error(new Error("The stream was closed"));
    this.#closed();
  }

  row(): ConnectionRow | undefined {
    if (this.#isClosed) return undefined;
    const { address, clock, isCompressed, principal } = this.#options;
    return connectionRow(clock, {
      connectionId: this.connectionId,
      principal,
      transport: this.transport,
      clientAddress: address,
      serialization: "json",
      compression: isCompressed ? "gzip" : "none",
      subscriptions: this.#subscription === undefined ? 0 : 1,
      bytesIn: 0,
      bytesOut: this.#bytesOut,
      queuedBytes: this.#queuedBytes,
      openedMs: this.#openedMs,
      lastSeenMs: this.#lastTakenMs,
    });
  }

  /** Passes the queue to the network, or waits for more data. */
  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#queue.length === 0 && !this.#isEnding) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#lastTakenMs = this.#options.clock.monotonicMs();
    if (this.#queue.length > 0) {
      const bytes = this.#queue.length === 1 ? this.#queue[0] : Buffer.concat(this.#queue);
      this.#queue = [];
      this.#bytesOut += this.#queuedBytes;
      this.#queuedBytes = 0;
      if (bytes !== undefined) controller.enqueue(bytes);
      this.#drained();
    }
    if (!this.#isEnding || this.#queue.length > 0) return;
    if (!this.#isClosed) controller.close();
    this.#closed();
  }

  /**
   * Requests the next batch in a separate tick. No caller waits for it, so errors are handled
   * here.
   */
  #askLater(): void {
    try {
      this.#askForBatch();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Ends the stream after a bug, and sends its client an error ahead of the rest of the queue. */
  #failed(error: unknown): void {
    this.#options.onBug(error, "a stream of events", { connection: this.connectionId });
    if (this.#isClosed) return;
    const message = "The subscription has ended because of an internal error";
    const last = errorMessage("SUBSCRIPTION_FAILED", STREAM_WORD, message);
    this.#controller?.enqueue(this.#encoder.encode(lastEvent(last.code, jsonFromMessage(last))));
    this.#controller?.close();
    this.#isEnding = true;
    this.#closed();
  }

  #drained(): void {
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#subscription?.drained();
    }
    this.#askForBatch();
  }

  #askForBatch(): void {
    if (!this.#wantsBatch || this.#queuedBytes > this.#options.sendBudget.queueBytes) return;
    if (this.#subscription === undefined) return;
    this.#wantsBatch = false;
    this.#subscription.nextBatch();
  }

  #finish(message: ErrorMessage | undefined): void {
    if (this.#isEnding) return;
    if (message !== undefined) {
      this.#enqueue(lastEvent(message.code, jsonFromMessage(message)));
    }
    this.#isEnding = true;
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.close();
    this.#options.onEnding();
    this.#wake?.();
  }

  #endSession({ code, message }: SessionEnd): void {
    this.#finish(errorMessage(code, STREAM_WORD, message));
    this.#closeSoon();
  }

  /**
   * Closes the stream after a delay. In that time, a client that is reading can receive everything
   * and disconnect.
   */
  #closeSoon(): void {
    if (this.#isClosed) return;
    this.#cancelFarewell ??= this.#options.clock.after(FAREWELL_MS_MAX, () => this.closeNow());
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelFarewell?.();
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.close();
    this.#wake?.();
    this.#options.onClosed();
  }

  #enqueue(text: string): void {
    const bytes = this.#encoder.encode(text);
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#lastSentMs = this.#options.clock.monotonicMs();
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    // The promise resolves after all messages of this tick have been queued, so they are sent
    // together.
    wake();
  }

  #eventOf(message: DataMessage): string {
    const id = this.#idOf(message);
    if (message.type === "subscription_ack" && message.claims !== undefined) {
      const { userId } = this.principal;
      this.#idEnd = eventIdEnd({ userId, claims: message.claims });
    }
    const idLine = id === undefined ? "" : `id: ${id}${this.#idEnd}\n`;
    return `event: ${message.type}\n${idLine}data: ${jsonFromMessage(message)}\n\n`;
  }

  /**
   * Returns the position from which a client that has received this message can resume; undefined
   * if there is none.
   */
  #idOf(message: DataMessage): number | undefined {
    if (message.type !== "change") return message.batch_control.last_seq_id ?? undefined;
    const { commit_end: isCommitEnd, commit_seq: commitSeq } = message;
    // A materialised query has a valid position only after all changes of a commit.
    if (isCommitEnd !== undefined) return isCommitEnd && !this.#isLoading ? commitSeq : undefined;
    if (this.#isLoading && this.#options.isNetReplay) return undefined;
    const last = message.rows.at(-1) ?? message.old_values?.at(-1);
    const seq = last?.["_seq"];
    return typeof seq === "number" ? seq : undefined;
  }
}
