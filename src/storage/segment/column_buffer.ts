/**
 * Memory that a scan decodes to again and again, so that the rows of a group cost no arrays.
 */

/** Of the rows of one column. */
export class ColumnBuffer {
  #int32s = new Int32Array(0);
  #float64s = new Float64Array(0);
  #bytes = new Uint8Array(0);

  /** Holds what was there before. */
  int32s(length: number): Int32Array {
    if (this.#int32s.length < length) this.#int32s = new Int32Array(length);
    return this.#int32s.length === length ? this.#int32s : this.#int32s.subarray(0, length);
  }

  /** Likewise. */
  float64s(length: number): Float64Array {
    if (this.#float64s.length < length) this.#float64s = new Float64Array(length);
    return this.#float64s.length === length ? this.#float64s : this.#float64s.subarray(0, length);
  }

  /** Likewise; they begin their memory, as those of a file do. */
  bytes(length: number): Uint8Array {
    // With room to spare: text of the next rows is hardly ever as long.
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(Math.ceil(length * 1.25));
    return this.#bytes.subarray(0, length);
  }
}
