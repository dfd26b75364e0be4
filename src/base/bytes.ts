/**
 * Little-endian bytes, written and read in order: what the log and the segment files share.
 *
 *     u8 u16 u32 i32 f64   as they are, unaligned
 *     u53                  u32 low half, u32 high half: a whole number below 2^53
 *     varint               7 bits a byte, low bits first, high bit set while more follow; below 2^53
 *     block                varint length, then that many bytes
 *     text                 a block of UTF-8
 *
 * The writer grows its buffer by doubling, or more. The reader never reads past its bytes: what ends too
 * early is damage, and says where.
 */
import { assert } from "./assert.ts";
import { CorruptionError } from "./errors.ts";

const SPAN_32 = 4294967296;

/** A whole number from 0 to 2^53 - 1, in eight bytes. */
export function putU53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % SPAN_32, true);
  view.setUint32(at + 4, Math.floor(value / SPAN_32), true);
}

export function u53At(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * SPAN_32 + view.getUint32(at, true);
}

/** Longest varint: 53 bits, 7 a byte. */
const VARINT_BYTES_MAX = 8;

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

/** Where bytes came from, for the message when they are damaged. */
export interface ByteSource {
  readonly path: string;
  /** Offset in the file of the first byte; default 0. */
  readonly fileOffset?: number;
}

/** Reads on from `position`. Every method throws CorruptionError when the bytes end too early. */
export class ByteReader {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #path: string;
  readonly #fileOffset: number;
  #position = 0;

  constructor(bytes: Uint8Array, { path, fileOffset = 0 }: ByteSource) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#view = viewOf(bytes);
    this.#path = path;
    this.#fileOffset = fileOffset;
  }

  /** Offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  set position(position: number) {
    if (position > this.#bytes.length) this.fail("points past its end");
    this.#position = position;
  }

  /** Bytes not yet read. */
  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  u8(): number {
    const at = this.#take(1);
    return this.#bytes[at] ?? 0;
  }

  u16(): number {
    const at = this.#take(2);
    return this.#view.getUint16(at, true);
  }

  u32(): number {
    const at = this.#take(4);
    return this.#view.getUint32(at, true);
  }

  i32(): number {
    const at = this.#take(4);
    return this.#view.getInt32(at, true);
  }

  f64(): number {
    const at = this.#take(8);
    return this.#view.getFloat64(at, true);
  }

  u53(): number {
    const at = this.#take(8);
    if (this.#view.getUint32(at + 4, true) >= 2097152) this.fail("holds a number beyond 53 bits");
    return u53At(this.#view, at);
  }

  varint(): number {
    const bytes = this.#bytes;
    let value = 0;
    let scale = 1;
    for (let index = 0; index < VARINT_BYTES_MAX; index += 1) {
      const byte = bytes[this.#take(1)] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 128;
    }
    return this.fail("holds a number beyond 53 bits");
  }

  /** The next bytes, aliasing the source. */
  raw(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#bytes.subarray(at, at + count);
  }

  /** A block, aliasing the source. */
  block(): Uint8Array {
    return this.raw(this.varint());
  }

  /** Appends the bytes of a block, without their count, to what another writes. */
  blockInto(into: ByteWriter): void {
    const count = this.varint();
    const at = this.#take(count);
    into.rangeOf(this.#bytes, at, at + count);
  }

  text(): string {
    const byteCount = this.varint();
    const at = this.#take(byteCount);
    return this.#bytes.toString("utf8", at, at + byteCount);
  }

  skip(count: number): void {
    this.#take(count);
  }

  /** Skips to a multiple of `boundary`. */
  align(boundary: number): void {
    this.#take((boundary - (this.#position % boundary)) % boundary);
  }

  /** Says that the bytes are damaged where the reader stands. @throws {CorruptionError} Always. */
  fail(what: string): never {
    throw new CorruptionError(this.#path, this.#fileOffset + this.#position, what);
  }

  #take(count: number): number {
    const at = this.#position;
    if (count > this.#bytes.length - at) this.fail("ends too early");
    this.#position = at + count;
    return at;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The number behind a name in the first 8 bytes, or undefined when they are something else. */
export function numberInMagic(bytes: Uint8Array, name: string): number | undefined {
  const magic = Buffer.from(bytes.subarray(0, 8)).toString("latin1");
  const digits = magic.slice(name.length);
  return magic.startsWith(name) && /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** The bytes of a typed array, aliased. */
export function bytesOf({ buffer, byteLength, byteOffset }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
