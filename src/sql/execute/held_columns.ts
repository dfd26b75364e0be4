/**
 * Rows that a join holds, column by column in the form that its type has in memory: numbers stay
 * numbers, so that nothing is made for each value, and only text becomes strings.
 */
import { defined } from "../../base/assert.ts";
import {
  type Batch,
  type DataType,
  gatherBytes,
  gatherFloat64,
  gatherInt32,
  physicalKind,
  type RowNumbers,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import { bytesOf, type MemoryBudget } from "./run.ts";

/** Room that the first rows make: a join of few rows should touch little memory. */
const ROWS_MIN = 64;

type Numbers = Uint8Array | Int32Array | Float64Array;

class HeldColumn {
  readonly #kind: "bool" | "i32" | "f64" | "any";
  #numbers: Numbers;
  #nulls: Uint8Array | undefined;
  /** In place of the numbers: of other types, or once a number needs a bigint. */
  #values: Value[] | undefined;

  constructor(type: DataType) {
    this.#kind = physicalKind(type);
    this.#numbers = numbersOf(this.#kind, 0);
    this.#values = this.#kind === "any" ? [] : undefined;
  }

  /** Returns the bytes that the rows take. */
  append(vector: Vector, start: number, rowCount: number): number {
    if (this.#values === undefined && vector.kind !== this.#kind && !this.#fits(vector)) {
      this.#values = Array.from({ length: start }, (_, row) => this.#numberAt(row));
    }
    if (this.#values === undefined) return this.#appendNumbers(vector, start, rowCount);
    let bytes = 0;
    for (let row = 0; row < rowCount; row += 1) {
      const value = valueAt(vector, row);
      bytes += bytesOf(value);
      this.#values.push(value);
    }
    return bytes;
  }

  /** The values of the first `count` rows that are named. */
  take(rows: RowNumbers, count: number): Vector {
    const values = this.#values;
    if (values !== undefined) {
      const chosen: Value[] = Array.from({ length: count });
      for (let i = 0; i < count; i += 1) chosen[i] = values[rows[i] ?? 0] ?? null;
      return { kind: "any", length: count, values: chosen };
    }
    const nulls = this.#nulls === undefined ? undefined : gatherBytes(this.#nulls, rows, count);
    const from = this.#numbers;
    if (from instanceof Int32Array) {
      return { kind: "i32", length: count, values: gatherInt32(from, rows, count), nulls };
    }
    if (from instanceof Float64Array) {
      return { kind: "f64", length: count, values: gatherFloat64(from, rows, count), nulls };
    }
    return { kind: "bool", length: count, values: gatherBytes(from, rows, count), nulls };
  }

  /** Whether a vector that is not of the kind holds nothing but its numbers and NULLs. */
  #fits(vector: Vector): boolean {
    if (vector.kind === "const") return typeof vector.value !== "bigint";
    return vector.kind === "any" && !vector.values.some((value) => typeof value === "bigint");
  }

  #appendNumbers(vector: Vector, start: number, rowCount: number): number {
    this.#reserve(start + rowCount);
    const into = this.#numbers;
    if (vector.kind === "i32" || vector.kind === "f64" || vector.kind === "bool") {
      into.set(vector.values.subarray(0, rowCount), start);
      if (vector.nulls !== undefined)
        this.#nullsFor().set(vector.nulls.subarray(0, rowCount), start);
    } else {
      for (let row = 0; row < rowCount; row += 1) {
        const value = valueAt(vector, row);
        if (value === null) this.#nullsFor()[start + row] = 1;
        else into[start + row] = Number(value);
      }
    }
    return 16 * rowCount;
  }

  #reserve(rowCount: number): void {
    const { length } = this.#numbers;
    if (rowCount <= length) return;
    const grown = numbersOf(this.#kind, Math.max(ROWS_MIN, rowCount, 2 * length));
    grown.set(this.#numbers);
    this.#numbers = grown;
    if (this.#nulls === undefined) return;
    const nulls = new Uint8Array(grown.length);
    nulls.set(this.#nulls);
    this.#nulls = nulls;
  }

  #nullsFor(): Uint8Array {
    this.#nulls ??= new Uint8Array(this.#numbers.length);
    return this.#nulls;
  }

  #numberAt(row: number): Value {
    if (this.#nulls?.[row] === 1) return null;
    const number = this.#numbers[row] ?? 0;
    return this.#kind === "bool" ? number === 1 : number;
  }
}

export class HeldColumns {
  readonly #columns: readonly HeldColumn[];
  readonly #memory: MemoryBudget;
  #rowCount = 0;

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#columns = types.map((type) => new HeldColumn(type));
    this.#memory = memory;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** @throws {DatabaseError} MEMORY_EXCEEDED */
  append(columns: readonly Vector[], rowCount: number): void {
    let bytes = 0;
    for (const [position, column] of this.#columns.entries()) {
      const vector = columns[position];
      if (vector !== undefined) bytes += column.append(vector, this.#rowCount, rowCount);
    }
    this.#rowCount += rowCount;
    this.#memory.take(bytes);
  }

  /** The first `count` rows that `rows` names. */
  take(rows: RowNumbers, count: number): Batch {
    return { rowCount: count, columns: this.#columns.map((column) => column.take(rows, count)) };
  }

  takeColumn(position: number, rows: RowNumbers, count: number): Vector {
    return defined(this.#columns[position], "a held row has its columns").take(rows, count);
  }
}

function numbersOf(kind: "bool" | "i32" | "f64" | "any", length: number): Numbers {
  switch (kind) {
    case "bool":
      return new Uint8Array(length);
    case "i32":
      return new Int32Array(length);
    case "f64":
      return new Float64Array(length);
    case "any":
      return new Uint8Array(0);
  }
}
