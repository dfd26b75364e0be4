/**
 * Values in the log: each says itself what it is, so that a frame can be read without knowing how
 * the table looked when it was written.
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
 */
import { unreachable } from "../../base/assert.ts";
import type { ByteReader } from "../../base/byte_reader.ts";
import type { ByteWriter } from "../../base/byte_writer.ts";
import { DatabaseError } from "../../base/errors.ts";
import { isNullAt, type Value, type Vector, valueAt } from "../../types/mod.ts";
import type { MemColumn } from "../memtable/mem_column.ts";

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
      unreachable(value, "a value is of a known form");
  }
}

/** Writes the value of one row of a column, as {@linkcode writeValue} does. */
export function writeValueAt(into: ByteWriter, column: Vector, row: number): void {
  switch (column.kind) {
    case "utf8":
      if (isNullAt(column, row)) into.u8(TAG_NULL);
      else {
        into.u8(TAG_TEXT);
        into.blockOf(column.bytes, column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0);
      }
      return;
    case "i32":
    case "f64":
      if (isNullAt(column, row)) into.u8(TAG_NULL);
      else writeNumber(into, column.values[row] ?? 0);
      return;
    default:
      writeValue(into, valueAt(column, row));
  }
}

/** @throws {CorruptionError} If there is no value here. */
export function readValue(from: ByteReader): Value {
  return readTagged(from, from.u8());
}

/** Appends the value that is next to a column of its form. @throws {CorruptionError} As above. */
export function readValueInto(from: ByteReader, column: MemColumn): void {
  const tag = from.u8();
  if (tag === TAG_TEXT && column.isText) column.appendTextOf(from);
  else column.append(readTagged(from, tag));
}

function readTagged(from: ByteReader, tag: number): Value {
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
    default:
      return from.fail(`holds a value of the unknown kind ${tag}`);
  }
}

/** Passes over a value. @throws {CorruptionError} If there is no value here. */
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
    default:
      from.fail(`holds a value of the unknown kind ${tag}`);
  }
}

function writeNumber(into: ByteWriter, value: number): void {
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
  } else {
    throw new DatabaseError(
      "UNSUPPORTED_TYPE",
      "Cannot store a value of type interval or array: no column has these types",
    );
  }
}

function bigintFromText(from: ByteReader): bigint {
  const text = from.text();
  return /^-?\d+$/.test(text) ? BigInt(text) : from.fail("holds a whole number without digits");
}
