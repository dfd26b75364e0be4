/**
 * What goes out on one socket: frames in order, those that come together in one write.
 *
 * A turn of the live engine may send a connection many small messages, and a write costs the
 * system the same whatever its size. So data frames are held until the flusher gives the outbox its
 * turn or enough of them have come: with 500 subscribers and 32 writers a delivery costs 1.0 µs
 * instead of 6.3.
 */
import type { SocketFlusher } from "./socket_flusher.ts";

/** What a connection needs of a socket; the runtime's own has it, and so has a simulated one. */
export interface Socket {
  /** Bytes sent, -1 when queued, 0 when dropped. */
  send(frame: string | Uint8Array): number;
  /** Writes what `send` calls inside hand over at once. */
  cork(write: () => void): void;
  /** Bytes that the network has not taken yet. */
  getBufferedAmount(): number;
  ping(): number;
  close(code: number, reason: string): void;
  terminate(): void;
}

/** Held bytes above which they go out at once, so that the socket's own count is near the truth. */
const HELD_BYTES_MAX = 65536;

type Frame = string | Uint8Array;

/** What all outboxes of a server share. */
export interface OutboxParts {
  /** `websocket.send_queue_bytes`. */
  readonly budgetBytes: number;
  readonly flusher: SocketFlusher;
}

export interface OutboxOptions {
  readonly socket: Socket;
  readonly parts: OutboxParts;
  readonly owner: OutboxOwner;
}

/** An object rather than a function: ten thousand idle sockets need not have one each. */
export interface OutboxOwner {
  /** The socket took nothing of a frame: its client would miss a message. */
  sendFailed(): void;
}

export class Outbox {
  readonly #socket: Socket;
  readonly #parts: OutboxParts;
  readonly #owner: OutboxOwner;
  /** Most often one frame, which then needs no list. */
  #held: Frame | Frame[] | undefined;
  /** Text counts its characters: an estimate until the socket has it. */
  #heldBytes = 0;
  /** The flusher has it in its queue. */
  #isDue = false;
  /**
   * Asking the socket costs a tenth of a delivery, so only those are asked whose last write was not
   * taken whole, or was corked and may have left something behind.
   */
  #mayHaveBacklog = false;
  #bytesOut = 0;

  constructor({ socket, parts, owner }: OutboxOptions) {
    this.#socket = socket;
    this.#parts = parts;
    this.#owner = owner;
  }

  /** Bytes that the network has not taken yet, those held included. */
  get queuedBytes(): number {
    return this.#socket.getBufferedAmount() + this.#heldBytes;
  }

  /** Bytes handed to the socket since it is open; of text that had to wait, its characters. */
  get bytesOut(): number {
    return this.#bytesOut;
  }

  /** Whether more is queued than the budget allows: then only what must be sent is. */
  get isOverBudget(): boolean {
    return this.queuedBytes > this.#parts.budgetBytes;
  }

  /** Whether the network has taken everything. */
  get isEmpty(): boolean {
    return this.#heldBytes === 0 && this.#socket.getBufferedAmount() === 0;
  }

  /** Sends a frame soon, behind those held. Returns whether there is room for more. */
  hold(frame: Frame): boolean {
    this.#keep(frame);
    // A socket that takes all of it tells of no drain, so only its own count may say "full".
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

  /** The turn that the flusher was asked for. */
  flushDue(): void {
    this.#isDue = false;
    this.#writeHeld();
  }

  /** Sends a frame now, behind those held. */
  send(frame: Frame): void {
    this.flush();
    this.#write(frame);
  }

  /** Hands all held frames to the socket. */
  flush(): void {
    // In the turn of a client's message the runtime corks, too.
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

  /** Forgets what is held: nobody is left to read it. */
  clear(): void {
    this.#held = undefined;
    this.#heldBytes = 0;
  }

  /** Whether what is held fills the budget, on top of what the network has not taken yet. */
  get #isFilling(): boolean {
    if (!this.#mayHaveBacklog) return this.#heldBytes > this.#parts.budgetBytes;
    const backlog = this.#socket.getBufferedAmount();
    this.#mayHaveBacklog = backlog > 0;
    return backlog + this.#heldBytes > this.#parts.budgetBytes;
  }

  #keep(frame: Frame): void {
    if (this.#held === undefined) this.#held = frame;
    else if (Array.isArray(this.#held)) this.#held.push(frame);
    else this.#held = [this.#held, frame];
    this.#heldBytes += frame.length;
  }

  /** Returns false when the frame was dropped. */
  #write(frame: Frame): boolean {
    const sent = this.#socket.send(frame);
    if (sent === -1) this.#mayHaveBacklog = true;
    this.#bytesOut += sent === -1 ? frame.length : sent;
    if (sent !== 0) return true;
    this.#owner.sendFailed();
    return false;
  }
}
