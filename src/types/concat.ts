/**
 * Concatenates vectors of the same type. If all of them have the same representation, so does the
 * result: numbers are copied array by array, strings byte by byte, and dictionaries are merged.
 */
import type { DataType } from "./data_type.ts";
import { copyText, textSourceOf } from "./text_bytes.ts";
import type { Value } from "./value.ts";
import {
  type BoolVector,
  type Codes,
  type ConstVector,
  constVector,
  type DictionaryVector,
  type Float64Vector,
  type Int32Vector,
  physicalKind,
  type Utf8Vector,
  type Vector,
  valueAt,
  vectorFromValues,
} from "./vector.ts";

type NumberVector = BoolVector | Int32Vector | Float64Vector;
type TextVector = Utf8Vector | DictionaryVector;

/**
 * Concatenates vectors in order. A single vector is returned as it is.
 *
 * @param type The type of every part.
 */
export function concat(type: DataType, parts: readonly Vector[]): Vector {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (first?.kind === "const" && parts.every((part) => isConst(part, first.value))) {
    return constVector(first.value, length);
  }
  const kind = physicalKind(type);
  if (kind !== "any") {
    if (parts.every((part) => part.kind === kind || part.kind === "const")) {
      // A constant may be an integer beyond 2^53, which an array of numbers cannot represent.
      const numbers = parts as readonly (NumberVector | ConstVector)[];
      if (!numbers.some(isWide)) return concatNumbers(kind, numbers, length);
    }
  } else if (parts.every(isTextual)) {
    const isDictionary = parts.every((part) => part.kind !== "utf8");
    return isDictionary ? concatCodes(parts, length) : concatTexts(parts, length);
  }
  return concatValues(type, parts);
}

function isConst(vector: Vector, value: Value): boolean {
  return vector.kind === "const" && vector.value === value;
}

function isWide(vector: Vector): boolean {
  return vector.kind === "const" && typeof vector.value === "bigint";
}

function isTextual(vector: Vector): vector is TextVector | ConstVector {
  if (vector.kind === "const") return vector.value === null || typeof vector.value === "string";
  return vector.kind === "utf8" || (vector.kind === "dict" && !vector.values.includes(null));
}

function concatValues(type: DataType, parts: readonly Vector[]): Vector {
  const values: Value[] = [];
  for (const part of parts) {
    for (let row = 0; row < part.length; row += 1) values.push(valueAt(part, row));
  }
  return vectorFromValues(type, values);
}

function concatNumbers(
  kind: NumberVector["kind"],
  parts: readonly (NumberVector | ConstVector)[],
  length: number,
): NumberVector {
  const nulls = concatNulls(parts, length);
  if (kind === "bool") {
    return { kind, length, values: filled(new Uint8Array(length), parts), nulls };
  }
  if (kind === "i32") {
    return { kind, length, values: filled(new Int32Array(length), parts), nulls };
  }
  return { kind, length, values: filled(new Float64Array(length), parts), nulls };
}

function filled<T extends Uint8Array | Int32Array | Float64Array>(
  into: T,
  parts: readonly (NumberVector | ConstVector)[],
): T {
  let at = 0;
  for (const part of parts) {
    // In place of a constant NULL, the array contains 0, which is never read.
    if (part.kind === "const") into.fill(Number(part.value), at, at + part.length);
    else into.set(part.values, at);
    at += part.length;
  }
  return into;
}

function concatNulls(
  parts: readonly (NumberVector | TextVector | ConstVector)[],
  length: number,
): Uint8Array | undefined {
  let nulls: Uint8Array | undefined;
  let at = 0;
  for (const part of parts) {
    if (part.kind === "const") {
      if (part.value === null) {
        nulls ??= new Uint8Array(length);
        nulls.fill(1, at, at + part.length);
      }
    } else if (part.nulls !== undefined) {
      nulls ??= new Uint8Array(length);
      nulls.set(part.nulls, at);
    }
    at += part.length;
  }
  return nulls;
}

/** Merges dictionaries into a single one that contains each string once. */
function concatCodes(parts: readonly (TextVector | ConstVector)[], length: number): Vector {
  const codeByText = new Map<Value, number>();
  const codeMaps = parts.map((part) => {
    const texts = part.kind === "dict" ? part.values : part.kind === "const" ? [part.value] : [];
    return Uint32Array.from(texts, (text) => {
      if (text === null) return 0;
      const code = codeByText.get(text) ?? codeByText.size;
      codeByText.set(text, code);
      return code;
    });
  });
  const codes = codesFor(codeByText.size, length);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const codeMap = codeMaps[index] ?? new Uint32Array(0);
    if (part.kind === "dict") mapCodes(part.codes, codeMap, codes.subarray(at, at + part.length));
    else codes.fill(codeMap[0] ?? 0, at, at + part.length);
    at += part.length;
  }
  const nulls = concatNulls(parts, length);
  return { kind: "dict", length, codes, values: [...codeByText.keys()], nulls };
}

function codesFor(valueCount: number, length: number): Codes {
  if (valueCount <= 256) return new Uint8Array(length);
  return valueCount <= 65_536 ? new Uint16Array(length) : new Uint32Array(length);
}

function mapCodes(codes: Codes, codeMap: Uint32Array, into: Codes): void {
  for (let row = 0; row < codes.length; row += 1) into[row] = codeMap[codes[row] ?? 0] ?? 0;
}

/** Concatenates strings as bytes, because at least one part has them as bytes. */
function concatTexts(parts: readonly (TextVector | ConstVector)[], length: number): Utf8Vector {
  const texts = parts.map((part) => (part.kind === "utf8" ? part : utf8Of(part)));
  const byteCount = texts.reduce((sum, text) => sum + byteCountOf(text), 0);
  const bytes = Buffer.allocUnsafeSlow(byteCount);
  const offsets = new Uint32Array(length + 1);
  let row = 0;
  let at = 0;
  for (const text of texts) {
    const start = text.offsets[0] ?? 0;
    bytes.set(text.bytes.subarray(start, start + byteCountOf(text)), at);
    const shift = at - start;
    for (let i = 1; i <= text.length; i += 1) offsets[row + i] = (text.offsets[i] ?? 0) + shift;
    row += text.length;
    at += byteCountOf(text);
  }
  return { kind: "utf8", length, bytes, offsets, nulls: concatNulls(parts, length) };
}

function byteCountOf({ length, offsets }: Utf8Vector): number {
  return (offsets[length] ?? 0) - (offsets[0] ?? 0);
}

function utf8Of(part: DictionaryVector | ConstVector): Utf8Vector {
  const { length } = part;
  const texts = part.kind === "dict" ? part.values : [part.value];
  const encoded = texts.map((text) => Buffer.from(typeof text === "string" ? text : ""));
  const starts = new Uint32Array(encoded.length + 1);
  for (const [code, text] of encoded.entries())
    starts[code + 1] = (starts[code] ?? 0) + text.length;
  const nulls = part.kind === "dict" ? part.nulls : undefined;
  const offsets = new Uint32Array(length + 1);
  for (let row = 0; row < length; row += 1) {
    const code = part.kind === "dict" ? (part.codes[row] ?? 0) : 0;
    const isNull = nulls !== undefined && nulls[row] === 1;
    const byteCount = isNull ? 0 : (starts[code + 1] ?? 0) - (starts[code] ?? 0);
    offsets[row + 1] = (offsets[row] ?? 0) + byteCount;
  }
  const source = textSourceOf(Buffer.concat(encoded));
  const into = textSourceOf(Buffer.allocUnsafeSlow(offsets[length] ?? 0));
  for (let row = 0; row < length; row += 1) {
    const code = part.kind === "dict" ? (part.codes[row] ?? 0) : 0;
    const at = offsets[row] ?? 0;
    const start = starts[code] ?? 0;
    copyText(source, { start, end: start + (offsets[row + 1] ?? 0) - at }, into.view, at);
  }
  return { kind: "utf8", length, bytes: into.bytes, offsets, nulls };
}
