/**
 * In which order password hashes are computed, of which few run at a time: by turns of their
 * senders, so that whoever sends many waits for the own ones.
 *
 *     trusted:  sender ─ sender ─ sender      users with a token, and known devices
 *     others:   sender ─ sender               ◄── each lane by turns of its senders, and the two
 *                                                 lanes by turns, so that neither starves
 *
 * A bounded number waits. Beyond it the newest of whoever waits with most gives way, so nobody is
 * refused for the many of another.
 */
import { AuthError } from "./auth_error.ts";

/** On whose behalf a hash is computed. */
export interface HashTurn {
  /** One text for each sender. */
  readonly sender: string;
  /** Whether it is known who asks, or from which device. */
  readonly isTrusted: boolean;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: AuthError) => void;
}

type Lane = Map<string, Waiting[]>;

/** Some twelve seconds of work for one core: a longer wait is no service. */
const WAITING_MAX = 400;

export class HashTurns {
  readonly #trusted: Lane = new Map();
  readonly #others: Lane = new Map();
  #waitingCount = 0;
  #isTrustedNext = true;

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Resolves when it is the turn of a hash. @throws {AuthError} rate_limited */
  async wait({ isTrusted, sender }: HashTurn): Promise<void> {
    const lane = isTrusted ? this.#trusted : this.#others;
    const own = lane.get(sender) ?? [];
    if (this.#waitingCount >= WAITING_MAX && !this.#makeRoom(own.length + 1)) throw tooMany();
    await new Promise<void>((start, refuse) => {
      own.push({ start, refuse });
      lane.set(sender, own);
      this.#waitingCount += 1;
    });
  }

  /** Lets the next one begin. Returns whether there was one. */
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

  /** Refuses the newest of a sender who waits with more than `count`; false when there is none. */
  #makeRoom(count: number): boolean {
    let most: Waiting[] = [];
    for (const lane of [this.#trusted, this.#others]) {
      for (const waiting of lane.values()) if (waiting.length > most.length) most = waiting;
    }
    if (most.length <= count) return false;
    most.pop()?.refuse(tooMany());
    this.#waitingCount -= 1;
    return true;
  }
}

/** The first of the sender who has waited longest for a turn, who then goes behind the others. */
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
  return new AuthError("rate_limited", "Too many logins at once; try again soon", {
    retryAfterSeconds: 5,
  });
}
