/**
 * Writes bytes in order, in the formats defined in `bytes.ts`, into a buffer that at least doubles
 * in size when it grows. The contents of a shared buffer are moved in several steps when it grows,
 * and bytes already written do not change.
 */
import { assert } from "./assert.ts";
import { putU53, VARINT_BYTES_MAX, viewOf } from "./bytes.ts";
import { Growth } from "./growth.ts";

/** The range of sizes, in bytes, within which a shared buffer more than doubles when it grows. */
const SPACIOUS_BYTES_MIN: number = 256 * 1024;
const SPACIOUS_BYTES_MAX: number = 4 * 1024 * 1024;
const SPACIOUS_FACTOR = 8;

/**
 * The maximum length of an ASCII string that a loop writes faster than a call that encodes UTF-8.
 */
const SHORT_TEXT_CHARS_MAX = 32;

/**
 * The maximum length of a range that a loop fills with zeros faster than the runtime's own method.
 */
const SHORT_ZEROS_BYTES_MAX = 64;

/** The maximum length of a range that a loop copies faster than the runtime's own method. */
const SHORT_RANGE_BYTES_MAX = 16;

/**
 * Appends values to a buffer that grows as needed. A u32 can be reserved first and filled in
 * later.
 */
export class ByteWriter {
  #buffer: Buffer;
  #view: DataView;
  #length = 0;

  /**
   * The length up to which the output can grow before part of the buffer must be copied to a
   * larger one.
   */
  #capacityUpTo: number;
  /** Manages the growth of a shared buffer; undefined if the buffer is not shared. */
  readonly #growth: Growth<Buffer> | undefined;

  /**
   * Creates an empty writer. @param isShared Whether other threads may receive views of the
   * output.
   */
  constructor(capacity = 256, { isShared = false }: { isShared?: boolean } = {}) {
    this.#growth = isShared ? new Growth(sharedBuffer, nextCapacity) : undefined;
    const initial = Math.max(capacity, 16);
    this.#buffer = isShared ? sharedBuffer(initial) : Buffer.allocUnsafeSlow(initial);
    this.#capacityUpTo = this.#buffer.length;
    this.#view = viewOf(this.#buffer);
  }

  /** Creates a writer that uses the buffer of `bytes`, and appends to its contents. */
  static over(bytes: Uint8Array): ByteWriter {
    const writer = new ByteWriter(0);
    writer.#buffer = asBuffer(bytes);
    writer.#capacityUpTo = bytes.length;
    writer.#view = viewOf(writer.#buffer);
    writer.#length = bytes.length;
    return writer;
  }

  /** The number of bytes written, which is also the offset of the next byte. */
  get length(): number {
    return this.#length;
  }

  /** Discards the written bytes, but keeps the buffer. */
  reset(): void {
    this.#growth?.noteChangedFrom(0);
    this.#length = 0;
  }

  /** Discards the written bytes at and after an offset. */
  cutTo(length: number): void {
    assert(length <= this.#length, "byte writer: cannot truncate to more bytes than were written");
    this.#growth?.noteChangedFrom(length);
    this.#length = length;
  }

  /** Releases the capacity that a shared writer has reserved for growth. */
  releaseGrowth(): void {
    this.#growth?.release();
  }

  /** Returns a view of the written bytes, valid until the next write. */
  view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Returns a view of a range of the written bytes, valid until the next write. */
  range(start: number, end: number): Uint8Array {
    assert(start <= end && end <= this.#length, "byte writer: range exceeds the written bytes");
    const { buffer, byteOffset } = this.#view;
    return new Uint8Array(buffer, byteOffset + start, end - start);
  }

  /** Decodes the UTF-8 written from `start` (inclusive) to `end` (exclusive). */
  textAt(start: number, end: number): string {
    assert(end <= this.#length, "byte writer: text range exceeds the written bytes");
    return this.#buffer.toString("utf8", start, end);
  }

  /** Returns a copy of the written bytes. */
  copy(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.view());
  }

  u8(value: number): void {
    const at = this.#reserve(1);
    this.#buffer[at] = value;
  }

  u16(value: number): void {
    const at = this.#reserve(2);
    this.#view.setUint16(at, value, true);
  }

  u32(value: number): void {
    const at = this.#reserve(4);
    this.#view.setUint32(at, value, true);
  }

  i32(value: number): void {
    const at = this.#reserve(4);
    this.#view.setInt32(at, value, true);
  }

  f64(value: number): void {
    const at = this.#reserve(8);
    this.#view.setFloat64(at, value, true);
  }

  u53(value: number): void {
    assert(Number.isSafeInteger(value), "byte writer: u53 value is not a safe integer");
    assert(value >= 0, "byte writer: u53 value is negative");
    const at = this.#reserve(8);
    putU53(this.#view, at, value);
  }

  varint(value: number): void {
    assert(Number.isSafeInteger(value), "byte writer: varint value is not a safe integer");
    assert(value >= 0, "byte writer: varint value is negative");
    let at = this.#reserve(VARINT_BYTES_MAX);
    let rest = value;
    while (rest >= 128) {
      // The value is divided rather than shifted, because it may have more than 32 bits.
      this.#buffer[at] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
      at += 1;
    }
    this.#buffer[at] = rest;
    this.#length = at + 1;
  }

  /** Writes bytes without a length prefix. */
  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#buffer.set(bytes, at);
  }

  block(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.raw(bytes);
  }

  /** Writes a range of `bytes` as a block: its length, followed by its bytes. */
  blockOf(bytes: Uint8Array, start: number, end: number): void {
    this.varint(end - start);
    this.rangeOf(bytes, start, end);
  }

  /** Writes a range of `bytes`, without a length prefix. */
  rangeOf(bytes: Uint8Array, start: number, end: number): void {
    const count = end - start;
    const at = this.#reserve(count);
    if (count > SHORT_RANGE_BYTES_MAX) {
      asBuffer(bytes).copy(this.#buffer, at, start, end);
      return;
    }
    const buffer = this.#buffer;
    for (let index = 0; index < count; index += 1) buffer[at + index] = bytes[start + index] ?? 0;
  }

  text(value: string): void {
    const start = this.#length;
    if (value.length <= SHORT_TEXT_CHARS_MAX) {
      this.varint(value.length);
      if (this.#shortAscii(value)) return;
      this.#length = start;
    }
    const byteCount = Buffer.byteLength(value, "utf8");
    this.varint(byteCount);
    const at = this.#reserve(byteCount);
    this.#buffer.write(value, at, byteCount, "utf8");
  }

  /** Writes a string as UTF-8, without a length prefix. */
  rawText(value: string): void {
    if (value.length <= SHORT_TEXT_CHARS_MAX && this.#shortAscii(value)) return;
    // A UTF-16 code unit takes at most three bytes in UTF-8, so the string need not be measured
    // first.
    const at = this.#reserve(value.length * 3);
    this.#length = at + this.#buffer.write(value, at, "utf8");
  }

  /** Writes zeros until the length of the output is a multiple of `boundary`. */
  align(boundary: number): void {
    const count = (boundary - (this.#length % boundary)) % boundary;
    this.skip(count);
  }

  /** Writes `count` zeros. */
  skip(count: number): void {
    const at = this.#reserve(count);
    const buffer = this.#buffer;
    if (count > SHORT_ZEROS_BYTES_MAX) buffer.fill(0, at, at + count);
    else for (let index = at; index < at + count; index += 1) buffer[index] = 0;
  }

  /** Appends `count` bytes, and returns a view of them. The caller must fill them immediately. */
  extend(count: number): Buffer {
    const at = this.#reserve(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** Overwrites four bytes with a u32. They must have been written earlier. */
  setU32(offset: number, value: number): void {
    assert(this.#growth === undefined, "byte writer: cannot overwrite bytes of a shared buffer");
    assert(
      offset + 4 <= this.#length,
      "byte writer: cannot overwrite bytes that were not yet written",
    );
    this.#view.setUint32(offset, value, true);
  }

  /** Overwrites eight bytes with a u53. They must have been written earlier. */
  setU53(offset: number, value: number): void {
    assert(this.#growth === undefined, "byte writer: cannot overwrite bytes of a shared buffer");
    assert(
      offset + 8 <= this.#length,
      "byte writer: cannot overwrite bytes that were not yet written",
    );
    putU53(this.#view, offset, value);
  }

  /** Writes a string if it is ASCII. Otherwise, writes nothing and returns false. */
  #shortAscii(value: string): boolean {
    const count = value.length;
    const at = this.#reserve(count);
    const buffer = this.#buffer;
    for (let index = 0; index < count; index += 1) {
      const code = value.charCodeAt(index);
      if (code >= 128) {
        this.#length = at;
        return false;
      }
      buffer[at + index] = code;
    }
    return true;
  }

  /** Reserves bytes at the end of the output, and returns the offset of the first. */
  #reserve(count: number): number {
    const at = this.#length;
    const end = at + count;
    if (end > this.#capacityUpTo) this.#grow(end);
    this.#length = end;
    return at;
  }

  #grow(needed: number): void {
    const growth = this.#growth;
    const buffer = this.#buffer;
    let grown: Buffer;
    if (growth === undefined) {
      grown = Buffer.allocUnsafeSlow(Math.max(needed, buffer.length * 2));
      grown.set(buffer.subarray(0, this.#length));
    } else {
      grown = growth.arrayFor(buffer, this.#length, needed);
    }
    this.#capacityUpTo = growth?.capacityUpTo(grown) ?? grown.length;
    if (grown === buffer) return;
    this.#buffer = grown;
    this.#view = viewOf(grown);
  }
}

function sharedBuffer(byteCount: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(byteCount));
}

/**
 * Returns the next capacity of a shared buffer. The system does not allocate shared memory until
 * it is first written to, so a large buffer takes up no memory at first.
 */
function nextCapacity(byteCount: number): number {
  const isSpacious = byteCount >= SPACIOUS_BYTES_MIN && byteCount < SPACIOUS_BYTES_MAX;
  return byteCount * (isSpacious ? SPACIOUS_FACTOR : 2);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
