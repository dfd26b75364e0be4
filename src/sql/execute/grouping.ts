/**
 * Numbers groups: equal keys get the same dense number, in order of first appearance. NULLs are
 * equal here.
 */
import {
  type DataType,
  type Selection,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import { KeyIndex } from "./key_index.ts";
import { bytesOf, type MemoryBudget } from "./run.ts";

/** What a group costs beside its key values: the entry of the index and the states. */
const GROUP_BYTES = 64;

export class Grouping {
  readonly #index: KeyIndex;
  readonly #memory: MemoryBudget;
  /** Key values of each group, one array a column. */
  readonly #keys: Value[][];

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#memory = memory;
    this.#index = new KeyIndex(types);
    this.#keys = types.map(() => []);
  }

  get groupCount(): number {
    return this.#index.count;
  }

  keyAt(position: number, group: number): Value {
    return this.#keys[position]?.[group] ?? null;
  }

  /** The group number of each row. @throws {DatabaseError} MEMORY_EXCEEDED */
  numbersOf(vectors: readonly Vector[], rowCount: number): Uint32Array {
    let known = this.#index.count;
    const numbers = this.#index.add(vectors, rowCount);
    if (this.#index.count > known) {
      let bytes = 0;
      for (let row = 0; row < rowCount; row += 1) {
        // Numbers are dense and ascend with first appearance: a new one is the next one.
        if (numbers[row] !== known) continue;
        known += 1;
        bytes += GROUP_BYTES;
        for (let i = 0; i < this.#keys.length; i += 1) {
          const vector = vectors[i];
          const value = vector === undefined ? null : valueAt(vector, row);
          bytes += bytesOf(value);
          this.#keys[i]?.push(value);
        }
      }
      this.#memory.take(bytes);
    }
    return new Uint32Array(numbers.buffer, 0, rowCount);
  }

  /** The group number of each row, or NO_KEY where no row before had its key. */
  knownNumbersOf(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#index.find(vectors, rowCount);
  }

  /** The rows whose group no earlier row has, here or in a call before. */
  newRowsOf(vectors: readonly Vector[], rowCount: number): Selection {
    let knownCount = this.groupCount;
    const numbers = this.numbersOf(vectors, rowCount);
    const rows = new Uint32Array(rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row += 1) {
      // Numbers are dense and ascend with first appearance: a new one is the next one.
      if (numbers[row] !== knownCount) continue;
      rows[count] = row;
      count += 1;
      knownCount += 1;
    }
    return { rows, count };
  }
}
