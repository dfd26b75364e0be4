/**
 * Merges the dictionaries of a column's vectors into a common one, so that the rows of a join can
 * keep the coded form in which they were scanned: each row group has a dictionary of its own.
 *
 * A code never changes its value, and a list of values that was passed on never changes either.
 */
import type { DictionaryVector, Value } from "../../../types/mod.ts";
import { bytesOf } from "./memory_budget.ts";

/**
 * The maximum number of distinct values, which is also that of a row group. Operators work on each
 * value of a dictionary once per batch.
 */
const VALUES_MAX = 4096;

/** The code of a value that occurs in no row so far. */
const NONE = 65_535;

export class CommonDictionary {
  readonly #values: Value[] = [];
  readonly #codes = new Map<Value, number>();
  /** The list passed on last. */
  #listed: readonly Value[] = [];
  /** The dictionary whose codes were converted last, and the common code of each of its values. */
  #known: readonly Value[] | undefined;
  #commonCodes = new Uint16Array(0);
  #bytes = 0;

  /** The memory that the values take up, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The value of each code so far. */
  get values(): readonly Value[] {
    if (this.#listed.length < this.#values.length) this.#listed = this.#values.slice();
    return this.#listed;
  }

  /**
   * Returns the common code of each row; arbitrary for a NULL row. Returns undefined, with some
   * values added, if there are too many values or if one of them is NULL.
   */
  codesOf({ codes, nulls, values }: DictionaryVector, rowCount: number): Int32Array | undefined {
    if (this.#known !== values) {
      this.#known = values;
      this.#commonCodes = new Uint16Array(values.length).fill(NONE);
    }
    const known = this.#commonCodes;
    const common = new Int32Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) {
      const own = codes[row] ?? 0;
      let code = known[own] ?? NONE;
      if (code === NONE) {
        if (nulls !== undefined && nulls[row] === 1) continue;
        code = this.#codeOf(values[own] ?? null);
        if (code === NONE) return undefined;
        known[own] = code;
      }
      common[row] = code;
    }
    return common;
  }

  /** Returns the code of a value, which may be new; NONE if the value cannot be added. */
  #codeOf(value: Value): number {
    const known = this.#codes.get(value);
    if (known !== undefined) return known;
    if (value === null || this.#values.length === VALUES_MAX) return NONE;
    const code = this.#values.push(value) - 1;
    this.#codes.set(value, code);
    this.#bytes += bytesOf(value);
    return code;
  }
}
