/**
 * Enlarges a typed array while values are appended to it, without blocking the event loop for
 * long.
 *
 * Once three quarters of its capacity is used, a large array is copied to a larger one in several
 * steps. Copying 19 MB at once took 18 ms (2026-11-29), mostly because the memory pages were
 * accessed for the first time. New capacity costs nothing until it is accessed.
 *
 *     array  ├──── used ────┤╌╌ free ╌╌┤        values are read, appended and changed here
 *     into   ├─ copied ─┤╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┤   takes the place of the array when that is full
 *
 * Code that changes any value but the last must report the change, because the value may already
 * have been copied.
 */
type NumberArray = Uint8Array | Int32Array | Uint32Array | Float64Array;

/** The initial capacity of an array that grows. */
const CAPACITY_MIN = 8;

/** The minimum capacity of an array that is copied in several steps rather than at once. */
const LARGE_CAPACITY_MIN = 65_536;

/**
 * The used shares of a large array's capacity at which copying to a larger array begins, and by
 * which it must be complete.
 */
const MOVE_START = 0.75;
const MOVE_END = 0.97;

/** The number of values that are appended between two steps of copying. */
const LOOK_EVERY = 4096;

/**
 * Manages the growth of either one large array or any number of small ones. Small arrays need no
 * state, because each is copied all at once.
 */
export class Growth<T extends NumberArray> {
  readonly #make: (capacity: number) => T;
  readonly #nextCapacity: (capacity: number) => number;
  /** The array whose values are being copied to a larger one. */
  #from: T | undefined;
  #into: T | undefined;
  #copied = 0;
  /** The length of the array at which the next step of copying is due. */
  #lookAt = 0;

  /**
   * Creates a growth strategy for one kind of array.
   * @param nextCapacity Returns the next capacity; by default, it is twice the current one.
   */
  constructor(make: (capacity: number) => T, nextCapacity: (capacity: number) => number = doubled) {
    this.#make = make;
    this.#nextCapacity = nextCapacity;
  }

  /**
   * Returns the object that manages the growth of an array: this shared object while the array is
   * small, a separate one otherwise.
   */
  ownFor({ length }: T): Growth<T> {
    const isOwn = length < LARGE_CAPACITY_MIN || this.#from !== undefined;
    return isOwn ? this : new Growth(this.#make, this.#nextCapacity);
  }

  /**
   * Returns the number of values up to which an array returned by `arrayFor` can be used without
   * calling `arrayFor` again.
   */
  capacityUpTo({ length }: T): number {
    return length < LARGE_CAPACITY_MIN ? length : Math.min(length, this.#lookAt - 1);
  }

  /**
   * Returns an array with room for `needed` values: the given array, or a larger one with the same
   * values.
   */
  arrayFor(array: T, length: number, needed: number): T {
    if (needed <= array.length) {
      if (array.length < LARGE_CAPACITY_MIN) return array;
      if (array === this.#from && needed < this.#lookAt) {
        // Values may have been removed since the last step of copying.
        if (length < this.#copied) this.#copied = length;
        return array;
      }
    }
    return array.length < LARGE_CAPACITY_MIN
      ? this.#copyOf(array, length, needed)
      : this.#moved(array, length, needed);
  }

  /** Records that a value appended earlier has changed. */
  noteChanged(at: number, value: number): void {
    if (this.#into !== undefined && at < this.#copied) this.#into[at] = value;
  }

  /** Records that the values starting at `at` have changed or been removed. */
  noteChangedFrom(at: number): void {
    this.#copied = Math.min(this.#copied, at);
  }

  /**
   * Abandons the copying in progress and releases the larger array. The next append may start
   * again.
   */
  release(): void {
    this.#from = undefined;
    this.#into = undefined;
    this.#copied = 0;
    this.#lookAt = 0;
  }

  #copyOf(array: T, length: number, needed: number): T {
    const into = this.#make(Math.max(needed, this.#nextCapacity(array.length)));
    into.set(array.subarray(0, length));
    return into;
  }

  #moved(array: T, length: number, needed: number): T {
    const capacity = array.length;
    const start = capacity * MOVE_START;
    if (array !== this.#from) {
      this.#from = array;
      this.#into = undefined;
      this.#copied = 0;
    }
    this.noteChangedFrom(length);
    if (needed > capacity) {
      const into = this.#into;
      const copied = this.#copied;
      this.release();
      if (into === undefined || into.length < needed) return this.#copyOf(array, length, needed);
      into.set(array.subarray(copied, length), copied);
      return into;
    }
    this.#lookAt = Math.max(start, needed + LOOK_EVERY);
    if (needed <= start) return array;
    this.#into ??= this.#make(this.#nextCapacity(capacity));
    const share = Math.min(1, (needed - start) / (capacity * (MOVE_END - MOVE_START)));
    const upTo = Math.floor(length * share);
    if (upTo > this.#copied) {
      this.#into.set(array.subarray(this.#copied, upTo), this.#copied);
      this.#copied = upTo;
    }
    return array;
  }
}

function doubled(capacity: number): number {
  return capacity === 0 ? CAPACITY_MIN : 2 * capacity;
}
