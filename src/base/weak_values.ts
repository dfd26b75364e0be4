/**
 * Shares objects by key, and keeps each object only for as long as it is in use.
 *
 * Invariant: unused entries take up memory only until the number of entries has doubled.
 */

/** The minimum number of entries at which the map looks for unused ones. */
const ENTRIES_MIN = 64;

export class WeakValues<Each extends object> {
  readonly #entries = new Map<string, WeakRef<Each>>();
  /** The number of entries at which the map will next look for unused ones. */
  #sizeToLook = ENTRIES_MIN;

  get(key: string): Each | undefined {
    return this.#entries.get(key)?.deref();
  }

  set(key: string, value: Each): void {
    if (this.#entries.size >= this.#sizeToLook) this.#forgetUnused();
    this.#entries.set(key, new WeakRef(value));
  }

  #forgetUnused(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.deref() === undefined) this.#entries.delete(key);
    }
    this.#sizeToLook = Math.max(ENTRIES_MIN, 2 * this.#entries.size);
  }
}
