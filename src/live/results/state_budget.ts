/**
 * Limits the memory for the rows of followed results, and for the indexes that maintain them, per
 * query or index and in total.
 */
import { DatabaseError } from "../../base/errors.ts";

/** The share of the memory limit for all queries that one query may use. */
const QUERY_SHARE = 1 / 4;

export class StateBudget {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<object, number>();
  #bytes = 0;
  /** The number of holders of each index that queries share. */
  readonly #holders = new Map<object, number>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The memory that all queries use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a query or an index may use this many bytes. */
  admits(query: object, bytes: number): boolean {
    const others = this.#bytes - (this.#bytesOf.get(query) ?? 0);
    return bytes <= Math.floor(this.#bytesMax * QUERY_SHARE) && others + bytes <= this.#bytesMax;
  }

  /** @throws {DatabaseError} MEMORY_EXCEEDED if the query may not use this many bytes. */
  check(query: object, bytes: number): void {
    const queryMax = Math.floor(this.#bytesMax * QUERY_SHARE);
    if (bytes > queryMax) throw tooMuch(`its rows take more than ${queryMax} bytes`);
    const others = this.#bytes - (this.#bytesOf.get(query) ?? 0);
    if (others + bytes <= this.#bytesMax) return;
    throw tooMuch(`the rows of all live queries take more than ${this.#bytesMax} bytes`);
  }

  /** Records the memory that a query uses; 0 for a query that has ended. */
  set(query: object, bytes: number): void {
    this.#bytes += bytes - (this.#bytesOf.get(query) ?? 0);
    if (bytes === 0) this.#bytesOf.delete(query);
    else this.#bytesOf.set(query, bytes);
  }

  /** Records a further holder of an index. */
  hold(index: object): void {
    this.#holders.set(index, (this.#holders.get(index) ?? 0) + 1);
  }

  /** Ends {@linkcode hold}. The last holder gives the memory back. */
  release(index: object): void {
    const left = (this.#holders.get(index) ?? 1) - 1;
    if (left > 0) {
      this.#holders.set(index, left);
      return;
    }
    this.#holders.delete(index);
    this.set(index, 0);
  }
}

function tooMuch(what: string): DatabaseError {
  return new DatabaseError("MEMORY_EXCEEDED", `Cannot keep the result of the live query: ${what}`, {
    hint: "select fewer rows or columns, add LIMIT, or raise limits.live_state_bytes",
  });
}
