/**
 * Implements a set that usually contains a single item. The first item needs no hash table, so a
 * large number of such sets takes up little memory. Invariant: an iteration visits each item
 * exactly once, unless that item is added or removed in the meantime.
 */

export class FewItems<Item extends object> {
  #only: Item | undefined;
  /** The set that contains all items; undefined while there is at most one item. */
  #all: Set<Item> | undefined;

  get size(): number {
    return this.#all?.size ?? (this.#only === undefined ? 0 : 1);
  }

  add(item: Item): void {
    if (this.#all !== undefined) {
      this.#all.add(item);
    } else if (this.#only === undefined || this.#only === item) {
      this.#only = item;
    } else {
      this.#all = new Set([this.#only, item]);
      this.#only = undefined;
    }
  }

  delete(item: Item): void {
    this.#all?.delete(item);
    if (this.#only === item) this.#only = undefined;
  }

  [Symbol.iterator](): IterableIterator<Item> {
    if (this.#all !== undefined) return this.#all.values();
    return (this.#only === undefined ? [] : [this.#only]).values();
  }
}
