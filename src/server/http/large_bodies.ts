/**
 * How many bytes of large bodies one user may have in memory. A body is held whole until its
 * request is answered, and a file that is uploaded may have 100 MiB: six requests of one user took
 * a gigabyte. Those beyond wait for the ones before, in the order in which they came, and are not
 * read meanwhile: the network holds their sender back.
 *
 * Invariant: a user holds at most `bytesMax`, or one body.
 */
import { assert } from "../../base/assert.ts";

/** Smaller ones do not wait, and nothing is remembered of them. */
export const LARGE_BODY_BYTES: number = 1 << 20;

/** The room of one request. */
export interface BodyRoom {
  /** Calls back once so many bytes may be read: at once, or when others have been answered. */
  take(bytes: number, start: () => void): void;
  /** The request is answered, or its client is gone. May be called again, and then does nothing. */
  leave(): void;
}

interface Waiting {
  readonly room: Room;
  readonly bytes: number;
  readonly start: () => void;
}

/** What one user has in memory, and waits with. */
interface Sender {
  heldBytes: number;
  roomCount: number;
  readonly waiting: Waiting[];
}

export class LargeBodies {
  readonly #bytesMax: number;
  /** Those with a room. */
  readonly #senders = new Map<string, Sender>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The room of a request of a user, who is to leave it in any case. */
  enter(userId: string): BodyRoom {
    let sender = this.#senders.get(userId);
    if (sender === undefined) {
      sender = { heldBytes: 0, roomCount: 0, waiting: [] };
      this.#senders.set(userId, sender);
    }
    sender.roomCount += 1;
    return new Room(sender, this.#bytesMax, () => this.#senders.delete(userId));
  }

  /** How many users have large bodies under way. */
  get senderCount(): number {
    return this.#senders.size;
  }
}

class Room implements BodyRoom {
  readonly #sender: Sender;
  readonly #bytesMax: number;
  readonly #onEmpty: () => void;
  #heldBytes = 0;
  #hasLeft = false;

  constructor(sender: Sender, bytesMax: number, onEmpty: () => void) {
    this.#sender = sender;
    this.#bytesMax = bytesMax;
    this.#onEmpty = onEmpty;
  }

  take(bytes: number, start: () => void): void {
    assert(this.#heldBytes === 0, "a request has one body");
    if (this.#hasLeft) return;
    this.#sender.waiting.push({ room: this, bytes, start });
    this.#admit();
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const { waiting } = this.#sender;
    const place = waiting.findIndex(({ room }) => room === this);
    if (place >= 0) waiting.splice(place, 1);
    this.#sender.heldBytes -= this.#heldBytes;
    this.#sender.roomCount -= 1;
    if (this.#sender.roomCount === 0) this.#onEmpty();
    else this.#admit();
  }

  /** Lets those begin that have waited longest, as far as there is room. */
  #admit(): void {
    const sender = this.#sender;
    for (let next = sender.waiting[0]; next !== undefined; next = sender.waiting[0]) {
      const { bytes, room, start } = next;
      if (sender.heldBytes > 0 && sender.heldBytes + bytes > this.#bytesMax) return;
      sender.waiting.shift();
      sender.heldBytes += bytes;
      room.#heldBytes = bytes;
      start();
    }
  }
}
