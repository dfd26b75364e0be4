/**
 * Numbers groups: equal keys get the same dense number, in order of first appearance.
 *
 * NULLs are equal here. One key column goes by its own value (a dictionary by its codes, so that
 * each distinct value is looked up once a batch); several go by a text that joins their parts.
 */
import { defined } from "../../base/assert.ts";
import {
  type DataType,
  groupKeyOf,
  type Selection,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import { bytesOf, type MemoryBudget } from "./run.ts";

type Key = string | number | bigint | boolean | null;

/** What a group costs beside its key values: map entry and state. */
const GROUP_BYTES = 64;

export class Grouping {
  readonly #types: readonly DataType[];
  readonly #memory: MemoryBudget;
  readonly #numbers = new Map<Key, number>();
  /** Key values of each group, one array a column. */
  readonly #keys: Value[][];

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#types = types;
    this.#memory = memory;
    this.#keys = types.map(() => []);
  }

  get groupCount(): number {
    return this.#numbers.size;
  }

  keyAt(position: number, group: number): Value {
    return this.#keys[position]?.[group] ?? null;
  }

  /** The group number of each row. */
  numbersOf(vectors: readonly Vector[], rowCount: number): Uint32Array {
    const numbers = new Uint32Array(rowCount);
    const [only] = vectors;
    if (vectors.length === 1 && only !== undefined) {
      if (only.kind === "dict" && only.nulls === undefined) this.#byCode(only, numbers);
      else if (only.kind === "i32" || only.kind === "f64") this.#byNumber(only, numbers);
      else for (let row = 0; row < rowCount; row += 1) numbers[row] = this.#byValue(only, row);
      return numbers;
    }
    for (let row = 0; row < rowCount; row += 1) numbers[row] = this.#byValues(vectors, row);
    return numbers;
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

  #byCode(vector: Extract<Vector, { kind: "dict" }>, numbers: Uint32Array): void {
    const { codes, values } = vector;
    // A code that no row uses must not make a group, so numbers are given on first use.
    const known = new Int32Array(values.length).fill(-1);
    for (let row = 0; row < numbers.length; row += 1) {
      const code = codes[row] ?? 0;
      let number = known[code] ?? -1;
      if (number === -1) {
        number = this.#byValue(vector, row);
        known[code] = number;
      }
      numbers[row] = number;
    }
  }

  #byNumber(vector: Extract<Vector, { kind: "i32" | "f64" }>, numbers: Uint32Array): void {
    const { values, nulls } = vector;
    for (let row = 0; row < numbers.length; row += 1) {
      const key = nulls !== undefined && nulls[row] === 1 ? null : (values[row] ?? 0);
      numbers[row] = this.#numbers.get(key) ?? this.#add(key, [key]);
    }
  }

  #byValue(vector: Vector, row: number): number {
    const value = valueAt(vector, row);
    const type = defined(this.#types[0], "a key column has a type");
    const key = value === null ? null : groupKeyOf(type, value);
    return this.#numbers.get(key) ?? this.#add(key, [value]);
  }

  #byValues(vectors: readonly Vector[], row: number): number {
    let key = "";
    for (let i = 0; i < vectors.length; i += 1) {
      const value = valueAt(defined(vectors[i], "a key has its vectors"), row);
      if (value === null) {
        key += "n";
      } else {
        const part = String(groupKeyOf(defined(this.#types[i], "a key column has a type"), value));
        key += `${part.length}:${part}`;
      }
    }
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    return this.#add(
      key,
      vectors.map((vector) => valueAt(vector, row)),
    );
  }

  #add(key: Key, values: readonly Value[]): number {
    const number = this.#numbers.size;
    this.#numbers.set(key, number);
    let bytes = GROUP_BYTES;
    for (let i = 0; i < this.#keys.length; i += 1) {
      const value = values[i] ?? null;
      bytes += bytesOf(value);
      this.#keys[i]?.push(value);
    }
    this.#memory.take(bytes);
    return number;
  }
}
