/**
 * Schedules the computation of password hashes. Only a few may run at a time. Senders are served
 * in rotation, so that a sender of many requests delays only its own hashes.
 *
 *     trusted:  sender ─ sender ─ sender      users with a token, and known devices
 *     others:   sender ─ sender               ◄── senders of a lane take turns, and so do the
 *                                                 two lanes, so that neither starves
 *
 * The number of waiting hashes is limited. At the limit, the sender with the most waiting hashes
 * loses its newest one, so that no sender is refused because another one floods the queue. If very
 * many senders have one waiting hash each, known devices take precedence, and unknown senders are
 * refused.
 */
import { AuthError } from "./auth_error.ts";

/** The sender on whose behalf a password hash is computed. */
export interface HashTurn {
  /** An identifier of the sender of a login attempt. */
  readonly sender: string;
  /** Whether the sender is a user with a token, or a device that has logged in before. */
  readonly isTrusted: boolean;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: AuthError) => void;
}

type Lane = Map<string, Waiting[]>;

/**
 * The maximum number of waiting hashes. Computing this many keeps one core busy for about twelve
 * seconds, the longest that any caller should have to wait.
 */
const WAITING_MAX = 400;

export class HashTurns {
  readonly #trusted: Lane = new Map();
  readonly #others: Lane = new Map();
  #waitingCount = 0;
  #isTrustedNext = true;

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Waits until it is the caller's turn to compute a hash. @throws {AuthError} rate_limited */
  async wait({ isTrusted, sender }: HashTurn): Promise<void> {
    const lane = isTrusted ? this.#trusted : this.#others;
    const own = lane.get(sender) ?? [];
    if (this.#waitingCount >= WAITING_MAX && !this.#makeRoomFor(isTrusted, own.length)) {
      throw tooMany();
    }
    await new Promise<void>((start, refuse) => {
      own.push({ start, refuse });
      lane.set(sender, own);
      this.#waitingCount += 1;
    });
  }

  /** Lets the next waiting hash computation start. Returns false if none was waiting. */
  startNext(): boolean {
    const first = this.#isTrustedNext ? this.#trusted : this.#others;
    const second = this.#isTrustedNext ? this.#others : this.#trusted;
    const next = takeFirst(first) ?? takeFirst(second);
    this.#isTrustedNext = !this.#isTrustedNext;
    if (next === undefined) return false;
    this.#waitingCount -= 1;
    next.start();
    return true;
  }

  /**
   * Makes room in the queue for one more hash from a sender that already has `count` waiting
   * hashes. Returns whether there is room.
   */
  #makeRoomFor(isTrusted: boolean, count: number): boolean {
    if (isTrusted && this.#refuseOne([this.#others], 0)) return true;
    return this.#refuseOne([this.#trusted, this.#others], count + 1);
  }

  /**
   * Refuses the newest hash of the sender with the most waiting hashes. Returns false if no sender
   * has more than `count` waiting hashes.
   */
  #refuseOne(lanes: readonly Lane[], count: number): boolean {
    let from: { lane: Lane; sender: string; waiting: Waiting[] } | undefined;
    for (const lane of lanes) {
      for (const [sender, waiting] of lane) {
        if (waiting.length >= (from?.waiting.length ?? 0)) from = { lane, sender, waiting };
      }
    }
    if (from === undefined || from.waiting.length <= count) return false;
    from.waiting.pop()?.refuse(tooMany());
    if (from.waiting.length === 0) from.lane.delete(from.sender);
    this.#waitingCount -= 1;
    return true;
  }
}

/**
 * Removes the first waiting hash of the next sender in the rotation. The sender moves to the end
 * of the rotation.
 */
function takeFirst(lane: Lane): Waiting | undefined {
  for (const [sender, waiting] of lane) {
    lane.delete(sender);
    const next = waiting.shift();
    if (waiting.length > 0) lane.set(sender, waiting);
    return next;
  }
  return undefined;
}

function tooMany(): AuthError {
  return new AuthError("rate_limited", "Too many simultaneous logins; try again in a moment", {
    retryAfterSeconds: 5,
  });
}
