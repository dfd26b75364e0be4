/**
 * Shared objects by key, each kept only as long as somebody uses it.
 *
 * Invariant: unused entries take memory only until the number of entries has doubled.
 */

/** The minimum number of entries among which unused ones are looked for. */
const ENTRIES_MIN = 64;

export class WeakValues<Each extends object> {
  readonly #entries = new Map<string, WeakRef<Each>>();
  /** The number of entries above which unused ones are looked for. */
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
