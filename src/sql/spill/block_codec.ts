/**
 * Encodes batches as bytes for temporary files. Vectors are copied in their in-memory form.
 *
 * A block is self-describing and read only by the process that wrote it, so it has no version
 * number and uses the machine's byte order. Its columns follow one another. In this diagram, "to
 * 8" is padding up to a multiple of 8 bytes:
 *
 *     u8 kind │ u8 has nulls │ to 8 │ u8 × n nulls, if any │ to 8 │ values
 *
 *     KIND     VALUES
 *     null                                every row is NULL
 *     bool     u8 × n
 *     i32      i32 × n
 *     f64      f64 × n
 *     utf8     u32 × (n + 1) │ UTF-8      all text types, also dictionaries
 *     values   a tag and a value, n times
 *     const    a tag and a value
 */
import { unreachable } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import type { ByteWriter } from "../../base/byte_writer.ts";
import {
  type Batch,
  constVector,
  isInterval,
  isRowValue,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

const NULL = 0;
const BOOL = 1;
const I32 = 2;
const F64 = 3;
const UTF8 = 4;
const VALUES = 5;
const CONST = 6;

const TAG_NULL = 0;
const TAG_FALSE = 1;
const TAG_TRUE = 2;
const TAG_NUMBER = 3;
const TAG_BIG = 4;
const TAG_TEXT = 5;
const TAG_BYTES = 6;
const TAG_EMBEDDING = 7;
const TAG_INTERVAL = 8;
const TAG_ARRAY = 9;
const TAG_ROW = 10;

/** Encodes a batch. The writer's position must be a multiple of 8. */
export function writeBlock(into: ByteWriter, { columns, rowCount }: Batch): void {
  const start = into.length;
  for (const column of columns) {
    writeColumn(into, column, { rowCount, start });
    align(into, start);
  }
}

/** Encodes a batch together with its row count: u32 rows │ u32 0 │ block. */
export function writeCountedBlock(into: ByteWriter, batch: Batch): void {
  into.u32(batch.rowCount);
  into.u32(0);
  writeBlock(into, batch);
}

/** The information, apart from the row count, that a reader needs to decode a block. */
export interface BlockForm {
  readonly columnCount: number;
  /** The path of the temporary file, named in damage reports. */
  readonly path: string;
}

/**
 * Reads a batch. Its vectors share the memory of `bytes`.
 *
 * @param bytes Its offset in its buffer must be a multiple of 8.
 * @throws {CorruptionError} If the bytes end too early.
 */
export function readBlock(
  bytes: Uint8Array,
  { columnCount, path, rowCount }: BlockForm & { rowCount: number },
): Batch {
  return readColumns(new ByteReader(bytes, { path }), columnCount, rowCount);
}

/**
 * Reads all batches written by {@linkcode writeCountedBlock}. Their vectors share the memory of
 * `bytes`.
 */
export function readCountedBlocks(
  bytes: Uint8Array,
  { columnCount, path }: BlockForm,
): readonly Batch[] {
  const reader = new ByteReader(bytes, { path });
  const batches: Batch[] = [];
  while (reader.remaining > 0) {
    const rowCount = reader.u32();
    reader.u32();
    batches.push(readColumns(reader, columnCount, rowCount));
  }
  return batches;
}

function readColumns(reader: ByteReader, columnCount: number, rowCount: number): Batch {
  const columns: Vector[] = [];
  for (let i = 0; i < columnCount; i += 1) {
    columns.push(readColumn(reader, rowCount));
    reader.align(8);
  }
  return { rowCount, columns };
}

interface BlockPlace {
  readonly rowCount: number;
  /** The offset, within the writer's bytes, at which the encoded block begins. */
  readonly start: number;
}

function writeColumn(into: ByteWriter, column: Vector, place: BlockPlace): void {
  const { rowCount } = place;
  switch (column.kind) {
    case "const":
      if (column.value === null) return writeHead(into, NULL, { place });
      writeHead(into, CONST, { place });
      return writeTagged(into, column.value);
    case "bool":
      writeHead(into, BOOL, { place, nulls: column.nulls });
      return into.raw(bytesOf(column.values, rowCount));
    case "i32":
      writeHead(into, I32, { place, nulls: column.nulls });
      return into.raw(bytesOf(column.values, rowCount));
    case "f64":
      writeHead(into, F64, { place, nulls: column.nulls });
      return into.raw(bytesOf(column.values, rowCount));
    case "utf8": {
      writeHead(into, UTF8, { place, nulls: column.nulls });
      const first = column.offsets[0] ?? 0;
      const last = column.offsets[rowCount] ?? first;
      for (let row = 0; row <= rowCount; row += 1) into.u32((column.offsets[row] ?? 0) - first);
      return into.raw(column.bytes.subarray(first, last));
    }
    case "dict":
    case "any":
      return writeAny(into, column, place);
    default:
      unreachable(column, "spill block: unknown vector kind");
  }
}

function writeAny(into: ByteWriter, column: Vector, place: BlockPlace): void {
  const { rowCount } = place;
  let nulls: Uint8Array | undefined;
  let textCount = 0;
  for (let row = 0; row < rowCount; row += 1) {
    const value = valueAt(column, row);
    if (typeof value === "string") {
      textCount += 1;
    } else if (value === null) {
      nulls ??= new Uint8Array(rowCount);
      nulls[row] = 1;
      textCount += 1;
    }
  }
  if (textCount < rowCount || rowCount === 0) {
    writeHead(into, VALUES, { place });
    for (let row = 0; row < rowCount; row += 1) writeTagged(into, valueAt(column, row));
    return;
  }
  writeHead(into, UTF8, { place, nulls });
  const offsets = into.length;
  into.skip(4 * (rowCount + 1));
  const first = into.length;
  for (let row = 0; row < rowCount; row += 1) {
    const value = valueAt(column, row);
    if (typeof value === "string") into.rawText(value);
    into.setU32(offsets + 4 * (row + 1), into.length - first);
  }
}

function writeHead(
  into: ByteWriter,
  kind: number,
  { nulls, place }: { place: BlockPlace; nulls?: Uint8Array | undefined },
): void {
  into.u8(kind);
  into.u8(nulls === undefined ? 0 : 1);
  align(into, place.start);
  if (nulls === undefined) return;
  into.raw(nulls.subarray(0, place.rowCount));
  align(into, place.start);
}

function align(into: ByteWriter, start: number): void {
  into.skip((8 - ((into.length - start) % 8)) % 8);
}

function bytesOf(values: Uint8Array | Int32Array | Float64Array, rowCount: number): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, rowCount * values.BYTES_PER_ELEMENT);
}

function readColumn(from: ByteReader, length: number): Vector {
  const kind = from.u8();
  const hasNulls = from.u8() === 1;
  from.align(8);
  if (kind === NULL) return constVector(null, length);
  if (kind === CONST) return constVector(readTagged(from), length);
  if (kind === VALUES) {
    return { kind: "any", length, values: Array.from({ length }, () => readTagged(from)) };
  }
  const nulls = hasNulls ? from.raw(length) : undefined;
  from.align(8);
  switch (kind) {
    case BOOL:
      return { kind: "bool", length, values: from.raw(length), nulls };
    case I32: {
      const { buffer, byteOffset } = from.raw(4 * length);
      return { kind: "i32", length, values: new Int32Array(buffer, byteOffset, length), nulls };
    }
    case F64: {
      const { buffer, byteOffset } = from.raw(8 * length);
      return { kind: "f64", length, values: new Float64Array(buffer, byteOffset, length), nulls };
    }
    case UTF8: {
      const raw = from.raw(4 * (length + 1));
      const offsets = new Uint32Array(raw.buffer, raw.byteOffset, length + 1);
      return { kind: "utf8", length, bytes: from.raw(offsets[length] ?? 0), offsets, nulls };
    }
    default:
      return from.fail("the block contains a column of an unknown kind");
  }
}

function writeTagged(into: ByteWriter, value: Value): void {
  switch (typeof value) {
    case "string":
      into.u8(TAG_TEXT);
      return into.text(value);
    case "number":
      into.u8(TAG_NUMBER);
      return into.f64(value);
    case "boolean":
      return into.u8(value ? TAG_TRUE : TAG_FALSE);
    case "bigint":
      into.u8(TAG_BIG);
      return into.text(String(value));
    case "object":
      return writeObject(into, value);
    default:
      unreachable(value, "spill block: unknown value type");
  }
}

function writeObject(into: ByteWriter, value: Extract<Value, object | null>): void {
  if (value === null) return into.u8(TAG_NULL);
  if (value instanceof Uint8Array) {
    into.u8(TAG_BYTES);
    return into.block(value);
  }
  if (value instanceof Float32Array) {
    into.u8(TAG_EMBEDDING);
    return into.block(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  if (isInterval(value)) {
    into.u8(TAG_INTERVAL);
    into.f64(value.months);
    into.f64(value.days);
    return into.f64(value.micros);
  }
  if (isRowValue(value)) {
    into.u8(TAG_ROW);
    into.varint(value.cells.length);
    for (const cell of value.cells) writeTagged(into, cell);
    return;
  }
  into.u8(TAG_ARRAY);
  into.varint(value.length);
  for (const item of value) writeTagged(into, item);
}

function readTagged(from: ByteReader): Value {
  const tag = from.u8();
  switch (tag) {
    case TAG_NULL:
      return null;
    case TAG_FALSE:
    case TAG_TRUE:
      return tag === TAG_TRUE;
    case TAG_NUMBER:
      return from.f64();
    case TAG_BIG:
      return BigInt(from.text());
    case TAG_TEXT:
      return from.text();
    case TAG_BYTES:
      return new Uint8Array(from.block());
    case TAG_EMBEDDING:
      return new Float32Array(new Uint8Array(from.block()).buffer);
    case TAG_INTERVAL:
      return { months: from.f64(), days: from.f64(), micros: from.f64() };
    case TAG_ARRAY:
      return Array.from({ length: from.varint() }, () => readTagged(from));
    case TAG_ROW:
      return { cells: Array.from({ length: from.varint() }, () => readTagged(from)) };
    default:
      return from.fail("the block contains a value of an unknown form");
  }
}
