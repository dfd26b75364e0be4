/**
 * Manages many deadlines with a single timer, because thousands of timers would take up more
 * memory than the waiting work. The deadlines form a binary heap. Each item stores its position in
 * the heap, so that it can be removed in logarithmic time.
 *
 * Invariant: while there are items, a timer is set that fires no later than the earliest deadline.
 */
import type { CancelTimer, Clock } from "./clock.ts";

export interface TimedItem {
  /** The deadline of an item, on the monotonic clock. */
  readonly dueMs: number;
  /**
   * The item's position in the heap; -1 if it is not in the heap. Only {@linkcode Deadlines}
   * changes it.
   */
  heapIndex: number;
  /** Called once at the deadline, after the item has been removed from the heap. */
  onDue(): void;
}

export class Deadlines<T extends TimedItem> {
  readonly #clock: Clock;
  readonly #heap: T[] = [];
  #cancelTimer: CancelTimer | undefined;
  #timerMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns all items, in no particular order. The list is a copy, so items may be added or
   * removed while it is being traversed.
   */
  get items(): readonly T[] {
    return [...this.#heap];
  }

  add(item: T): void {
    this.#heap.push(item);
    this.#rise(item, this.#heap.length - 1);
    this.#setTimer();
  }

  /** Removes an item. Has no effect if the item is not in the heap. */
  remove(item: T): void {
    const index = item.heapIndex;
    if (index < 0) return;
    item.heapIndex = -1;
    const last = this.#heap.pop();
    if (last !== undefined && last !== item) {
      this.#sink(last, index);
      this.#rise(last, last.heapIndex);
    }
    if (this.#heap.length === 0) this.#stopTimer();
  }

  /**
   * Sets the timer for the earliest deadline. If the earliest item is removed, the timer is kept:
   * when a timer fires too early, it is simply set again.
   */
  #setTimer(): void {
    const dueMs = this.#heap[0]?.dueMs;
    if (dueMs === undefined || this.#timerMs <= dueMs) return;
    this.#stopTimer();
    this.#timerMs = dueMs;
    this.#cancelTimer = this.#clock.after(Math.max(0, dueMs - this.#clock.monotonicMs()), () => {
      this.#timerMs = Infinity;
      this.#endDue();
      this.#setTimer();
    });
  }

  #endDue(): void {
    const nowMs = this.#clock.monotonicMs();
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.dueMs > nowMs) return;
      this.remove(first);
      first.onDue();
    }
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#timerMs = Infinity;
  }

  #rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#heap[parentIndex];
      if (parent === undefined || parent.dueMs <= item.dueMs) break;
      this.#put(parent, index);
      index = parentIndex;
    }
    this.#put(item, index);
  }

  #sink(item: T, from: number): void {
    let index = from;
    for (;;) {
      const left = this.#heap[2 * index + 1];
      const right = this.#heap[2 * index + 2];
      const child =
        right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left;
      if (child === undefined || child.dueMs >= item.dueMs) break;
      const childIndex = child.heapIndex;
      this.#put(child, index);
      index = childIndex;
    }
    this.#put(item, index);
  }

  #put(item: T, index: number): void {
    this.#heap[index] = item;
    item.heapIndex = index;
  }
}
