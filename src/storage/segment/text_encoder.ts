/**
 * Encodes text as a dictionary or as plain text, and byte arrays as blocks (see `encodings.ts`).
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { bytesOf } from "../../base/bytes.ts";
import {
  type DictionaryVector,
  textsOf,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
  valuesOf,
  writeValue,
} from "../../types/mod.ts";
import type { EncodedValues } from "./chunk_encoder.ts";
import { BLOCKS, codeBytes, DICTIONARY, DICTIONARY_VALUES_MAX, TEXT } from "./encodings.ts";
import type { Layout } from "./format.ts";

/** The number of rows sampled before a dictionary is built from all rows. */
const SAMPLE_ROWS = 1024;

export function encodeText(vector: Vector): EncodedValues {
  // A sample shows whether a dictionary is worth building. Decoding all of the UTF-8 for a
  // dictionary that is then discarded would cost more than copying it.
  if (vector.kind === "utf8" && !hasFewValues(vector, SAMPLE_ROWS)) return encodeUtf8(vector);
  if (vector.kind === "dict" && vector.values.length <= SAMPLE_ROWS) {
    const encoded = encodeCodes(vector);
    if (encoded !== undefined) return encoded;
  }
  const values = vector.kind === "utf8" ? textsOf(vector) : valuesOf(vector);
  return encodeDictionary(values) ?? encodeStrings(values);
}

function hasFewValues(vector: Vector, rowsMax: number): boolean {
  const sampled = Math.min(vector.length, rowsMax);
  const distinct = new Set<Value>();
  for (let row = 0; row < sampled; row += 1) distinct.add(valueAt(vector, row));
  return distinct.size * 2 <= sampled || vector.length === 1;
}

/**
 * Encodes values as a dictionary. Returns undefined if there are too many distinct values for a
 * dictionary to pay off.
 */
function encodeDictionary(values: readonly Value[]): EncodedValues | undefined {
  const codeByText = new Map<string, number>();
  const codes = new Uint16Array(values.length);
  for (let row = 0; row < values.length; row += 1) {
    const text = values[row];
    if (text === null) continue;
    assert(typeof text === "string", "text encoder: value of a text column is not a string");
    let code = codeByText.get(text);
    if (code === undefined) {
      code = codeByText.size;
      // A dictionary does not pay off if it has more than half as many values as there are rows.
      if (code >= DICTIONARY_VALUES_MAX) return undefined;
      if (code >= SAMPLE_ROWS && code * 2 > row) return undefined;
      codeByText.set(text, code);
    }
    codes[row] = code;
  }
  return dictionaryOf([...codeByText.keys()], codes);
}

/**
 * Builds a dictionary from strings that already have codes. Values that no row uses are dropped,
 * and the remaining values are renumbered.
 */
function encodeCodes({ codes, nulls, values }: DictionaryVector): EncodedValues | undefined {
  const newCodes = new Int32Array(values.length).fill(-1);
  const texts: string[] = [];
  const renumbered = new Uint16Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) {
    if (nulls !== undefined && nulls[row] === 1) continue;
    const code = codes[row] as number;
    let newCode = newCodes[code] as number;
    if (newCode < 0) {
      newCode = texts.length;
      newCodes[code] = newCode;
      const text = values[code];
      assert(typeof text === "string", "text encoder: value of a text column is not a string");
      texts.push(text);
    }
    renumbered[row] = newCode;
  }
  return dictionaryOf(texts, renumbered);
}

/**
 * Builds a dictionary. Returns undefined if there are too few rows for the number of distinct
 * values.
 *
 * @param codes One code per row.
 */
function dictionaryOf(texts: readonly Value[], codes: Uint16Array): EncodedValues | undefined {
  const valueCount = texts.length;
  if (valueCount > 1 && valueCount * 2 > codes.length) return undefined;
  const { offsets, bytes } = packStrings(texts);
  const width = codeBytes(valueCount);
  const codesPart = width === 0 ? [] : [width === 1 ? Uint8Array.from(codes) : bytesOf(codes)];
  return {
    encoding: DICTIONARY,
    parts: [...codesPart, bytesOf(offsets), bytes],
    auxiliary: valueCount,
  };
}

function encodeStrings(values: readonly Value[]): EncodedValues {
  const { offsets, bytes } = packStrings(values);
  return { encoding: TEXT, parts: [bytesOf(offsets), bytes] };
}

function encodeUtf8({ length, bytes, offsets }: Utf8Vector): EncodedValues {
  const start = offsets[0] ?? 0;
  const end = offsets[length] ?? start;
  const rebased = new Uint32Array(length + 1);
  for (let row = 0; row <= length; row += 1) rebased[row] = (offsets[row] ?? 0) - start;
  return { encoding: TEXT, parts: [bytesOf(rebased), bytes.subarray(start, end)] };
}

/** Concatenates strings as UTF-8. A NULL takes no bytes. */
function packStrings(values: readonly Value[]): { offsets: Uint32Array; bytes: Uint8Array } {
  const offsets = new Uint32Array(values.length + 1);
  const writer = new ByteWriter(values.length * 16);
  for (let index = 0; index < values.length; index += 1) {
    const text = values[index];
    if (text !== null) {
      assert(typeof text === "string", "text encoder: value of a text column is not a string");
      writer.rawText(text);
    }
    offsets[index + 1] = writer.length;
  }
  assert(writer.length < 2 ** 32, "text encoder: text of a chunk exceeds 4 GiB");
  return { offsets, bytes: writer.view() };
}

/** Concatenates bytes, embeddings, and the encoded values of other types. */
export function encodeBlocks(vector: Vector, layout: Layout): EncodedValues {
  const offsets = new Uint32Array(vector.length + 1);
  const writer = new ByteWriter(vector.length * 32);
  for (let row = 0; row < vector.length; row += 1) {
    const value = valueAt(vector, row);
    if (value !== null && layout === "values") {
      writeValue(writer, value);
    } else if (value !== null) {
      const isBytes = value instanceof Uint8Array || value instanceof Float32Array;
      assert(isBytes, "text encoder: value of a BYTES column is not a byte array");
      writer.raw(bytesOf(value));
    }
    offsets[row + 1] = writer.length;
  }
  assert(writer.length < 2 ** 32, "text encoder: bytes of a chunk exceed 4 GiB");
  return { encoding: BLOCKS, parts: [bytesOf(offsets), writer.view()] };
}
