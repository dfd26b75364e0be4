/**
 * Encodes values as self-describing bytes. The log needs this form, because frames are read
 * without the table definition under which they were written. Chunks of arrays and intervals use
 * it as well.
 *
 *     TAG  MEANING          BYTES AFTER IT
 *      0   NULL
 *      1   false
 *      2   true
 *      3   small whole      u8
 *      4   whole            i32
 *      5   number           f64
 *      6   big whole        text, decimal digits
 *      7   text             text
 *      8   bytes            block
 *      9   embedding        varint count, then f32 each
 *     10   interval         f64 months, f64 days, f64 microseconds
 *     11   array            varint count, then a value each; arrays within it are further dimensions
 *     12   row              varint count, then a value for each field
 */
import { unreachable } from "../base/assert.ts";
import type { ByteReader } from "../base/byte_reader.ts";
import type { ByteWriter } from "../base/byte_writer.ts";
import { isArrayValue } from "./array_shape.ts";
import { isInterval, type Value } from "./value.ts";

export const TAG_NULL = 0;
const TAG_FALSE = 1;
const TAG_TRUE = 2;
export const TAG_SMALL = 3;
export const TAG_INT = 4;
export const TAG_NUMBER = 5;
const TAG_BIG = 6;
export const TAG_TEXT = 7;
const TAG_BYTES = 8;
const TAG_EMBEDDING = 9;
const TAG_INTERVAL = 10;
const TAG_ARRAY = 11;
const TAG_ROW = 12;

/** How deeply rows and arrays may be nested. Actual types have only a few levels. */
const NESTING_MAX = 100;

export function writeValue(into: ByteWriter, value: Value): void {
  switch (typeof value) {
    case "string":
      into.u8(TAG_TEXT);
      into.text(value);
      return;
    case "number":
      writeNumber(into, value);
      return;
    case "boolean":
      into.u8(value ? TAG_TRUE : TAG_FALSE);
      return;
    case "bigint":
      into.u8(TAG_BIG);
      into.text(String(value));
      return;
    case "object":
      writeObject(into, value);
      return;
    default:
      unreachable(value, "value codec: unknown value type");
  }
}

/**
 * Reads the next encoded value. @throws {CorruptionError} If there is no value at this position.
 */
export function readValue(from: ByteReader): Value {
  return readTagged(from, from.u8());
}

/**
 * Reads an encoded value after its tag.
 * @throws {CorruptionError} If no value of the kind that the tag denotes follows.
 */
export function readTagged(from: ByteReader, tag: number, depth = 0): Value {
  switch (tag) {
    case TAG_NULL:
      return null;
    case TAG_FALSE:
      return false;
    case TAG_TRUE:
      return true;
    case TAG_SMALL:
      return from.u8();
    case TAG_INT:
      return from.i32();
    case TAG_NUMBER:
      return from.f64();
    case TAG_BIG:
      return bigintFromText(from);
    case TAG_TEXT:
      return from.text();
    case TAG_BYTES:
      return new Uint8Array(from.block());
    case TAG_EMBEDDING: {
      const bytes = from.raw(from.varint() * 4);
      return new Float32Array(new Uint8Array(bytes).buffer);
    }
    case TAG_INTERVAL:
      return { months: from.f64(), days: from.f64(), micros: from.f64() };
    case TAG_ARRAY: {
      if (depth === NESTING_MAX)
        return from.fail(`the data contains an array with more than ${NESTING_MAX} levels`);
      return readItems(from, depth + 1);
    }
    case TAG_ROW:
      if (depth === NESTING_MAX)
        return from.fail(`the data contains a row with more than ${NESTING_MAX} levels`);
      return { cells: readItems(from, depth + 1) };
    default:
      return from.fail(`the data contains a value of the unknown kind ${tag}`);
  }
}

function readItems(from: ByteReader, depth: number): Value[] {
  const items: Value[] = [];
  for (let count = from.varint(); count > 0; count -= 1) {
    items.push(readTagged(from, from.u8(), depth));
  }
  return items;
}

/** Skips an encoded value. @throws {CorruptionError} If there is no value at this position. */
export function skipValue(from: ByteReader): void {
  const tag = from.u8();
  switch (tag) {
    case TAG_NULL:
    case TAG_FALSE:
    case TAG_TRUE:
      return;
    case TAG_SMALL:
      from.skip(1);
      return;
    case TAG_INT:
      from.skip(4);
      return;
    case TAG_NUMBER:
      from.skip(8);
      return;
    case TAG_BIG:
    case TAG_TEXT:
    case TAG_BYTES:
      from.skip(from.varint());
      return;
    case TAG_EMBEDDING:
      from.skip(from.varint() * 4);
      return;
    case TAG_INTERVAL:
      from.skip(24);
      return;
    case TAG_ARRAY:
    case TAG_ROW:
      for (let count = from.varint(); count > 0; count -= 1) skipValue(from);
      return;
    default:
      from.fail(`the data contains a value of the unknown kind ${tag}`);
  }
}

export function writeNumber(into: ByteWriter, value: number): void {
  if (value === (value | 0) && !Object.is(value, -0)) {
    if (value >= 0 && value < 256) {
      into.u8(TAG_SMALL);
      into.u8(value);
    } else {
      into.u8(TAG_INT);
      into.i32(value);
    }
  } else {
    into.u8(TAG_NUMBER);
    into.f64(value);
  }
}

function writeObject(into: ByteWriter, value: Extract<Value, object | null>): void {
  if (value === null) {
    into.u8(TAG_NULL);
  } else if (value instanceof Uint8Array) {
    into.u8(TAG_BYTES);
    into.block(value);
  } else if (value instanceof Float32Array) {
    into.u8(TAG_EMBEDDING);
    into.varint(value.length);
    into.raw(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  } else if (isInterval(value)) {
    into.u8(TAG_INTERVAL);
    into.f64(value.months);
    into.f64(value.days);
    into.f64(value.micros);
  } else {
    const isArray = isArrayValue(value);
    const items = isArray ? value : value.cells;
    into.u8(isArray ? TAG_ARRAY : TAG_ROW);
    into.varint(items.length);
    for (const item of items) writeValue(into, item);
  }
}

function bigintFromText(from: ByteReader): bigint {
  const text = from.text();
  return /^-?\d+$/.test(text)
    ? BigInt(text)
    : from.fail("the data contains an integer without digits");
}
