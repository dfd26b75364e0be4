/**
 * Queues the outgoing frames of a socket, in order. Frames queued together are sent in a single
 * write.
 *
 * In one tick, the live engine may send many small messages to a connection, and a system call for
 * a write costs about the same whatever its size. Data frames are therefore held back until the
 * flusher calls the outbox or enough frames have accumulated. With 500 subscribers and 32 writers,
 * this reduces the cost of a delivery to one sixth.
 */
import type { SocketFlusher } from "./socket_flusher.ts";

/**
 * The part of a socket that an outbox uses. Sockets in simulations also implement this interface.
 */
export interface OutboxSocket {
  /** Returns the number of bytes sent, -1 if the frame was queued, or 0 if it was dropped. */
  send(frame: string | Uint8Array): number;
  /** Combines the `send` calls made inside `write` into a single write. */
  cork(write: () => void): void;
  /** Returns the number of bytes that the network has not accepted yet. */
  getBufferedAmount(): number;
  ping(): number;
  close(code: number, reason: string): void;
  terminate(): void;
}

/**
 * The maximum total size of the held frames. Beyond this limit, they are sent immediately, so that
 * the socket's own count stays accurate.
 */
const HELD_BYTES_MAX = 65536;

type SocketFrame = string | Uint8Array;

/** The objects shared by all outboxes of a server. */
export interface OutboxParts {
  /** The current limit for a connection's queue, in bytes. */
  readonly budgetBytes: number;
  readonly flusher: SocketFlusher;
}

export interface OutboxOptions {
  readonly socket: OutboxSocket;
  readonly parts: OutboxParts;
  readonly owner: OutboxOwner;
}

/**
 * Handles the failures of an outbox. The owner is an object rather than a function, so that ten
 * thousand idle sockets do not each need a closure.
 */
export interface OutboxOwner {
  /**
   * Called when the socket has dropped a frame. The client would miss a message, so the connection
   * must end.
   */
  sendFailed(): void;
}

export class Outbox {
  readonly #socket: OutboxSocket;
  readonly #parts: OutboxParts;
  readonly #owner: OutboxOwner;
  /** The held frames. A single frame, which is the usual case, is stored without a list. */
  #held: SocketFrame | SocketFrame[] | undefined;
  /**
   * The size of the held frames, in bytes. The bytes of a text frame are estimated by its number
   * of characters until the frame reaches the socket.
   */
  #heldBytes = 0;
  /** Whether this outbox is waiting for the flusher. */
  #isDue = false;
  /**
   * Whether the last write was not fully accepted, or was corked and may therefore have left a
   * backlog. Only such sockets are asked for their backlog, because asking takes a tenth of the
   * time that a delivery takes.
   */
  #mayHaveBacklog = false;
  #bytesOut = 0;

  constructor({ socket, parts, owner }: OutboxOptions) {
    this.#socket = socket;
    this.#parts = parts;
    this.#owner = owner;
  }

  /** The number of bytes that the network has not accepted yet, including held bytes. */
  get queuedBytes(): number {
    return this.#socket.getBufferedAmount() + this.#heldBytes;
  }

  /**
   * The number of bytes passed to the socket since it opened. Text that is still queued is counted
   * in characters.
   */
  get bytesOut(): number {
    return this.#bytesOut;
  }

  /** Whether the queue exceeds the budget. If so, only messages that cannot wait may be sent. */
  get isOverBudget(): boolean {
    return this.queuedBytes > this.#parts.budgetBytes;
  }

  /** Whether the network has accepted all bytes sent. */
  get isEmpty(): boolean {
    return this.#heldBytes === 0 && this.#socket.getBufferedAmount() === 0;
  }

  /**
   * Sends a frame soon, after the held frames. Returns whether the budget allows further frames.
   */
  hold(frame: SocketFrame): boolean {
    this.#keep(frame);
    // Held frames are passed to the socket before the queue can be reported as full: if the socket
    // accepts all of them, it will never report a drain.
    if (this.#heldBytes >= HELD_BYTES_MAX || this.#isFilling) {
      this.flush();
      return !this.isOverBudget;
    }
    if (!this.#isDue) {
      this.#isDue = true;
      this.#parts.flusher.add(this);
    }
    return true;
  }

  /** Called by the flusher in the tick requested by this outbox. */
  flushDue(): void {
    this.#isDue = false;
    this.#writeHeld();
  }

  /** Sends a frame now, after the held frames. */
  send(frame: SocketFrame): void {
    this.flush();
    this.#write(frame);
  }

  /** Passes all held frames to the socket. */
  flush(): void {
    // A corked write may leave a backlog. The runtime also corks the socket while it handles a
    // message.
    this.#mayHaveBacklog = true;
    this.#writeHeld();
  }

  #writeHeld(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#heldBytes = 0;
    if (!Array.isArray(held)) {
      this.#write(held);
      return;
    }
    this.#mayHaveBacklog = true;
    this.#socket.cork(() => {
      for (const frame of held) {
        if (!this.#write(frame)) return;
      }
    });
  }

  /** Discards the held frames, because the client has disconnected. */
  clear(): void {
    this.#held = undefined;
    this.#heldBytes = 0;
  }

  /** Whether the held frames and the network's backlog together exceed the budget. */
  get #isFilling(): boolean {
    if (!this.#mayHaveBacklog) return this.#heldBytes > this.#parts.budgetBytes;
    const backlog = this.#socket.getBufferedAmount();
    this.#mayHaveBacklog = backlog > 0;
    return backlog + this.#heldBytes > this.#parts.budgetBytes;
  }

  #keep(frame: SocketFrame): void {
    if (this.#held === undefined) this.#held = frame;
    else if (Array.isArray(this.#held)) this.#held.push(frame);
    else this.#held = [this.#held, frame];
    this.#heldBytes += frame.length;
  }

  /** Writes a frame. Returns false if the frame was dropped. */
  #write(frame: SocketFrame): boolean {
    const sent = this.#socket.send(frame);
    if (sent === -1) this.#mayHaveBacklog = true;
    this.#bytesOut += sent === -1 ? frame.length : sent;
    if (sent !== 0) return true;
    this.#owner.sendFailed();
    return false;
  }
}
