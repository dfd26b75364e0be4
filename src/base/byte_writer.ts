/**
 * Writes bytes in order, in the forms of `bytes.ts`, into a buffer that grows by doubling, or more.
 */
import { assert } from "./assert.ts";
import { putU53, VARINT_BYTES_MAX, viewOf } from "./bytes.ts";

/** Shared room of a size between these grows by more than a doubling. */
const SPACIOUS_BYTES_MIN: number = 256 * 1024;
const SPACIOUS_BYTES_MAX: number = 4 * 1024 * 1024;
const SPACIOUS_FACTOR = 8;

/** Up to here a loop over ASCII beats the call that encodes UTF-8. */
const SHORT_TEXT_CHARS_MAX = 32;

/** Up to here a loop beats the call that fills a range. */
const SHORT_ZEROS_BYTES_MAX = 64;

/** Up to here a loop beats the call that copies a range. */
const SHORT_RANGE_BYTES_MAX = 16;

/** Writes at its end; earlier u32s can be filled in later. */
export class ByteWriter {
  #buffer: Buffer;
  #view: DataView;
  #length = 0;

  readonly #isShared: boolean;

  /** @param isShared Other threads may be given views of what is written. */
  constructor(capacity = 256, { isShared = false }: { isShared?: boolean } = {}) {
    this.#isShared = isShared;
    this.#buffer = this.#allocate(Math.max(capacity, 16));
    this.#view = viewOf(this.#buffer);
  }

  /** A writer behind bytes that are there already, which it aliases. */
  static over(bytes: Uint8Array): ByteWriter {
    const writer = new ByteWriter(0);
    writer.#buffer = asBuffer(bytes);
    writer.#view = viewOf(writer.#buffer);
    writer.#length = bytes.length;
    return writer;
  }

  /** Bytes written so far, and the offset of the next. */
  get length(): number {
    return this.#length;
  }

  /** Forgets what was written and keeps the room. */
  reset(): void {
    this.#length = 0;
  }

  /** Forgets what was written at and after an offset. */
  cutTo(length: number): void {
    assert(length <= this.#length, "a cut makes shorter");
    this.#length = length;
  }

  /** What was written, aliasing the writer: valid until the next write. */
  view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** A range of what was written, aliasing the writer: valid until the next write. */
  range(start: number, end: number): Uint8Array {
    assert(start <= end && end <= this.#length, "a range was written");
    const { buffer, byteOffset } = this.#view;
    return new Uint8Array(buffer, byteOffset + start, end - start);
  }

  /** UTF-8 that was written from `start` (inclusive) to `end` (exclusive), decoded. */
  textAt(start: number, end: number): string {
    assert(end <= this.#length, "a text was written");
    return this.#buffer.toString("utf8", start, end);
  }

  /** What was written, as bytes of their own. */
  copy(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.view());
  }

  u8(value: number): void {
    const at = this.#room(1);
    this.#buffer[at] = value;
  }

  u16(value: number): void {
    const at = this.#room(2);
    this.#view.setUint16(at, value, true);
  }

  u32(value: number): void {
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
  }

  i32(value: number): void {
    const at = this.#room(4);
    this.#view.setInt32(at, value, true);
  }

  f64(value: number): void {
    const at = this.#room(8);
    this.#view.setFloat64(at, value, true);
  }

  u53(value: number): void {
    assert(Number.isSafeInteger(value), "a u53 is a safe integer");
    assert(value >= 0, "a u53 is not negative");
    const at = this.#room(8);
    putU53(this.#view, at, value);
  }

  varint(value: number): void {
    assert(Number.isSafeInteger(value), "a varint is a safe integer");
    assert(value >= 0, "a varint is not negative");
    let at = this.#room(VARINT_BYTES_MAX);
    let rest = value;
    while (rest >= 128) {
      // Division, not a shift: the value may have more than 32 bits.
      this.#buffer[at] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
      at += 1;
    }
    this.#buffer[at] = rest;
    this.#length = at + 1;
  }

  /** Bytes without a length. */
  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length);
    this.#buffer.set(bytes, at);
  }

  block(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.raw(bytes);
  }

  /** A block that is a range of other bytes. */
  blockOf(bytes: Uint8Array, start: number, end: number): void {
    this.varint(end - start);
    this.rangeOf(bytes, start, end);
  }

  /** A range of other bytes, without a length. */
  rangeOf(bytes: Uint8Array, start: number, end: number): void {
    const count = end - start;
    const at = this.#room(count);
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
    const at = this.#room(byteCount);
    this.#buffer.write(value, at, byteCount, "utf8");
  }

  /** UTF-8 without a length. */
  rawText(value: string): void {
    if (value.length <= SHORT_TEXT_CHARS_MAX && this.#shortAscii(value)) return;
    // A UTF-16 unit has at most three bytes, so what is there need not be counted first.
    const at = this.#room(value.length * 3);
    this.#length = at + this.#buffer.write(value, at, "utf8");
  }

  /** Zeros up to a multiple of `boundary`. */
  align(boundary: number): void {
    const count = (boundary - (this.#length % boundary)) % boundary;
    this.skip(count);
  }

  /** Zeros. */
  skip(count: number): void {
    const at = this.#room(count);
    const buffer = this.#buffer;
    if (count > SHORT_ZEROS_BYTES_MAX) buffer.fill(0, at, at + count);
    else for (let index = at; index < at + count; index += 1) buffer[index] = 0;
  }

  /** The next bytes, for the caller to fill in at once: what is returned aliases the writer. */
  extend(count: number): Buffer {
    const at = this.#room(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** Replaces four bytes written before. */
  setU32(offset: number, value: number): void {
    assert(offset + 4 <= this.#length, "only written bytes are replaced");
    this.#view.setUint32(offset, value, true);
  }

  /** Likewise eight that hold a u53. */
  setU53(offset: number, value: number): void {
    assert(offset + 8 <= this.#length, "only written bytes are replaced");
    putU53(this.#view, offset, value);
  }

  /** Writes text if it is ASCII; else writes nothing and returns false. */
  #shortAscii(value: string): boolean {
    const count = value.length;
    const at = this.#room(count);
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

  /** Makes room at the end and returns where it begins. */
  #room(count: number): number {
    const at = this.#length;
    const end = at + count;
    if (end > this.#buffer.length) this.#grow(end);
    this.#length = end;
    return at;
  }

  #allocate(byteCount: number): Buffer {
    return this.#isShared
      ? Buffer.from(new SharedArrayBuffer(byteCount))
      : Buffer.allocUnsafeSlow(byteCount);
  }

  #grow(needed: number): void {
    const { length } = this.#buffer;
    // The system gives shared memory where it is first written, so large room costs no memory.
    const isSpacious =
      this.#isShared && length >= SPACIOUS_BYTES_MIN && length < SPACIOUS_BYTES_MAX;
    const factor = isSpacious ? SPACIOUS_FACTOR : 2;
    const grown = this.#allocate(Math.max(needed, length * factor));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
    this.#view = viewOf(grown);
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
