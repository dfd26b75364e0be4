/**
 * Converts the values of a key column to doubles, their codes, so that equal values have equal
 * codes.
 *
 * The code of an integer is the integer itself. All other values, mainly strings, are interned in
 * order of first appearance. A dictionary value is interned only once. Values of an integer column
 * that are not plain numbers (NULL, bigint) get the codes -0.5, -1.5 and so on, which no integer
 * equals.
 *
 * As a result, keys are compared as numbers, and nothing is allocated per row.
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
import { TextInterner } from "./text_interner.ts";

type Interned = string | number | bigint | boolean | null;

/** The memory, in bytes, that a key column takes up per row, in addition to its text. */
export const CELL_BYTES = 16;

/** Assigns the codes of one key column. */
export class ColumnCodes {
  readonly #type: DataType;
  readonly #isWhole: boolean;
  readonly #codes = new Map<Interned, number>();
  /** The interned values of the column, indexed by id. */
  readonly #interned: Interned[] = [];
  /** The interner for a column of strings, which needs no map. */
  readonly texts: TextInterner | undefined;
  /** The memory that the interned values take up, in bytes. */
  #bytes = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#isWhole = isWholeType(type);
    this.texts = isTextType(type) ? new TextInterner() : undefined;
  }

  get bytes(): number {
    return this.#bytes + (this.texts?.bytes ?? 0);
  }

  #valueOf(code: number): Value {
    return Number.isInteger(code) ? code : (this.#interned[-code - 0.5] ?? null);
  }

  /**
   * Converts codes back to the values that they represent. Only columns of integers and strings
   * are supported.
   */
  vectorOf(codes: Float64Array): Vector {
    if (this.texts !== undefined) return this.texts.vectorOf(codes);
    assert(this.#isWhole, "column codes: column holds neither text nor integers");
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

  /**
   * Returns the code of each value of a key column.
   * @param isAdding If false, an unknown value gets the code NaN, which no key has.
   */
  codesOf(vector: Vector, rowCount: number, isAdding: boolean): Float64Array {
    if (this.texts !== undefined) {
      return codesOfNumbers(this.texts.idsOf(vector, rowCount, isAdding));
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
      // Codes are always doubles, because loops that also process other kinds of arrays are
      // several times slower.
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
    // A dictionary value that occurs in no row must not be interned, so -Infinity marks values
    // without a code. The codes of integers are never below -1.
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
    const id = this.#codes.size;
    const code = this.#isWhole ? -(id + 0.5) : id;
    this.#codes.set(value, code);
    this.#interned.push(value);
    this.#bytes += CELL_BYTES + (typeof value === "string" ? 2 * value.length : 0);
    return code;
  }
}

function codesOfNumbers(ids: Int32Array): Float64Array {
  const codes = new Float64Array(ids.length);
  for (let row = 0; row < codes.length; row += 1) {
    const id = ids[row] ?? -1;
    codes[row] = id === -1 ? Number.NaN : id;
  }
  return codes;
}
