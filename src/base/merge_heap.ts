/**
 * Merges sorted inputs with a binary heap. The input at the top of the heap has the smallest next
 * item.
 *
 *     push each input; then, as long as there is a first one:
 *     read its item, move it on ──► restoreFirst
 *                         or, at its end, removeFirst
 *
 * While inputs are in the heap, the relative order of the inputs below the top must not change.
 */
import { defined } from "./assert.ts";

export class MergeHeap<Head> {
  readonly #isBefore: (left: Head, right: Head) => boolean;
  readonly #heads: Head[] = [];

  /**
   * Creates an empty heap.
   * @param isBefore Returns whether the next item of the input `left` comes before that of
   *   `right`.
   */
  constructor(isBefore: (left: Head, right: Head) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): Head | undefined {
    return this.#heads[0];
  }

  push(head: Head): void {
    const heads = this.#heads;
    let at = heads.push(head) - 1;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const other = defined(heads[above], "merge heap: parent entry is missing");
      if (!this.#isBefore(head, other)) break;
      heads[at] = other;
      at = above;
    }
    heads[at] = head;
  }

  /** Restores the heap order after the input at the top has advanced to its next item. */
  restoreFirst(): void {
    const [head] = this.#heads;
    if (head !== undefined && this.#heads.length > 1) this.#sink(head);
  }

  removeFirst(): void {
    const last = this.#heads.pop();
    if (last !== undefined && this.#heads.length > 0) this.#sink(last);
  }

  clear(): void {
    this.#heads.length = 0;
  }

  /**
   * Replaces the input at the top of the heap with `head`, and moves `head` down to its proper
   * place.
   */
  #sink(head: Head): void {
    const heads = this.#heads;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let next = heads[child];
      if (next === undefined) break;
      const right = heads[child + 1];
      if (right !== undefined && this.#isBefore(right, next)) {
        child += 1;
        next = right;
      }
      if (!this.#isBefore(next, head)) break;
      heads[at] = next;
      at = child;
    }
    heads[at] = head;
  }
}
