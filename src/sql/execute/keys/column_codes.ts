/**
 * Turns the values of one key column into doubles, which are equal where the values are.
 *
 * Values of whole-number types stand for themselves; all others, text above all, get the number
 * under which their column first met them, a dictionary once for each of its values. What a
 * whole-number column holds beside plain numbers (NULL, bigint) gets a negative half, which no such
 * value is.
 *
 * So a key is compared as numbers, and nothing is made for each row.
 */
import { assert } from "../../../base/assert.ts";
import {
  type DataType,
  groupKeyOf,
  isTextType,
  isWholeType,
  physicalKind,
  typeOrder,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import { TextTable } from "./text_table.ts";

type Interned = string | number | bigint | boolean | null;

/** What one key column costs a row, beside its text. */
export const CELL_BYTES = 16;

/** The doubles of one key column. */
export class ColumnCodes {
  readonly #type: DataType;
  readonly #isWhole: boolean;
  readonly #codes = new Map<Interned, number>();
  /** The values of the map, by their number. */
  readonly #interned: Interned[] = [];
  /** In place of the map. */
  readonly texts: TextTable | undefined;
  /** Bytes of the values that are in the map. */
  #bytes = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#isWhole = isWholeType(type);
    this.texts = isTextType(type) ? new TextTable() : undefined;
  }

  get bytes(): number {
    return this.#bytes + (this.texts?.bytes ?? 0);
  }

  #valueOf(code: number): Value {
    return Number.isInteger(code) ? code : (this.#interned[-code - 0.5] ?? null);
  }

  /** The values of codes; of whole numbers and texts only. */
  vectorOf(codes: Float64Array): Vector {
    if (this.texts !== undefined) return this.texts.vectorOf(codes);
    assert(this.#isWhole, "the codes of the column are its values");
    const isInt32 = physicalKind(this.#type) === "i32";
    const { length } = codes;
    if (this.#interned.length > 0) {
      return vectorFromValues(
        this.#type,
        Array.from(codes, (code) => this.#valueOf(code)),
      );
    }
    if (isInt32) return { kind: "i32", length, values: Int32Array.from(codes), nulls: undefined };
    return { kind: "f64", length, values: codes, nulls: undefined };
  }

  /** @param isAdding Otherwise an unknown value becomes NaN, which no key has. */
  codesOf(vector: Vector, rowCount: number, isAdding: boolean): Float64Array {
    if (this.texts !== undefined) {
      return codesOfNumbers(this.texts.numbersOf(vector, rowCount, isAdding));
    }
    const isNumbers = vector.kind === "i32" || vector.kind === "f64";
    if (this.#isWhole && isNumbers) return this.#codesOfWhole(vector, rowCount, isAdding);
    const codes = new Float64Array(rowCount);
    if (vector.kind === "f64" && vector.nulls === undefined && typeOrder(this.#type) === "double") {
      for (let row = 0; row < rowCount; row += 1) {
        codes[row] = this.#codeOf(vector.values[row] ?? 0, isAdding);
      }
    } else if (vector.kind === "dict") {
      this.#addDictionary(vector, codes, isAdding);
    } else if (vector.kind === "const") {
      codes.fill(rowCount === 0 ? 0 : this.#codeAt(vector, 0, isAdding));
    } else {
      for (let row = 0; row < rowCount; row += 1) codes[row] = this.#codeAt(vector, row, isAdding);
    }
    return codes;
  }

  #codesOfWhole(
    { kind, nulls, values }: Extract<Vector, { kind: "i32" | "f64" }>,
    rowCount: number,
    isAdding: boolean,
  ): Float64Array {
    if (nulls === undefined) {
      // Doubles always: loops that meet another kind of array besides run several times slower.
      return kind === "f64" ? values : new Float64Array(values);
    }
    const codes = new Float64Array(rowCount);
    const nullCode = this.#codeOf(null, isAdding);
    for (let row = 0; row < rowCount; row += 1) {
      codes[row] = nulls[row] === 1 ? nullCode : (values[row] ?? 0);
    }
    return codes;
  }

  #addDictionary(
    vector: Extract<Vector, { kind: "dict" }>,
    into: Float64Array,
    isAdding: boolean,
  ): void {
    const { codes, nulls } = vector;
    // A value that no row has must not be interned; whole codes are never below -1.
    const known = new Float64Array(vector.values.length).fill(Number.NEGATIVE_INFINITY);
    for (let row = 0; row < into.length; row += 1) {
      if (nulls?.[row] === 1) {
        into[row] = this.#codeOf(null, isAdding);
        continue;
      }
      const position = codes[row] ?? 0;
      let code = known[position] ?? Number.NEGATIVE_INFINITY;
      if (code === Number.NEGATIVE_INFINITY) {
        code = this.#codeAt(vector, row, isAdding);
        known[position] = code;
      }
      into[row] = code;
    }
  }

  #codeAt(vector: Vector, row: number, isAdding: boolean): number {
    const value = valueAt(vector, row);
    return this.#codeOf(value === null ? null : groupKeyOf(this.#type, value), isAdding);
  }

  #codeOf(value: Interned, isAdding: boolean): number {
    if (this.#isWhole && typeof value === "number") return value;
    const known = this.#codes.get(value);
    if (known !== undefined) return known;
    if (!isAdding) return Number.NaN;
    const number = this.#codes.size;
    const code = this.#isWhole ? -(number + 0.5) : number;
    this.#codes.set(value, code);
    this.#interned.push(value);
    this.#bytes += CELL_BYTES + (typeof value === "string" ? 2 * value.length : 0);
    return code;
  }
}

function codesOfNumbers(numbers: Int32Array): Float64Array {
  const codes = new Float64Array(numbers.length);
  for (let row = 0; row < codes.length; row += 1) {
    const number = numbers[row] ?? -1;
    codes[row] = number === -1 ? Number.NaN : number;
  }
  return codes;
}
