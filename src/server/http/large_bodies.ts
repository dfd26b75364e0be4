/**
 * Limits the memory for large bodies, per user and for all users together. A body stays in memory
 * until its request is answered, and an upload may be 100 MiB in size: without the limits, six
 * requests from one user would take a gigabyte. Bodies that exceed the limits wait in the order of
 * their arrival, and are not read while they wait. Flow control stops their senders after the
 * first megabyte, which `body_ledger.ts` counts.
 *
 * Invariants: the bodies of one user occupy at most `userBytesMax`, unless there is only one; the
 * bodies of all users together occupy at most `bytesMax`, unless there is only one; no later body
 * overtakes a body that waits because of the second limit.
 */
import { assert } from "../../base/assert.ts";

/**
 * Bodies of this size or more count as large. Smaller bodies never wait, and no state is kept for
 * them.
 */
export const LARGE_BODY_BYTES: number = 1 << 20;

/** Admits the body of one request to memory. */
export interface BodyAdmission {
  /**
   * Calls `start` once `bytes` may be read: immediately, or after other requests have been
   * answered.
   */
  take(bytes: number, start: () => void): void;
  /**
   * Releases the memory and removes the body from the queue. Must be called when the request has
   * been answered or its client has disconnected. Further calls have no effect.
   */
  leave(): void;
}

interface WaitingBody {
  readonly admission: Admission;
  readonly bytes: number;
  readonly start: () => void;
}

/** How much memory one user's large bodies occupy, and how many requests they belong to. */
interface Sender {
  heldBytes: number;
  admissionCount: number;
}

export interface LargeBodyBounds {
  readonly userBytesMax: number;
  readonly bytesMax: number;
}

export class LargeBodies {
  readonly #bounds: LargeBodyBounds;
  /** The users who are sending large bodies. */
  readonly #senders = new Map<string, Sender>();
  readonly #waiting: WaitingBody[] = [];
  #heldBytes = 0;

  constructor(bounds: LargeBodyBounds) {
    this.#bounds = bounds;
  }

  /**
   * Returns the object that admits the body of a user's request. The caller must always call
   * `leave`.
   */
  enter(userId: string): BodyAdmission {
    let sender = this.#senders.get(userId);
    if (sender === undefined) {
      sender = { heldBytes: 0, admissionCount: 0 };
      this.#senders.set(userId, sender);
    }
    sender.admissionCount += 1;
    return new Admission(sender, {
      wait: (next) => {
        this.#waiting.push(next);
        this.#admit();
      },
      leave: (admission) => this.#leave(userId, admission),
    });
  }

  /** The total size of the large bodies that have been admitted to memory. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get senderCount(): number {
    return this.#senders.size;
  }

  #leave(userId: string, { heldBytes, sender }: Admission): void {
    const waiting = this.#waiting;
    const place = waiting.findIndex(({ admission }) => admission.hasLeft);
    if (place >= 0) waiting.splice(place, 1);
    sender.heldBytes -= heldBytes;
    this.#heldBytes -= heldBytes;
    sender.admissionCount -= 1;
    if (sender.admissionCount === 0) this.#senders.delete(userId);
    this.#admit();
  }

  /** Admits as many waiting bodies as the limits allow, oldest first. */
  #admit(): void {
    const { bytesMax, userBytesMax } = this.#bounds;
    const waiting = this.#waiting;
    // Once one body of a user does not fit, all later bodies of that user are skipped, so that
    // each user's bodies are admitted in the order in which they arrived.
    const full = new Set<Sender>();
    for (let index = 0; index < waiting.length; ) {
      const next = waiting[index];
      if (next === undefined) return;
      const { bytes, admission, start } = next;
      const { sender } = admission;
      if (full.has(sender) || isBeyond(sender.heldBytes, bytes, userBytesMax)) {
        full.add(sender);
        index += 1;
        continue;
      }
      if (isBeyond(this.#heldBytes, bytes, bytesMax)) return;
      waiting.splice(index, 1);
      sender.heldBytes += bytes;
      this.#heldBytes += bytes;
      admission.heldBytes = bytes;
      start();
    }
  }
}

/** A body is always admitted if no other body is in memory. */
function isBeyond(heldBytes: number, bytes: number, bytesMax: number): boolean {
  return heldBytes > 0 && heldBytes + bytes > bytesMax;
}

interface Admissions {
  readonly wait: (waiting: WaitingBody) => void;
  readonly leave: (admission: Admission) => void;
}

class Admission implements BodyAdmission {
  readonly sender: Sender;
  heldBytes = 0;
  hasLeft = false;
  readonly #admissions: Admissions;

  constructor(sender: Sender, admissions: Admissions) {
    this.sender = sender;
    this.#admissions = admissions;
  }

  take(bytes: number, start: () => void): void {
    assert(this.heldBytes === 0, "body admission: the request already holds space for a body");
    if (!this.hasLeft) this.#admissions.wait({ admission: this, bytes, start });
  }

  leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    this.#admissions.leave(this);
  }
}
