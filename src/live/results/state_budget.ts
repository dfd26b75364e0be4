/**
 * Limits the memory for the rows of followed results, and for the indexes that maintain them, per
 * query or index and in total.
 */
import { DatabaseError } from "../../base/errors.ts";

/** The largest share of the total memory limit that a single query or index may use. */
const QUERY_SHARE = 1 / 4;

/** A query or an index that uses memory. */
export interface Consumer {
  countedBytes: number;
}

/** An index, and the number of queries that share it. */
interface HeldIndex extends Consumer {
  holderCount: number;
}

export class StateBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  readonly #indexes = new Map<object, HeldIndex>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The memory used by all materialised queries together, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the consumer that represents an index in the budget. */
  ofIndex(index: object): Consumer {
    return this.#indexes.get(index) ?? { countedBytes: 0 };
  }

  /** Returns whether a query or an index may use this many bytes. */
  admits({ countedBytes }: Consumer, bytes: number): boolean {
    const others = this.#bytes - countedBytes;
    return bytes <= Math.floor(this.#bytesMax * QUERY_SHARE) && others + bytes <= this.#bytesMax;
  }

  /**
   * Requires that a query or an index may use the given amount of memory.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  check({ countedBytes }: Consumer, bytes: number): void {
    const queryMax = Math.floor(this.#bytesMax * QUERY_SHARE);
    if (bytes > queryMax)
      throw tooMuch(`the rows of the query take more than ${queryMax} bytes of memory`);
    const others = this.#bytes - countedBytes;
    if (others + bytes <= this.#bytesMax) return;
    throw tooMuch(
      `the rows of all live queries together take more than ${this.#bytesMax} bytes of memory`,
    );
  }

  /** Records how much memory a query or an index uses; 0 for a query that has ended. */
  set(consumer: Consumer, bytes: number): void {
    this.#bytes += bytes - consumer.countedBytes;
    consumer.countedBytes = bytes;
  }

  /** Records that another query uses an index. */
  hold(index: object): void {
    const held = this.#indexes.get(index) ?? { countedBytes: 0, holderCount: 0 };
    held.holderCount += 1;
    this.#indexes.set(index, held);
  }

  /**
   * Records that a query no longer uses an index. Once no query uses the index, its memory is no
   * longer counted.
   */
  release(index: object): void {
    const held = this.#indexes.get(index);
    if (held === undefined) return;
    held.holderCount -= 1;
    if (held.holderCount > 0) return;
    this.#indexes.delete(index);
    this.set(held, 0);
  }
}

function tooMuch(what: string): DatabaseError {
  return new DatabaseError("MEMORY_EXCEEDED", `Cannot keep the result of the live query: ${what}`, {
    hint: "select fewer rows or columns, add LIMIT, or raise limits.live_state_bytes",
  });
}
