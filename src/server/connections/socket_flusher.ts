/**
 * Schedules the writes of outboxes: a limited number of sockets at the end of the tick, and the
 * others in later ticks, in the order in which they were queued.
 *
 * A write takes about 5 µs, whatever its size, so writing a change to 5,000 sockets takes 25 ms.
 * Because the writes are spread over ticks, commits continue in between, and their frames join
 * those of the sockets still waiting. The busier the server, the more frames share a write.
 *
 * The runtime's own publish mechanism would not write any sooner, and has no budget.
 *
 * Invariant: if an outbox holds frames, it is in the queue, or a scheduled tick will flush it.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";

/** The number of sockets written to per tick. The writes take a little more than a millisecond. */
const WRITES_PER_TICK = 256;

/**
 * The number of sockets written to in the first tick. It is small, so that the client that made
 * the change gets its response early.
 */
const FIRST_WRITES = 32;

interface Flushable {
  /** Writes the remaining held frames, if there are any. */
  flushDue(): void;
}

export class SocketFlusher {
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  #queue: Flushable[] = [];
  /** The number of queue entries already processed. */
  #doneCount = 0;
  #isScheduled = false;
  /** The number of sockets to be written to in the next tick. */
  #writes = FIRST_WRITES;
  readonly #tick = (): void => {
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
      this.#writes = WRITES_PER_TICK;
      void this.#clock.yield().then(this.#tick);
      return;
    }
    this.#queue = [];
    this.#doneCount = 0;
    this.#writes = FIRST_WRITES;
    this.#isScheduled = false;
  };

  /**
   * Creates the scheduler for socket writes.
   * @param onBug Called after a bug in one socket. The other sockets are still written to.
   */
  constructor(clock: Clock, onBug: OnBug) {
    this.#clock = clock;
    this.#onBug = onBug;
  }

  /** Queues an outbox unless it is already queued. */
  add(outbox: Flushable): void {
    this.#queue.push(outbox);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(this.#tick);
  }

  /**
   * Removes processed entries. Sockets may be queued again before the queue is empty, and the
   * queue must not grow without limit.
   */
  #forgetDone(): void {
    if (this.#doneCount * 2 < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#doneCount);
    this.#doneCount = 0;
  }
}
