/**
 * When outboxes write what they hold: at the end of the turn, so many sockets at once, and the rest
 * in later turns, those that have waited longest first.
 *
 * A write costs the system about 5 µs, whatever its size. A change that goes to 5,000 sockets is
 * 25 ms of writing, in which nothing else would run; in slices, commits go on meanwhile, and their
 * frames join those of the sockets whose turn is still to come. So the busier the server is, the
 * more frames share a write: under load a delivery costs a third.
 *
 * Topics of the runtime write no sooner, and know no budget.
 *
 * Invariant: an outbox that holds frames is in the queue, or has a queued turn behind it.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";

/** Sockets of one turn: a little more than a millisecond. */
const WRITES_PER_TURN = 256;

/** Sockets of the first turn, after which whoever made the change is answered: 2.5 ms sooner. */
const FIRST_WRITES = 32;

interface Flushable {
  /** Writes what it holds, which may be nothing any more. */
  flushDue(): void;
}

export class SocketFlusher {
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  #queue: Flushable[] = [];
  /** How many of the queue have had their turn. */
  #doneCount = 0;
  #isScheduled = false;
  /** How many are written in the next turn. */
  #writes = FIRST_WRITES;
  readonly #turn = (): void => {
    const end = Math.min(this.#queue.length, this.#doneCount + this.#writes);
    while (this.#doneCount < end) {
      const next = this.#queue[this.#doneCount];
      this.#doneCount += 1;
      try {
        next?.flushDue();
      } catch (error) {
        this.#onBug(error, "a write to a socket");
      }
    }
    if (this.#doneCount < this.#queue.length) {
      this.#forgetDone();
      this.#writes = WRITES_PER_TURN;
      void this.#clock.yield().then(this.#turn);
      return;
    }
    this.#queue = [];
    this.#doneCount = 0;
    this.#writes = FIRST_WRITES;
    this.#isScheduled = false;
  };

  /** @param onBug Called for a bug in one socket; the other sockets are still written to. */
  constructor(clock: Clock, onBug: OnBug) {
    this.#clock = clock;
    this.#onBug = onBug;
  }

  /** Asks for a turn of an outbox that has none yet. */
  add(outbox: Flushable): void {
    this.#queue.push(outbox);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(this.#turn);
  }

  /** While sockets come again sooner than the queue ends, it must not grow for ever. */
  #forgetDone(): void {
    if (this.#doneCount * 2 < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#doneCount);
    this.#doneCount = 0;
  }
}
