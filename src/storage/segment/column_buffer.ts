/**
 * Implements a reusable buffer into which a scan decodes values, so that reading row groups
 * requires no allocations.
 */

/** A buffer for the rows of one column. */
export class ColumnBuffer {
  #int32s = new Int32Array(0);
  #float64s = new Float64Array(0);
  #bytes = new Uint8Array(0);

  /** Returns an array of `length` 32-bit integers with arbitrary contents. */
  int32s(length: number): Int32Array {
    if (this.#int32s.length < length) this.#int32s = new Int32Array(length);
    return this.#int32s.length === length ? this.#int32s : this.#int32s.subarray(0, length);
  }

  /** Returns an array of `length` doubles with arbitrary contents. */
  float64s(length: number): Float64Array {
    if (this.#float64s.length < length) this.#float64s = new Float64Array(length);
    return this.#float64s.length === length ? this.#float64s : this.#float64s.subarray(0, length);
  }

  /**
   * Returns `length` bytes with arbitrary contents. They start at offset 0 of their memory, which
   * gives them the alignment of a column in a file.
   */
  bytes(length: number): Uint8Array {
    // The buffer gets room to spare, because the text of the next rows rarely has the same length.
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(Math.ceil(length * 1.25));
    return this.#bytes.subarray(0, length);
  }
}
