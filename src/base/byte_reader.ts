/**
 * Reads bytes in order, in the formats defined in `bytes.ts`. It never reads past the end of the
 * bytes. If they end too early, they are damaged, and the error reports the position.
 */
import type { ByteWriter } from "./byte_writer.ts";
import { u53At, VARINT_BYTES_MAX, viewOf } from "./bytes.ts";
import { CorruptionError } from "./errors.ts";

/** The name of the file from which the bytes come, for the error message if they are damaged. */
export interface ByteSource {
  readonly path: string;
  /** The offset within the file at which the bytes begin; defaults to 0. */
  readonly fileOffset?: number;
}

/**
 * Reads sequentially from `position`. Every method throws a CorruptionError if the bytes end too
 * early.
 */
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

  /** The offset of the next byte to read. */
  get position(): number {
    return this.#position;
  }

  set position(position: number) {
    if (position > this.#bytes.length) this.fail("the data refers to a position beyond its end");
    this.#position = position;
  }

  /** The number of bytes that have not been read yet. */
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
    if (this.#view.getUint32(at + 4, true) >= 2097152)
      this.fail("the data contains an integer of more than 53 bits");
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
    return this.fail("the data contains an integer of more than 53 bits");
  }

  /** Reads the next `count` bytes. Returns a view of the source instead of a copy. */
  raw(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#bytes.subarray(at, at + count);
  }

  /**
   * Reads a block (a length, then as many bytes). Returns its contents as a view of the source.
   */
  block(): Uint8Array {
    return this.raw(this.varint());
  }

  /** Reads a block, and appends its contents, without their length, to the output of a writer. */
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

  /** Skips to the next position that is a multiple of `boundary`. */
  align(boundary: number): void {
    this.#take((boundary - (this.#position % boundary)) % boundary);
  }

  /** Reports damage at the current position. @throws {CorruptionError} Always. */
  fail(what: string): never {
    throw new CorruptionError(this.#path, this.#fileOffset + this.#position, what);
  }

  #take(count: number): number {
    const at = this.#position;
    if (count > this.#bytes.length - at) this.fail("the data ends too early");
    this.#position = at + count;
    return at;
  }
}
