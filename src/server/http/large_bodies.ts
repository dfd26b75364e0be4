/**
 * Limits the bytes of large bodies in memory, per user and for all users together. A body is held
 * whole until its request is answered, and an upload may have 100 MiB: six requests of one user
 * took a gigabyte. Bodies beyond the limits wait in order of arrival and are not read meanwhile.
 * Flow control holds their senders back, except for the first megabyte, which `body_ledger.ts`
 * counts.
 *
 * Invariants: a user holds at most `userBytesMax`, or one body; all users hold at most `bytesMax`,
 * or one body; no later body overtakes one that waits for the second limit.
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

/** The large bodies of one user in memory. */
interface Sender {
  heldBytes: number;
  roomCount: number;
}

export interface LargeBodyBounds {
  readonly userBytesMax: number;
  readonly bytesMax: number;
}

export class LargeBodies {
  readonly #bounds: LargeBodyBounds;
  /** Those with a room. */
  readonly #senders = new Map<string, Sender>();
  readonly #waiting: Waiting[] = [];
  #heldBytes = 0;

  constructor(bounds: LargeBodyBounds) {
    this.#bounds = bounds;
  }

  /** The room of a request of a user, who is to leave it in any case. */
  enter(userId: string): BodyRoom {
    let sender = this.#senders.get(userId);
    if (sender === undefined) {
      sender = { heldBytes: 0, roomCount: 0 };
      this.#senders.set(userId, sender);
    }
    sender.roomCount += 1;
    return new Room(sender, {
      wait: (next) => {
        this.#waiting.push(next);
        this.#admit();
      },
      leave: (room) => this.#leave(userId, room),
    });
  }

  /** How many users have large bodies under way. */
  get senderCount(): number {
    return this.#senders.size;
  }

  #leave(userId: string, { heldBytes, sender }: Room): void {
    const waiting = this.#waiting;
    const place = waiting.findIndex(({ room }) => room.hasLeft);
    if (place >= 0) waiting.splice(place, 1);
    sender.heldBytes -= heldBytes;
    this.#heldBytes -= heldBytes;
    sender.roomCount -= 1;
    if (sender.roomCount === 0) this.#senders.delete(userId);
    this.#admit();
  }

  /** Lets those begin that have waited longest, as far as there is room. */
  #admit(): void {
    const { bytesMax, userBytesMax } = this.#bounds;
    const waiting = this.#waiting;
    // Bodies of one user never overtake each other.
    const full = new Set<Sender>();
    for (let index = 0; index < waiting.length; ) {
      const next = waiting[index];
      if (next === undefined) return;
      const { bytes, room, start } = next;
      const { sender } = room;
      if (full.has(sender) || isBeyond(sender.heldBytes, bytes, userBytesMax)) {
        full.add(sender);
        index += 1;
        continue;
      }
      if (isBeyond(this.#heldBytes, bytes, bytesMax)) return;
      waiting.splice(index, 1);
      sender.heldBytes += bytes;
      this.#heldBytes += bytes;
      room.heldBytes = bytes;
      start();
    }
  }
}

/** A single body always fits. */
function isBeyond(heldBytes: number, bytes: number, bytesMax: number): boolean {
  return heldBytes > 0 && heldBytes + bytes > bytesMax;
}

interface Rooms {
  readonly wait: (waiting: Waiting) => void;
  readonly leave: (room: Room) => void;
}

class Room implements BodyRoom {
  readonly sender: Sender;
  heldBytes = 0;
  hasLeft = false;
  readonly #rooms: Rooms;

  constructor(sender: Sender, rooms: Rooms) {
    this.sender = sender;
    this.#rooms = rooms;
  }

  take(bytes: number, start: () => void): void {
    assert(this.heldBytes === 0, "a request has one body");
    if (!this.hasLeft) this.#rooms.wait({ room: this, bytes, start });
  }

  leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    this.#rooms.leave(this);
  }
}
